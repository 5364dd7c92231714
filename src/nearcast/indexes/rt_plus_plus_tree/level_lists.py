"""Lists by level: the i-th token of a row stands at its ancestor of depth i, what is left of them at its leaf.

The root's entries have depth 1; the root has no lists, unless it is a leaf itself, and then all tokens stand there.
So a row is in exactly as many lists as it has tokens. When the height changes every token stands elsewhere: all lists
are made anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMapArrays, find_slot
from nearcast.arrays.jit import kernel
from nearcast.indexes.rt_plus_plus_tree.row_orders import OrderArrays
from nearcast.matching.store import RowArrays
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.rtree.grow import add_row, is_overfull, leaf_for, split
from nearcast.structures.rtree.node_lists import (
    ListArrays,
    append,
    empty_lists,
    laid_out,
    move_marked,
    packed,
    put_first,
)
from nearcast.structures.rtree.node_lists import remove_row as remove_from
from nearcast.structures.rtree.nodes import ROOT, TreeArrays, all_rows, rows_below
from nearcast.structures.rtree.shrink import is_underfull, root_is_thin, settle, take_row
from nearcast.structures.rtree.tree import has_room


class Held(NamedTuple):
    """What is known of rows: their content, and their terms in order."""

    rows: RowArrays
    orders: OrderArrays


class LevelLists:
    """The lists of all nodes of a tree."""

    def __init__(self) -> None:
        self.arrays = empty_lists()
        self._marks = np.zeros(0, np.uint8)  # by row, all zero between calls

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays) + int(self._marks.nbytes)

    def build(self, tree: TreeArrays, held: Held) -> None:
        """Start anew with the rows that are in the tree: counted first, so that every list has the room it needs."""
        n_tokens = int(held.rows.n_terms[np.flatnonzero(tree.leaves >= 0)].sum(dtype=np.int64))
        table, counts, n = _count_all(tree, held, np.zeros(max(1, n_tokens), np.int32))
        self.arrays = laid_out(table.keys, table.values, counts[:n])
        _fill_all(tree, self.arrays, held)

    def insert(self, tree: TreeArrays, held: Held, new: np.ndarray, done: int) -> int:
        """Insert rows from `done` on until the root is overfull or nodes run out; return how many are done."""
        self._marks = grown(self._marks, len(tree.leaves), fill=0)
        done, lists = _insert(tree, self.arrays, held, new, done, self._marks)
        self.arrays = packed(lists)
        return int(done)

    def remove(self, tree: TreeArrays, held: Held, old: np.ndarray, done: int) -> int:
        """Remove rows from `done` on until the root is thin; return how many are done."""
        self._marks = grown(self._marks, len(tree.leaves), fill=0)
        done, lists = _remove(tree, self.arrays, held, old, done, self._marks)
        self.arrays = packed(lists)
        return int(done)

    def state(self) -> dict[str, np.ndarray]:
        return {f"list_{name}": array for name, array in self.arrays._asdict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))


@kernel
def standing(n, depth, height):
    """(first, stop): which of a row's n tokens stand at its ancestor of this depth."""
    if depth == height:
        return min(max(height - 1, 0), n), n
    return min(max(depth - 1, 0), n), min(depth, n)


@kernel
def _file(tree, lists, held, row, node):
    """Put a row into the lists of a node; return the arrays."""
    height = tree.levels[ROOT]
    first, stop = standing(np.int64(held.rows.n_terms[row]), height - tree.levels[node], height)
    for k in range(first, stop):
        key = term_key(node, held.orders.terms[held.orders.offsets[row] + k])
        lists = append(lists, key, np.int64(row), held.rows.boxes)
    return lists


@kernel
def _unfile(tree, lists, held, row, node, level):
    """Take a row out of the lists of a node, which had this level."""
    height = tree.levels[ROOT]
    first, stop = standing(np.int64(held.rows.n_terms[row]), height - level, height)
    for k in range(first, stop):
        remove_from(lists, term_key(node, held.orders.terms[held.orders.offsets[row] + k]), row)


@kernel
def _shift(tree, lists, held, step, marks):
    """Follow entries that went from one sibling to another; return the arrays.

    In a leaf row by row. Elsewhere list by list, all rows of one that moved at once: looking for each of them would
    take the square of its length.
    """
    source, target, first = step
    level = tree.levels[target]
    depth = tree.levels[ROOT] - level
    for k in range(first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], level)
        if level == 0:
            _unfile(tree, lists, held, below[0], source, level)
            lists = _file(tree, lists, held, below[0], target)
            continue
        for i in range(len(below)):
            marks[below[i]] = held.rows.n_terms[below[i]] >= depth
        for i in range(len(below)):
            if marks[below[i]] != 0:
                term = held.orders.terms[held.orders.offsets[below[i]] + depth - 1]
                lists = move_marked(lists, term_key(source, term), term_key(target, term), marks, held.rows.boxes)
    return lists


@kernel
def _insert(tree, lists, held, new, done, marks):
    for i in range(done, len(new)):
        if not has_room(tree) or is_overfull(tree, ROOT):
            return i, lists
        box = held.rows.boxes[new[i]]
        leaf = leaf_for(tree, box)
        add_row(tree, leaf, new[i], box)
        node = np.int64(leaf)
        lists = _file(tree, lists, held, new[i], node)
        while node != ROOT:
            node = np.int64(tree.parents[node])
            lists = _file(tree, lists, held, new[i], node)
        node = np.int64(leaf)
        while node != ROOT and is_overfull(tree, node):
            sibling = split(tree, node)
            lists = _shift(tree, lists, held, (node, sibling, 0), marks)
            node = np.int64(tree.parents[node])
    return len(new), lists


@kernel
def _remove(tree, lists, held, old, done, marks):
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, lists
        node = np.int64(tree.leaves[old[i]])
        _unfile(tree, lists, held, old[i], node, 0)
        while node != ROOT:
            node = np.int64(tree.parents[node])
            _unfile(tree, lists, held, old[i], node, tree.levels[node])
        node = take_row(tree, old[i])
        while is_underfull(tree, node):
            parent = np.int64(tree.parents[node])
            lists = _shift(tree, lists, held, settle(tree, node), marks)
            node = parent
    return len(old), lists


@kernel
def _count_all(tree, held, counts):
    """A table of all lists, numbered as they are met; their lengths in `counts`; how many there are."""
    table = IntMapArrays(np.zeros(16, np.int64), np.full(16, ABSENT, np.int32))
    below, height, n = all_rows(tree), tree.levels[ROOT], 0
    n_terms, offsets, terms = held.rows.n_terms, held.orders.offsets, held.orders.terms
    for i in range(len(below)):
        node, n_tokens = np.int64(tree.leaves[below[i]]), np.int64(n_terms[below[i]])
        table = with_slots(table, n, n_tokens)
        for depth in range(height, -1, -1):
            first, stop = standing(n_tokens, depth, height)
            for k in range(first, stop):
                key = term_key(node, terms[offsets[below[i]] + k])
                slot = find_slot(table, key)
                if table.values[slot] == ABSENT:
                    table.keys[slot] = key
                    table.values[slot] = n
                    n += 1
                counts[table.values[slot]] += 1
            node = np.int64(tree.parents[node])
    return table, counts, n


@kernel
def _fill_all(tree, lists, held):
    """Put every row into the lists that were laid out for it."""
    below, height = all_rows(tree), tree.levels[ROOT]
    for i in range(len(below)):
        row = below[i]
        node, n_tokens = np.int64(tree.leaves[row]), np.int64(held.rows.n_terms[row])
        for depth in range(height, -1, -1):
            first, stop = standing(n_tokens, depth, height)
            for k in range(first, stop):
                key = term_key(node, held.orders.terms[held.orders.offsets[row] + k])
                put_first(lists, key, np.int64(row), held.rows.boxes[row])
            node = np.int64(tree.parents[node])
