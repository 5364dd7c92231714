"""Lists by level for ranked rows, and bounds: the i-th token of a row's near prefix stands at its ancestor of depth i,
what is left of it at the leaf (as in level_lists.py); its far prefix, which place cannot help to prune, and ANYWHERE at
the root.

Lists and bounds follow each step of the tree. When the height changes every token stands elsewhere: all is made anew.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.matching.rtree.grow import add_row, is_overfull, leaf_for, split
from nearcast.matching.rtree.node_lists import ListArrays, append, empty_lists, move_marked, packed
from nearcast.matching.rtree.node_lists import remove_row as remove_from
from nearcast.matching.rtree.node_table import token_key
from nearcast.matching.rtree.nodes import ROOT, TreeArrays, rows_below
from nearcast.matching.rtree.rank_bounds import N_BOUNDS, bound_all, bound_node, bounds_of, join_bounds, part_bounds
from nearcast.matching.rtree.rank_tokens import FAR, RankedRows, standing_tokens
from nearcast.matching.rtree.shrink import is_underfull, root_is_thin, settle, take_row
from nearcast.matching.rtree.tree import has_room


class RankLists:
    """The lists and the bounds of all nodes of a tree."""

    def __init__(self) -> None:
        self.arrays = empty_lists()
        self.bounds = np.zeros((1, N_BOUNDS))

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays) + int(self.bounds.nbytes)

    def build(self, tree: TreeArrays, held: RankedRows) -> None:
        """Start anew with the rows that are in the tree."""
        self.arrays = packed(_hang_all(tree, held, empty_lists()))
        self.bounds = np.zeros((len(tree.counts), N_BOUNDS))
        bound_all(tree, held, self.bounds)

    def insert(self, tree: TreeArrays, held: RankedRows, new: np.ndarray, done: int) -> int:
        """Insert rows from `done` on until the root is overfull or nodes run out; return how many are done."""
        self.bounds = grown(self.bounds, len(tree.counts))
        marks = np.zeros(len(tree.leaves), np.uint8)
        done, lists = _insert(tree, held, (self.bounds, marks), self.arrays, new, done)
        self.arrays = packed(lists)
        return int(done)

    def remove(self, tree: TreeArrays, held: RankedRows, old: np.ndarray, done: int) -> int:
        """Remove rows from `done` on until the root is thin; return how many are done."""
        marks = np.zeros(len(tree.leaves), np.uint8)
        done, lists = _remove(tree, held, (self.bounds, marks), self.arrays, old, done)
        self.arrays = packed(lists)
        return int(done)

    def state(self) -> dict[str, np.ndarray]:
        return {f"list_{name}": array for name, array in self.arrays._asdict().items()} | {"bounds": self.bounds}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))
        self.bounds = arrays["bounds"]


@kernel
def _depth_of(tokens, k, height):  # type: ignore[no-untyped-def]
    """At which of a row's ancestors its k-th token stands. Those of the near prefix come first."""
    return 0 if tokens[k] >= FAR else min(k + 1, height)


@kernel
def _file(tree, held, lists, row, tokens, node):  # type: ignore[no-untyped-def]
    """Put a row into the lists of a node; return the arrays."""
    height = tree.levels[ROOT]
    for k in range(len(tokens)):
        if _depth_of(tokens, k, height) == height - tree.levels[node]:
            lists = append(lists, token_key(node, tokens[k]), row, held.rows.boxes[row])
    return lists


@kernel
def _unfile(tree, lists, row, tokens, node):  # type: ignore[no-untyped-def]
    """Take a row out of the lists of a node. One that went still has its level."""
    height = tree.levels[ROOT]
    for k in range(len(tokens)):
        if _depth_of(tokens, k, height) == height - tree.levels[node]:
            remove_from(lists, token_key(node, tokens[k]), row)


@kernel
def _shift(tree, held, lists, marks, step):  # type: ignore[no-untyped-def]
    """Follow entries that went from one sibling to another; return the arrays. In a leaf row by row, elsewhere list by
    list: lists are long there.
    """
    source, target, first = step
    level = tree.levels[target]
    depth = tree.levels[ROOT] - level
    for k in range(first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], level)
        if level == 0:
            row = np.int64(below[0])
            tokens = standing_tokens(held, row)
            _unfile(tree, lists, row, tokens, source)
            lists = _file(tree, held, lists, row, tokens, target)
            continue
        terms = np.empty(len(below), np.int64)
        for i in range(len(below)):
            tokens = standing_tokens(held, np.int64(below[i]))
            terms[i] = tokens[depth - 1] if depth <= len(tokens) else FAR
            marks[below[i]] = terms[i] < FAR
        for i in range(len(below)):
            if marks[below[i]] != 0:
                keys = token_key(source, terms[i]), token_key(target, terms[i])
                lists = move_marked(lists, keys[0], keys[1], marks, held.rows.boxes)
    return lists


@kernel
def _hang_all(tree, held, lists):  # type: ignore[no-untyped-def]
    for row in range(len(tree.leaves)):
        node = np.int64(tree.leaves[row])
        if node < 0:
            continue
        tokens = standing_tokens(held, row)
        while node >= 0:  # the root has no parent
            lists = _file(tree, held, lists, row, tokens, node)
            node = np.int64(tree.parents[node])
    return lists


@kernel
def _insert(tree, held, work, lists, new, done):  # type: ignore[no-untyped-def]
    bounds, marks = work
    for i in range(done, len(new)):
        if not has_room(tree) or is_overfull(tree, ROOT):
            return i, lists
        row = np.int64(new[i])
        tokens, own_bounds = standing_tokens(held, row), bounds_of(held, row)
        node = np.int64(leaf_for(tree, held.rows.boxes[row]))
        add_row(tree, node, row, held.rows.boxes[row])
        while True:
            lists = _file(tree, held, lists, row, tokens, node)
            if node != ROOT and is_overfull(tree, node):
                sibling = split(tree, node)
                lists = _shift(tree, held, lists, marks, (node, sibling, np.int64(0)))
                bound_node(tree, held, bounds, sibling)
                bound_node(tree, held, bounds, node)
            else:
                join_bounds(bounds, node, own_bounds)
            if node == ROOT:
                break
            node = np.int64(tree.parents[node])
    return len(new), lists


@kernel
def _remove(tree, held, work, lists, old, done):  # type: ignore[no-untyped-def]
    bounds, marks = work
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, lists
        row = np.int64(old[i])
        tokens, own_bounds = standing_tokens(held, row), bounds_of(held, row)
        node = take_row(tree, row)
        while True:
            _unfile(tree, lists, row, tokens, node)
            parent = np.int64(tree.parents[node])
            if is_underfull(tree, node):
                step = settle(tree, node)
                lists = _shift(tree, held, lists, marks, step)
                bound_node(tree, held, bounds, step[0])
                bound_node(tree, held, bounds, step[1])
            else:
                part_bounds(tree, held, bounds, node, own_bounds)
            if node == ROOT:
                break
            node = parent
    return len(old), lists
