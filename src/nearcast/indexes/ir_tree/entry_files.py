"""Inverted files: for each node and term, which entries of the node have the term, as the bits of one word.

All files are one hash table (node, term) -> bits with 16 bytes a slot. Bit k stands for the entry in slot k, of up to
62 entries. It is set if the entry is a row that has the term, or a node whose own file has the term.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import ABSENT, IntMapArrays, claim_slot, find, find_slot, remove_one
from nearcast.arrays.jit import kernel
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.rtree.grow import insert_row, is_overfull, split, takes_row
from nearcast.structures.rtree.nodes import ROOT, entries_of, rows_below, slot_of
from nearcast.structures.rtree.shrink import is_underfull, merge_or_borrow, root_is_thin, take_row
from nearcast.structures.rtree.tree_method import TableAnnotations

MOST_ENTRIES = 62  # and one spare slot: a word with all 64 bits set would be ABSENT
_ONE = np.int64(1)


@kernel
def _set_bit(keys, values, key, k):
    """Set the bit of the entry in slot k; return whether the key is new. The caller has made room."""
    slot, is_new = claim_slot(keys, values, key)
    values[slot] |= _ONE << k
    return is_new


@kernel
def _clear_bit(table, size, key, k):
    """Clear the bit of the entry in slot k, if it is set; return the size of the table."""
    slot = find_slot(table, key)
    if table.values[slot] != ABSENT:
        table.values[slot] &= ~(_ONE << k)
        if table.values[slot] == 0:
            size -= remove_one(table, key)
    return size


@kernel
def _enter(table, size, rows, row, node, k):
    """Set the bits of the entry in slot k for the terms of a row; return the table and its size."""
    first, n = rows.offsets[row], np.int64(rows.n_terms[row])
    table = with_slots(table, size, n)
    for i in range(first, first + n):
        size += _set_bit(table.keys, table.values, term_key(node, rows.terms[i]), k)
    return table, size


@kernel
def _leave(table, size, rows, row, node, k):
    """Clear the bits of the entry in slot k for the terms of a row; return the size of the table."""
    first = rows.offsets[row]
    for i in range(first, first + rows.n_terms[row]):
        size = _clear_bit(table, size, term_key(node, rows.terms[i]), k)
    return size


@kernel
def _sync(tree, table, size, rows, row, node):
    """Set or clear the bits of a node in its parent's file, for the terms of a row, as the node's own file has them."""
    first, n = rows.offsets[row], np.int64(rows.n_terms[row])
    parent = np.int64(tree.parents[node])
    k = slot_of(tree, parent, node)
    table = with_slots(table, size, n)
    for i in range(first, first + n):
        key = term_key(parent, rows.terms[i])
        if find(table, term_key(node, rows.terms[i])) == ABSENT:
            size = _clear_bit(table, size, key, k)
        else:
            size += _set_bit(table.keys, table.values, key, k)
    return table, size


@kernel
def _sync_path(tree, table, size, rows, row, node):
    while node != ROOT:
        table, size = _sync(tree, table, size, rows, row, node)
        node = np.int64(tree.parents[node])
    return table, size


@kernel
def _refill(tree, table, size, rows, node, k):
    """Move the bits of a node's last entry, which took the free slot k. Nothing to do if slot k was the last."""
    if k < tree.counts[node]:
        below = rows_below(tree, tree.slots[node, k], tree.levels[node])
        for i in range(len(below)):
            table, size = _enter(table, size, rows, below[i], node, k)
            size = _leave(table, size, rows, below[i], node, tree.counts[node])
    return table, size


@kernel
def _empty(table, size, rows, below, node):
    """Remove the terms of these rows from a node's file; return the size of the table."""
    for i in range(len(below)):
        first = rows.offsets[below[i]]
        for k in range(first, first + rows.n_terms[below[i]]):
            size -= remove_one(table, term_key(node, rows.terms[k]))
    return size


@kernel
def _file_entries(tree, table, size, rows, node, first):
    """Set the bits of the entries of a node, from slot `first` on; return the table and its size."""
    for k in range(first, tree.counts[node]):
        below = rows_below(tree, tree.slots[node, k], tree.levels[node])
        for i in range(len(below)):
            table, size = _enter(table, size, rows, below[i], node, k)
    return table, size


@kernel
def _follow(tree, table, size, rows, move, k):
    """Move the bits of entries that moved to a sibling. A node that was merged has given up slot k of its parent."""
    source, target = move.source, move.target
    parent, is_merged = np.int64(tree.parents[target]), tree.counts[source] == 0
    for j in range(move.first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, j], tree.levels[target])
        size = _empty(table, size, rows, below, source)
        if is_merged:
            for i in range(len(below)):
                size = _leave(table, size, rows, below[i], parent, k)
    if is_merged:
        table, size = _refill(tree, table, size, rows, parent, k)
    else:
        size = _empty(table, size, rows, rows_below(tree, source, tree.levels[source] + 1), source)
        table, size = _file_entries(tree, table, size, rows, source, 0)
    table, size = _file_entries(tree, table, size, rows, target, move.first)
    for j in range(move.first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, j], tree.levels[target])
        for i in range(len(below)):
            table, size = _sync(tree, table, size, rows, below[i], target)
            if not is_merged:
                table, size = _sync(tree, table, size, rows, below[i], source)
    return table, size


@kernel
def _file_all(tree, table, rows):
    """File all entries node by node, from the root down: a node's file stays in the cache. Tuples are unpacked."""
    nodes, size = np.full(1, ROOT, np.int32), 0
    keys, values, terms, offsets, n_terms = table.keys, table.values, rows.terms, rows.offsets, rows.n_terms
    for level in range(tree.levels[ROOT], -1, -1):
        for i in range(len(nodes)):
            for k in range(tree.counts[nodes[i]]):
                below = rows_below(tree, tree.slots[nodes[i], k], level)
                for j in range(len(below)):
                    first, n = offsets[below[j]], np.int64(n_terms[below[j]])
                    if (size + n) * 10 > len(keys) * 7:
                        table = with_slots(IntMapArrays(keys, values), size, n)
                        keys, values = table.keys, table.values
                    for at in range(first, first + n):
                        size += _set_bit(keys, values, term_key(nodes[i], terms[at]), k)
        if level > 0:
            nodes = entries_of(tree, nodes)
    return IntMapArrays(keys, values), size


@kernel
def _insert(tree, table, size, rows, new, done):
    for i in range(done, len(new)):
        if not takes_row(tree):
            return i, table, size
        node = insert_row(tree, new[i], rows.boxes[new[i]])
        table, size = _enter(table, size, rows, new[i], node, np.int64(tree.counts[node] - 1))
        table, size = _sync_path(tree, table, size, rows, new[i], node)
        while node != ROOT and is_overfull(tree, node):
            table, size = _follow(tree, table, size, rows, split(tree, node), 0)
            node = np.int64(tree.parents[node])
    return len(new), table, size


@kernel
def _remove(tree, table, size, rows, old, done):
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, table, size
        node = np.int64(tree.leaves[old[i]])
        k = slot_of(tree, node, old[i])
        size = _leave(table, size, rows, old[i], node, k)
        take_row(tree, old[i])
        table, size = _refill(tree, table, size, rows, node, k)
        table, size = _sync_path(tree, table, size, rows, old[i], node)
        while is_underfull(tree, node):
            parent = np.int64(tree.parents[node])
            k = slot_of(tree, parent, node)
            table, size = _follow(tree, table, size, rows, merge_or_borrow(tree, node), k)
            node = parent
    return len(old), table, size


class EntryFiles(TableAnnotations):
    """The inverted files of all nodes of a tree: (node, term) -> bits of entries."""

    prefix = "file"
    value_type = np.int64
    build_kernel = staticmethod(_file_all)
    insert_kernel = staticmethod(_insert)
    remove_kernel = staticmethod(_remove)
