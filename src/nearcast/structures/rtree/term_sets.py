"""Counted term sets: for each node and term, how many rows below the node are counted under that term.

All sets are one flat hash table with 12 bytes a slot. A row is counted under all its terms, or under the one term that
was chosen for it. A count that falls to 0 is removed, so that no set has a stale term. Chosen terms also lie in the
leaves, beside the rows: the chosen terms of a leaf are one stretch of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMapArrays, claim_slot, count_down
from nearcast.arrays.jit import kernel
from nearcast.matching.store import RowArrays
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.rtree.grow import insert_row, is_overfull, split, takes_row
from nearcast.structures.rtree.nodes import ROOT, TreeArrays, all_rows, rows_below
from nearcast.structures.rtree.shrink import is_underfull, merge_or_borrow, root_is_thin, take_row
from nearcast.structures.rtree.tree_method import TableAnnotations


class Chosen(NamedTuple):
    """The term that each row is counted under."""

    of_rows: np.ndarray  # int32[rows]; empty if rows are counted under all their terms
    in_leaves: np.ndarray  # int32[nodes, B + 1]  the same in the order of the leaves' slots; undefined in other nodes

    @property
    def nbytes(self) -> int:
        return int(self.of_rows.nbytes + self.in_leaves.nbytes)

    def sized(self, tree: TreeArrays) -> Chosen:
        """With room for all nodes of the tree."""
        if len(self.of_rows) == 0:
            return self
        known = self.in_leaves if self.in_leaves.shape[1] else np.zeros((0, tree.slots.shape[1]), np.int32)
        return self._replace(in_leaves=grown(known, len(tree.counts), fill=0))


EVERY_TERM = Chosen(np.zeros(0, np.int32), np.zeros((0, 0), np.int32))
"""No term is chosen: a row is counted under all its terms."""


class TermRows(NamedTuple):
    """The rows, and the terms that they are counted under."""

    rows: RowArrays
    chosen: Chosen


class _Terms(NamedTuple):
    """values[first:stop]: the terms of one row."""

    values: np.ndarray
    first: int
    stop: int


@kernel
def _terms_of(view, row):
    """The terms that a row is counted under."""
    if len(view.chosen.of_rows) == 0:
        first = view.rows.offsets[row]
        return _Terms(view.rows.terms, first, first + np.int64(view.rows.n_terms[row]))
    return _Terms(view.chosen.of_rows, np.int64(row), np.int64(row) + 1)


@kernel
def _place_terms(tree, chosen, node):
    """Write the chosen terms of a leaf's rows beside the rows."""
    if len(chosen.of_rows) > 0 and tree.levels[node] == 0:
        for k in range(tree.counts[node]):
            chosen.in_leaves[node, k] = chosen.of_rows[tree.slots[node, k]]


@kernel
def _count(keys, values, node, terms):
    """Count the terms of one more row at a node; return how many are new there. The caller has made room."""
    added = 0
    for k in range(terms.first, terms.stop):
        slot, is_new = claim_slot(keys, values, term_key(node, terms.values[k]))
        values[slot] += 1
        added += is_new
    return added


@kernel
def _enter(table, size, node, terms):
    """Count one more row below a node; return the table and its size."""
    table = with_slots(table, size, terms.stop - terms.first)
    return table, size + _count(table.keys, table.values, node, terms)


@kernel
def _leave(table, size, node, terms):
    """Count one row less below a node; return the size of the table."""
    for k in range(terms.first, terms.stop):
        size -= count_down(table, term_key(node, terms.values[k]))
    return size


@kernel
def _follow(tree, table, size, view, move):
    """Move the counts of entries that moved to a sibling; return the table and its size."""
    source, target = move.source, move.target
    for k in range(move.first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], tree.levels[target])
        for i in range(len(below)):
            terms = _terms_of(view, below[i])
            size = _leave(table, size, source, terms)
            table, size = _enter(table, size, target, terms)
    _place_terms(tree, view.chosen, source)
    _place_terms(tree, view.chosen, target)
    return table, size


@kernel
def _count_all(tree, table, view):
    """Count all rows at the nodes above them, level by level and in the order of the tree, so that the counts of a node
    stay in the cache. Arrays are taken out of their tuples: a row costs a tenth of a microsecond here.
    """
    below, parents, leaves, size = all_rows(tree), tree.parents, tree.leaves, 0
    keys, values = table.keys, table.values
    for level in range(tree.levels[ROOT] + 1):
        for i in range(len(below)):
            node = np.int64(leaves[below[i]])
            for _ in range(level):
                node = np.int64(parents[node])
            terms = _terms_of(view, below[i])
            if (size + terms.stop - terms.first) * 10 > len(keys) * 7:
                table = with_slots(IntMapArrays(keys, values), size, terms.stop - terms.first)
                keys, values = table.keys, table.values
            size += _count(keys, values, node, terms)
    for node in range(len(tree.counts)):
        _place_terms(tree, view.chosen, node)
    return IntMapArrays(keys, values), size


@kernel
def _insert(tree, table, size, view, new, done):
    for i in range(done, len(new)):
        if not takes_row(tree):
            return i, table, size
        terms, leaf = _terms_of(view, new[i]), insert_row(tree, new[i], view.rows.boxes[new[i]])
        node = leaf
        while node >= 0:  # the root has no parent
            table, size = _enter(table, size, node, terms)
            node = np.int64(tree.parents[node])
        _place_terms(tree, view.chosen, leaf)
        node = leaf
        while node != ROOT and is_overfull(tree, node):
            table, size = _follow(tree, table, size, view, split(tree, node))
            node = np.int64(tree.parents[node])
    return len(new), table, size


@kernel
def _remove(tree, table, size, view, old, done):
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, table, size
        terms, node = _terms_of(view, old[i]), np.int64(tree.leaves[old[i]])
        while node >= 0:  # the root has no parent
            size = _leave(table, size, node, terms)
            node = np.int64(tree.parents[node])
        node = take_row(tree, old[i])
        _place_terms(tree, view.chosen, node)
        while is_underfull(tree, node):
            parent = np.int64(tree.parents[node])
            table, size = _follow(tree, table, size, view, merge_or_borrow(tree, node))
            node = parent
    return len(old), table, size


class TermSets(TableAnnotations):
    """The term sets of all nodes of a tree: (node, term) -> rows below."""

    prefix = "token"
    build_kernel = staticmethod(_count_all)
    insert_kernel = staticmethod(_insert)
    remove_kernel = staticmethod(_remove)
