"""Inverted files: for each node and term, which of the node's entries have it, as bits of one word.

One hash table (node, term) -> bits, bit k for the entry in slot k: 16 bytes a slot of the table, for up to 62 entries
a node. A bit is set where the entry is a row that has the term, or a node whose own file has it.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import ABSENT, IntMapArrays, find, find_slot, home_slot, put_one, remove_one
from nearcast.arrays.jit import kernel
from nearcast.matching.store import RowArrays
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.rtree.grow import add_row, is_overfull, leaf_for, split
from nearcast.structures.rtree.nodes import ROOT, TreeArrays, entries_of, rows_below, slot_of
from nearcast.structures.rtree.shrink import is_underfull, root_is_thin, settle, take_row
from nearcast.structures.rtree.tree import has_room

MOST_ENTRIES = 62  # and one slot more: the word with all its 64 bits set would be the mark of an empty slot
_ONE = np.int64(1)


class EntryFiles:
    """The inverted files of all nodes of a tree."""

    def __init__(self) -> None:
        self.arrays = _no_files()
        self._size = 0

    @property
    def nbytes(self) -> int:
        return int(self.arrays.keys.nbytes + self.arrays.values.nbytes)

    def build(self, tree: TreeArrays, rows: RowArrays) -> None:
        """Start anew with the rows that are in the tree."""
        self._take(*_file_all(tree, _no_files(), rows))

    def insert(self, tree: TreeArrays, rows: RowArrays, new: np.ndarray, done: int) -> int:
        """Insert rows from `done` on until the root is overfull or nodes run out; return how many are done."""
        done, table, size = _insert(tree, self.arrays, self._size, rows, new, done)
        self._take(table, size)
        return int(done)

    def remove(self, tree: TreeArrays, rows: RowArrays, old: np.ndarray, done: int) -> int:
        """Remove rows from `done` on until the root is thin; return how many are done."""
        done, table, size = _remove(tree, self.arrays, self._size, rows, old, done)
        self._take(table, size)
        return int(done)

    def _take(self, table: IntMapArrays, size: int) -> None:
        self.arrays, self._size = table, int(size)

    def state(self) -> dict[str, np.ndarray]:
        return {f"file_{name}": array for name, array in self.arrays._asdict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = IntMapArrays(arrays["file_keys"], arrays["file_values"])
        self._size = int(np.count_nonzero(self.arrays.values != ABSENT))


def _no_files() -> IntMapArrays:
    return IntMapArrays(np.zeros(16, np.int64), np.full(16, ABSENT, np.int64))


@kernel
def _set_bit(table, size, key, k):
    """The entry in slot k has the term; return the table's size. There is room for one more key."""
    slot = find_slot(table, key)
    if table.values[slot] == ABSENT:
        size += put_one(table, key, 0)
    table.values[slot] |= _ONE << k
    return size


@kernel
def _clear_bit(table, size, key, k):
    """The entry in slot k has the term no more, if it ever had; return the table's size."""
    slot = find_slot(table, key)
    if table.values[slot] != ABSENT:
        table.values[slot] &= ~(_ONE << k)
        if table.values[slot] == 0:
            size -= remove_one(table, key)
    return size


@kernel
def _set_bits(keys, values, terms, span, node, k):
    """The entry in slot k has terms[first:stop]; return how many keys are new. There is room for them."""
    mask, added = len(keys) - 1, 0
    for i in range(span[0], span[1]):
        key = term_key(node, terms[i])
        slot = home_slot(key, mask)
        while values[slot] != ABSENT and keys[slot] != key:
            slot = (slot + 1) & mask
        if values[slot] == ABSENT:
            keys[slot] = key
            values[slot] = 0
            added += 1
        values[slot] |= _ONE << k
    return added


@kernel
def _enter(table, size, rows, row, node, k):
    """The entry in slot k has the row's terms; return the table and its size."""
    first, n = rows.offsets[row], np.int64(rows.n_terms[row])
    table = with_slots(table, size, n)
    return table, size + _set_bits(table.keys, table.values, rows.terms, (first, first + n), node, k)


@kernel
def _leave(table, size, rows, row, node, k):
    """The entry in slot k has the row's terms no more; return the table's size."""
    first = rows.offsets[row]
    for i in range(first, first + rows.n_terms[row]):
        size = _clear_bit(table, size, term_key(node, rows.terms[i]), k)
    return size


@kernel
def _sync(tree, table, size, rows, row, node):
    """Make the bits of a node in its parent's file what its own file says, for the row's terms."""
    first, n = rows.offsets[row], np.int64(rows.n_terms[row])
    parent = np.int64(tree.parents[node])
    k = slot_of(tree, parent, node)
    table = with_slots(table, size, n)
    for i in range(first, first + n):
        key = term_key(parent, rows.terms[i])
        if find(table, term_key(node, rows.terms[i])) == ABSENT:
            size = _clear_bit(table, size, key, k)
        else:
            size = _set_bit(table, size, key, k)
    return table, size


@kernel
def _sync_path(tree, table, size, rows, row, node):
    while node != ROOT:
        table, size = _sync(tree, table, size, rows, row, node)
        node = np.int64(tree.parents[node])
    return table, size


@kernel
def _refill(tree, table, size, rows, node, k):
    """Follow the last entry of a node into slot k, which was given up; nothing to do where k was the last itself."""
    if k < tree.counts[node]:
        below = rows_below(tree, tree.slots[node, k], tree.levels[node])
        for i in range(len(below)):
            table, size = _enter(table, size, rows, below[i], node, k)
            size = _leave(table, size, rows, below[i], node, tree.counts[node])
    return table, size


@kernel
def _empty(table, size, rows, below, node):
    """Take all terms of these rows out of a node's file; return the table's size."""
    for i in range(len(below)):
        first = rows.offsets[below[i]]
        for k in range(first, first + rows.n_terms[below[i]]):
            size -= remove_one(table, term_key(node, rows.terms[k]))
    return size


@kernel
def _file_entries(tree, table, size, rows, node, first):
    """Set the bits of the entries of a node from slot `first` on; return the table and its size."""
    for k in range(first, tree.counts[node]):
        below = rows_below(tree, tree.slots[node, k], tree.levels[node])
        for i in range(len(below)):
            table, size = _enter(table, size, rows, below[i], node, k)
    return table, size


@kernel
def _follow(tree, table, size, rows, step, k):
    """Follow entries that went from one sibling to another; k is the parent's slot that a poured one gave up."""
    source, target, first = step
    parent = np.int64(tree.parents[target])
    is_poured = tree.counts[source] == 0
    for j in range(first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, j], tree.levels[target])
        size = _empty(table, size, rows, below, source)
        if is_poured:
            for i in range(len(below)):
                size = _leave(table, size, rows, below[i], parent, k)
    if is_poured:
        table, size = _refill(tree, table, size, rows, parent, k)
    else:
        size = _empty(table, size, rows, rows_below(tree, source, tree.levels[source] + 1), source)
        table, size = _file_entries(tree, table, size, rows, source, 0)
    table, size = _file_entries(tree, table, size, rows, target, first)
    for j in range(first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, j], tree.levels[target])
        for i in range(len(below)):
            table, size = _sync(tree, table, size, rows, below[i], target)
            if not is_poured:
                table, size = _sync(tree, table, size, rows, below[i], source)
    return table, size


@kernel
def _file_all(tree, table, rows):
    """Node by node, from the root down: what is filed of one node lies in the cache. Arrays are taken out of their
    tuples.
    """
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
                    size += _set_bits(keys, values, terms, (first, first + n), nodes[i], k)
        if level > 0:
            nodes = entries_of(tree, nodes)
    return IntMapArrays(keys, values), size


@kernel
def _insert(tree, table, size, rows, new, done):
    for i in range(done, len(new)):
        if not has_room(tree) or is_overfull(tree, ROOT):
            return i, table, size
        leaf = np.int64(leaf_for(tree, rows.boxes[new[i]]))
        add_row(tree, leaf, new[i], rows.boxes[new[i]])
        table, size = _enter(table, size, rows, new[i], leaf, np.int64(tree.counts[leaf] - 1))
        table, size = _sync_path(tree, table, size, rows, new[i], leaf)
        node = leaf
        while node != ROOT and is_overfull(tree, node):
            sibling = split(tree, node)
            table, size = _follow(tree, table, size, rows, (node, sibling, np.int64(0)), 0)
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
            table, size = _follow(tree, table, size, rows, settle(tree, node), k)
            node = parent
    return len(old), table, size
