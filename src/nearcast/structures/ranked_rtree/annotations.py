"""Annotations on the nodes of a ranked R-tree: near terms, far terms, and upper bounds on the score.

Styles `EVERY` and `PREFIX`: the near terms of a row are counted in the sets of all nodes above it (see term_sets.py).
Style `LEVELS`: the i-th near term of a row is in a list of its ancestor of depth i, and all further ones in lists of
its leaf. In all styles far terms and ANYWHERE are in lists of the root: where words alone are enough, place prunes
nothing, every leaf would be visited, and one list has all rows.

The annotations follow each step of the tree. When the height changes they are rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMapArrays, count_down, count_up
from nearcast.arrays.jit import kernel
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.ranked_rtree.bounds import (
    N_BOUNDS,
    bound_all,
    bound_node,
    bounds_of,
    join_bounds,
    update_bounds_without,
)
from nearcast.structures.ranked_rtree.terms import FAR, LEVELS, RankedRows, filed_terms
from nearcast.structures.rtree.grow import insert_row, is_overfull, split, takes_row
from nearcast.structures.rtree.node_lists import ListArrays, append, empty_lists, move_marked, packed
from nearcast.structures.rtree.node_lists import remove_row as remove_from
from nearcast.structures.rtree.nodes import ROOT, TreeArrays, all_rows, rows_below
from nearcast.structures.rtree.shrink import is_underfull, merge_or_borrow, root_is_thin, take_row
from nearcast.structures.rtree.tree_method import Annotations


class AnnotationArrays(NamedTuple):
    sets: IntMapArrays  # (node, near term) -> rows below that are filed under it; empty in style LEVELS
    n_sets: np.ndarray  # int64[1]           keys in `sets`
    lists: ListArrays  # (node, term) -> rows
    bounds: np.ndarray  # float64[nodes, N_BOUNDS]


def _nothing(n_nodes: int) -> AnnotationArrays:
    sets = IntMapArrays(np.zeros(16, np.int64), np.full(16, ABSENT, np.int32))
    return AnnotationArrays(sets, _n_keys(sets), empty_lists(), np.zeros((n_nodes, N_BOUNDS)))


def _n_keys(sets: IntMapArrays) -> np.ndarray:
    return np.array([np.count_nonzero(sets.values != ABSENT)], np.int64)


@kernel
def _is_listed(tree, ranked, terms, k, node):
    """Whether the k-th term that a row is filed under, in terms[k], is in a list of this node."""
    if terms[k] >= FAR:
        return node == ROOT
    height = tree.levels[ROOT]
    return ranked.style == LEVELS and min(k + 1, height) == height - tree.levels[node]


@kernel
def _enter(tree, ranked, notes, row, terms, node):
    """Annotate a node with one more row below it; return the annotations."""
    sets, lists = notes.sets, notes.lists
    if ranked.style != LEVELS:
        sets = with_slots(sets, notes.n_sets[0], len(terms))
    for k in range(len(terms)):
        if _is_listed(tree, ranked, terms, k, node):
            lists = append(lists, term_key(node, terms[k]), row, ranked.rows.boxes)
        elif ranked.style != LEVELS and terms[k] < FAR:
            notes.n_sets[0] += count_up(sets, term_key(node, terms[k]))
    return AnnotationArrays(sets, notes.n_sets, lists, notes.bounds)


@kernel
def _leave(tree, ranked, notes, row, terms, node):
    """Take one row out of the annotations of a node. A node that was removed meanwhile still has its level."""
    for k in range(len(terms)):
        if _is_listed(tree, ranked, terms, k, node):
            remove_from(notes.lists, term_key(node, terms[k]), row)
        elif ranked.style != LEVELS and terms[k] < FAR:
            notes.n_sets[0] -= count_down(notes.sets, term_key(node, terms[k]))


@kernel
def _follow(tree, ranked, notes, marks, move):
    """Move the annotations of entries that moved to a sibling; return the annotations."""
    source, target = move.source, move.target
    level = tree.levels[target]
    for k in range(move.first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], level)
        if level > 0 and ranked.style == LEVELS:
            lists = _move_lists(tree, ranked, notes.lists, marks, move, below)
            notes = AnnotationArrays(notes.sets, notes.n_sets, lists, notes.bounds)
            continue
        for i in range(len(below)):
            row = np.int64(below[i])
            terms = filed_terms(ranked, row)
            _leave(tree, ranked, notes, row, terms, source)
            notes = _enter(tree, ranked, notes, row, terms, target)
    bound_node(tree, ranked, notes.bounds, source)
    bound_node(tree, ranked, notes.bounds, target)
    return notes


@kernel
def _move_lists(tree, ranked, lists, marks, move, below):
    """Move rows between the lists of inner nodes, list by list because these lists are long; return the lists."""
    depth = tree.levels[ROOT] - tree.levels[move.target]
    terms = np.empty(len(below), np.int64)
    for i in range(len(below)):
        filed = filed_terms(ranked, np.int64(below[i]))
        terms[i] = filed[depth - 1] if depth <= len(filed) else FAR
        marks[below[i]] = terms[i] < FAR
    for i in range(len(below)):
        if marks[below[i]] != 0:
            old, new = term_key(move.source, terms[i]), term_key(move.target, terms[i])
            lists = move_marked(lists, old, new, marks, ranked.rows.boxes)
    return lists


@kernel
def _annotate_all(tree, ranked, notes):
    """Annotate all nodes, in the order of the tree, so that the annotations of a node stay in the cache."""
    below = all_rows(tree)
    for i in range(len(below)):
        row, node = np.int64(below[i]), np.int64(tree.leaves[below[i]])
        terms = filed_terms(ranked, row)
        while node >= 0:  # the root has no parent
            notes = _enter(tree, ranked, notes, row, terms, node)
            node = np.int64(tree.parents[node])
    return notes


@kernel
def _insert(tree, ranked, notes, marks, new, done):
    for i in range(done, len(new)):
        if not takes_row(tree):
            return i, notes
        row = np.int64(new[i])
        terms, own_bounds = filed_terms(ranked, row), bounds_of(ranked, row)
        node = insert_row(tree, row, ranked.rows.boxes[row])
        while node >= 0:  # the root has no parent
            notes = _enter(tree, ranked, notes, row, terms, node)
            if node != ROOT and is_overfull(tree, node):
                notes = _follow(tree, ranked, notes, marks, split(tree, node))
            else:
                join_bounds(notes.bounds, node, own_bounds)
            node = np.int64(tree.parents[node])
    return len(new), notes


@kernel
def _remove(tree, ranked, notes, marks, old, done):
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, notes
        row = np.int64(old[i])
        terms, own_bounds = filed_terms(ranked, row), bounds_of(ranked, row)
        node = take_row(tree, row)
        while node >= 0:  # the root has no parent
            _leave(tree, ranked, notes, row, terms, node)
            parent = np.int64(tree.parents[node])
            if is_underfull(tree, node):
                notes = _follow(tree, ranked, notes, marks, merge_or_borrow(tree, node))
            else:
                update_bounds_without(tree, ranked, notes.bounds, node, own_bounds)
            node = parent
    return len(old), notes


class NodeAnnotations(Annotations):
    """Sets, lists and bounds of all nodes of a tree."""

    insert_kernel = staticmethod(_insert)
    remove_kernel = staticmethod(_remove)

    def __init__(self) -> None:
        self.arrays = _nothing(1)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state().values())

    def build(self, tree: TreeArrays, rows: RankedRows) -> None:
        self._replace(_annotate_all(tree, rows, _nothing(len(tree.counts))))
        bound_all(tree, rows, self.arrays.bounds)

    def change(self, kernel: Callable[..., Any], tree: TreeArrays, rows: Any, some: np.ndarray, done: int) -> int:
        notes = self.arrays._replace(bounds=grown(self.arrays.bounds, len(tree.counts)))
        done, notes = kernel(tree, rows, notes, np.zeros(len(tree.leaves), np.uint8), some, done)
        self._replace(notes)
        return int(done)

    def _replace(self, notes: AnnotationArrays) -> None:
        self.arrays = notes._replace(lists=packed(notes.lists))

    def state(self) -> dict[str, np.ndarray]:
        sets, _, lists, bounds = self.arrays
        named = {f"set_{name}": array for name, array in sets._asdict().items()}
        return named | {f"list_{name}": array for name, array in lists._asdict().items()} | {"bounds": bounds}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        sets = IntMapArrays(*(arrays[f"set_{name}"] for name in IntMapArrays._fields))
        lists = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))
        self.arrays = AnnotationArrays(sets, _n_keys(sets), lists, arrays["bounds"])
