"""Lists by level: the i-th term of a row is listed at its ancestor of depth i, and all further terms at its leaf.

The entries of the root have depth 1. The root has no lists, unless it is a leaf; then it lists all terms. So a row is
in exactly as many lists as it has terms. When the height changes, all lists are rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMapArrays, claim_slot
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.matching.store import RowArrays, gathered
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.rtree.grow import insert_row, is_overfull, split, takes_row
from nearcast.structures.rtree.node_lists import append, empty_lists, laid_out, move_marked, packed, put_first
from nearcast.structures.rtree.node_lists import remove_row as remove_from
from nearcast.structures.rtree.nodes import ROOT, TreeArrays, all_rows, rows_below
from nearcast.structures.rtree.shrink import is_underfull, merge_or_borrow, root_is_thin, take_row
from nearcast.structures.rtree.tree_method import Annotations


class OrderArrays(NamedTuple):
    """The terms of a row begin at terms[offsets[row]]."""

    offsets: np.ndarray  # int64[rows]
    terms: np.ndarray  # int32[...]


class RowOrders:
    """The terms of rows in the order in which levels list them. Packed once removed rows have left more than half."""

    def __init__(self) -> None:
        self.start(0)

    @property
    def nbytes(self) -> int:
        return int(self.arrays.offsets.nbytes + self.arrays.terms.nbytes)

    def start(self, n_rows: int) -> None:
        """Drop all orders, and make room for row numbers below n_rows."""
        self.arrays = OrderArrays(np.zeros(n_rows, np.int64), np.zeros(0, np.int32))
        self._used = self._dead = 0

    def add(self, rows: np.ndarray, terms: np.ndarray, starts: np.ndarray, n_rows: int) -> None:
        offsets = grown(self.arrays.offsets, n_rows)
        offsets[rows] = self._used + starts[:-1]
        stored = grown(self.arrays.terms, self._used + len(terms))
        stored[self._used : self._used + len(terms)] = terms
        self.arrays = OrderArrays(offsets, stored)
        self._used += len(terms)

    def remove(self, n_terms: int) -> None:
        """Note that rows with `n_terms` terms in total were removed."""
        self._dead += n_terms

    @property
    def is_loose(self) -> bool:
        """Whether `pack` would free half of the memory."""
        return self._dead > 1024 and 2 * self._dead > self._used

    def pack(self, rows: np.ndarray, counts: np.ndarray) -> None:
        """Keep the orders of these rows, which have `counts` terms each."""
        offsets = self.arrays.offsets
        terms = gathered(self.arrays.terms, offsets[rows], counts)
        offsets[rows] = starts_of(counts)[:-1]
        self.arrays = OrderArrays(offsets, terms)
        self._used, self._dead = len(terms), 0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        arrays = {"order_offsets": self.arrays.offsets, "order_terms": self.arrays.terms[: self._used]}
        return arrays, {"order_dead": self._dead}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, int]) -> None:
        self.arrays = OrderArrays(arrays["order_offsets"], arrays["order_terms"])
        self._used, self._dead = len(self.arrays.terms), header["order_dead"]


class OrderedRows(NamedTuple):
    """The rows, and the terms of each row in order."""

    rows: RowArrays
    orders: OrderArrays


@kernel
def listed_terms(n, depth, height):
    """(first, stop): which of a row's n terms its ancestor of this depth lists."""
    if depth == height:
        return min(max(height - 1, 0), n), n
    return min(max(depth - 1, 0), n), min(depth, n)


@kernel
def _file(tree, lists, view, row, node):
    """Put a row into the lists of a node; return the lists."""
    height = tree.levels[ROOT]
    first, stop = listed_terms(np.int64(view.rows.n_terms[row]), height - tree.levels[node], height)
    for k in range(first, stop):
        key = term_key(node, view.orders.terms[view.orders.offsets[row] + k])
        lists = append(lists, key, np.int64(row), view.rows.boxes)
    return lists


@kernel
def _unfile(tree, lists, view, row, node):
    """Take a row out of the lists of a node."""
    height = tree.levels[ROOT]
    first, stop = listed_terms(np.int64(view.rows.n_terms[row]), height - tree.levels[node], height)
    for k in range(first, stop):
        remove_from(lists, term_key(node, view.orders.terms[view.orders.offsets[row] + k]), row)


@kernel
def _follow(tree, lists, view, marks, move):
    """Move entries that moved to a sibling; return the lists.

    In a leaf this goes row by row. In other nodes it goes list by list, with all rows of a list that moved at once: a
    search for each row would take the square of the length of the list.
    """
    source, target = move.source, move.target
    level = tree.levels[target]
    depth = tree.levels[ROOT] - level
    for k in range(move.first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], level)
        if level == 0:
            _unfile(tree, lists, view, below[0], source)
            lists = _file(tree, lists, view, below[0], target)
            continue
        for i in range(len(below)):
            marks[below[i]] = view.rows.n_terms[below[i]] >= depth
        for i in range(len(below)):
            if marks[below[i]] != 0:
                term = view.orders.terms[view.orders.offsets[below[i]] + depth - 1]
                lists = move_marked(lists, term_key(source, term), term_key(target, term), marks, view.rows.boxes)
    return lists


@kernel
def _insert(tree, lists, view, marks, new, done):
    for i in range(done, len(new)):
        if not takes_row(tree):
            return i, lists
        leaf = insert_row(tree, new[i], view.rows.boxes[new[i]])
        node = leaf
        while node >= 0:  # the root has no parent
            lists = _file(tree, lists, view, new[i], node)
            node = np.int64(tree.parents[node])
        node = leaf
        while node != ROOT and is_overfull(tree, node):
            lists = _follow(tree, lists, view, marks, split(tree, node))
            node = np.int64(tree.parents[node])
    return len(new), lists


@kernel
def _remove(tree, lists, view, marks, old, done):
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, lists
        node = np.int64(tree.leaves[old[i]])
        while node >= 0:  # the root has no parent
            _unfile(tree, lists, view, old[i], node)
            node = np.int64(tree.parents[node])
        node = take_row(tree, old[i])
        while is_underfull(tree, node):
            parent = np.int64(tree.parents[node])
            lists = _follow(tree, lists, view, marks, merge_or_borrow(tree, node))
            node = parent
    return len(old), lists


@kernel
def _count_all(tree, view, counts):
    """(table, counts, n): a table of all n lists, numbered in the order of the tree, and their lengths."""
    table = IntMapArrays(np.zeros(16, np.int64), np.full(16, ABSENT, np.int32))
    below, height, n = all_rows(tree), tree.levels[ROOT], 0
    n_terms, offsets, terms = view.rows.n_terms, view.orders.offsets, view.orders.terms
    for i in range(len(below)):
        node, n_own = np.int64(tree.leaves[below[i]]), np.int64(n_terms[below[i]])
        table = with_slots(table, n, n_own)
        for depth in range(height, -1, -1):
            first, stop = listed_terms(n_own, depth, height)
            for k in range(first, stop):
                slot, is_new = claim_slot(table.keys, table.values, term_key(node, terms[offsets[below[i]] + k]))
                if is_new:
                    table.values[slot] = n
                    n += 1
                counts[table.values[slot]] += 1
            node = np.int64(tree.parents[node])
    return table, counts, n


@kernel
def _fill_all(tree, lists, view):
    """Put every row into the lists that were laid out for it."""
    below, height = all_rows(tree), tree.levels[ROOT]
    for i in range(len(below)):
        row = below[i]
        node, n_own = np.int64(tree.leaves[row]), np.int64(view.rows.n_terms[row])
        for depth in range(height, -1, -1):
            first, stop = listed_terms(n_own, depth, height)
            for k in range(first, stop):
                key = term_key(node, view.orders.terms[view.orders.offsets[row] + k])
                put_first(lists, key, np.int64(row), view.rows.boxes[row])
            node = np.int64(tree.parents[node])


class LevelLists(Annotations):
    """The lists of all nodes of a tree."""

    prefix = "list"
    insert_kernel = staticmethod(_insert)
    remove_kernel = staticmethod(_remove)

    def __init__(self) -> None:
        self.arrays = empty_lists()
        self._marks = np.zeros(0, np.uint8)  # by row, all zero between calls

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(self._marks.nbytes)

    def build(self, tree: TreeArrays, rows: OrderedRows) -> None:
        """Replace all lists. Entries are counted first, so that every list gets the room it needs."""
        n_terms = int(rows.rows.n_terms[np.flatnonzero(tree.leaves >= 0)].sum(dtype=np.int64))
        table, counts, n = _count_all(tree, rows, np.zeros(max(1, n_terms), np.int32))
        self.arrays = laid_out(table.keys, table.values, counts[:n])
        _fill_all(tree, self.arrays, rows)

    def change(self, kernel: Callable[..., Any], tree: TreeArrays, rows: Any, some: np.ndarray, done: int) -> int:
        self._marks = grown(self._marks, len(tree.leaves), fill=0)
        done, lists = kernel(tree, self.arrays, rows, self._marks, some, done)
        self.arrays = packed(lists)
        return int(done)
