"""What hangs on the nodes of a tree of ranked rows: near tokens, as sets or as lists by level; far ones; and bounds.

`EVERY` and `PREFIX`: the near tokens of a row are counted in the sets of all nodes above it, as in term_sets.py.
`LEVELS`: the i-th of them stands at its ancestor of depth i, in a list, what is left of them at the leaf, as in
level_lists.py. In all three far tokens, and ANYWHERE, stand in lists at the root: where words alone are enough place
prunes nothing, every leaf would be asked, and one list tells all.

All follow each step of the tree. When the height changes they are made anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMapArrays, count_down, count_up
from nearcast.arrays.jit import kernel
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.ranked_rtree.bounds import N_BOUNDS, bound_all, bound_node, bounds_of, join_bounds, part_bounds
from nearcast.structures.ranked_rtree.tokens import FAR, LEVELS, RankedRows, standing_tokens
from nearcast.structures.rtree.grow import add_row, is_overfull, leaf_for, split
from nearcast.structures.rtree.node_lists import ListArrays, append, empty_lists, move_marked, packed
from nearcast.structures.rtree.node_lists import remove_row as remove_from
from nearcast.structures.rtree.nodes import ROOT, TreeArrays, all_rows, rows_below
from nearcast.structures.rtree.shrink import is_underfull, root_is_thin, settle, take_row
from nearcast.structures.rtree.tree import has_room


class HungArrays(NamedTuple):
    sets: IntMapArrays  # (node, near token) -> rows below that stand with it; empty where they stand at levels
    n_sets: np.ndarray  # int64[1]           keys in use there
    lists: ListArrays  # (node, token) -> rows
    bounds: np.ndarray  # float64[nodes, N_BOUNDS]


class Hung:
    """Sets, lists and bounds of all nodes of a tree."""

    def __init__(self) -> None:
        self.arrays = _nothing(1)

    @property
    def nbytes(self) -> int:
        sets, _, lists, bounds = self.arrays
        return sum(int(array.nbytes) for array in (*sets, *lists, bounds))

    def build(self, tree: TreeArrays, held: RankedRows) -> None:
        """Start anew with the rows that are in the tree."""
        self._take(_hang_all(tree, held, _nothing(len(tree.counts))))
        bound_all(tree, held, self.arrays.bounds)

    def insert(self, tree: TreeArrays, held: RankedRows, new: np.ndarray, done: int) -> int:
        """Insert rows from `done` on until the root is overfull or nodes run out; return how many are done."""
        hung = self.arrays._replace(bounds=grown(self.arrays.bounds, len(tree.counts)))
        done, hung = _insert(tree, held, hung, np.zeros(len(tree.leaves), np.uint8), new, done)
        self._take(hung)
        return int(done)

    def remove(self, tree: TreeArrays, held: RankedRows, old: np.ndarray, done: int) -> int:
        """Remove rows from `done` on until the root is thin; return how many are done."""
        done, hung = _remove(tree, held, self.arrays, np.zeros(len(tree.leaves), np.uint8), old, done)
        self._take(hung)
        return int(done)

    def _take(self, hung: HungArrays) -> None:
        self.arrays = hung._replace(lists=packed(hung.lists))

    def state(self) -> dict[str, np.ndarray]:
        sets, _, lists, bounds = self.arrays
        named = {f"set_{name}": array for name, array in sets._asdict().items()}
        return named | {f"list_{name}": array for name, array in lists._asdict().items()} | {"bounds": bounds}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        sets = IntMapArrays(*(arrays[f"set_{name}"] for name in IntMapArrays._fields))
        lists = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))
        self.arrays = HungArrays(sets, _counted(sets), lists, arrays["bounds"])


def _nothing(n_nodes: int) -> HungArrays:
    sets = IntMapArrays(np.zeros(16, np.int64), np.full(16, ABSENT, np.int32))
    return HungArrays(sets, _counted(sets), empty_lists(), np.zeros((n_nodes, N_BOUNDS)))


def _counted(sets: IntMapArrays) -> np.ndarray:
    return np.array([np.count_nonzero(sets.values != ABSENT)], np.int64)


@kernel
def _is_here(tree, held, tokens, k, node):
    """Whether a row's k-th token stands in a list of this node. Those of the near prefix come first."""
    if tokens[k] >= FAR:
        return node == ROOT
    height = tree.levels[ROOT]
    return held.style == LEVELS and min(k + 1, height) == height - tree.levels[node]


@kernel
def _enter(tree, held, hung, row, tokens, node):
    """One row more below a node; return what hangs."""
    sets, lists = hung.sets, hung.lists
    if held.style != LEVELS:
        sets = with_slots(sets, hung.n_sets[0], len(tokens))
    for k in range(len(tokens)):
        if _is_here(tree, held, tokens, k, node):
            lists = append(lists, term_key(node, tokens[k]), row, held.rows.boxes)
        elif held.style != LEVELS and tokens[k] < FAR:
            hung.n_sets[0] += count_up(sets, term_key(node, tokens[k]))
    return HungArrays(sets, hung.n_sets, lists, hung.bounds)


@kernel
def _leave(tree, held, hung, row, tokens, node):
    """One row less below a node. One that went still has its level."""
    for k in range(len(tokens)):
        if _is_here(tree, held, tokens, k, node):
            remove_from(hung.lists, term_key(node, tokens[k]), row)
        elif held.style != LEVELS and tokens[k] < FAR:
            hung.n_sets[0] -= count_down(hung.sets, term_key(node, tokens[k]))


@kernel
def _shift(tree, held, hung, marks, step):
    """Follow entries that went from one sibling to another; return what hangs."""
    source, target, first = step
    level = tree.levels[target]
    for k in range(first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], level)
        if level > 0 and held.style == LEVELS:
            lists = _move_lists(tree, held, hung.lists, marks, (source, target), below)
            hung = HungArrays(hung.sets, hung.n_sets, lists, hung.bounds)
            continue
        for i in range(len(below)):
            row = np.int64(below[i])
            tokens = standing_tokens(held, row)
            _leave(tree, held, hung, row, tokens, source)
            hung = _enter(tree, held, hung, row, tokens, target)
    bound_node(tree, held, hung.bounds, source)
    bound_node(tree, held, hung.bounds, target)
    return hung


@kernel
def _move_lists(tree, held, lists, marks, nodes, below):
    """Move rows between the lists of inner nodes, list by list: they are long there. Returns the lists."""
    source, target = nodes
    depth = tree.levels[ROOT] - tree.levels[target]
    terms = np.empty(len(below), np.int64)
    for i in range(len(below)):
        tokens = standing_tokens(held, np.int64(below[i]))
        terms[i] = tokens[depth - 1] if depth <= len(tokens) else FAR
        marks[below[i]] = terms[i] < FAR
    for i in range(len(below)):
        if marks[below[i]] != 0:
            keys = term_key(source, terms[i]), term_key(target, terms[i])
            lists = move_marked(lists, keys[0], keys[1], marks, held.rows.boxes)
    return lists


@kernel
def _hang_all(tree, held, hung):
    """All rows enter the nodes on their way up; those of a node one after the other, so that it lies in the cache."""
    below = all_rows(tree)
    for i in range(len(below)):
        row, node = np.int64(below[i]), np.int64(tree.leaves[below[i]])
        tokens = standing_tokens(held, row)
        while node >= 0:  # the root has no parent
            hung = _enter(tree, held, hung, row, tokens, node)
            node = np.int64(tree.parents[node])
    return hung


@kernel
def _insert(tree, held, hung, marks, new, done):
    for i in range(done, len(new)):
        if not has_room(tree) or is_overfull(tree, ROOT):
            return i, hung
        row = np.int64(new[i])
        tokens, own_bounds = standing_tokens(held, row), bounds_of(held, row)
        node = np.int64(leaf_for(tree, held.rows.boxes[row]))
        add_row(tree, node, row, held.rows.boxes[row])
        while True:
            hung = _enter(tree, held, hung, row, tokens, node)
            if node != ROOT and is_overfull(tree, node):
                hung = _shift(tree, held, hung, marks, (node, split(tree, node), np.int64(0)))
            else:
                join_bounds(hung.bounds, node, own_bounds)
            if node == ROOT:
                break
            node = np.int64(tree.parents[node])
    return len(new), hung


@kernel
def _remove(tree, held, hung, marks, old, done):
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, hung
        row = np.int64(old[i])
        tokens, own_bounds = standing_tokens(held, row), bounds_of(held, row)
        node = take_row(tree, row)
        while True:
            _leave(tree, held, hung, row, tokens, node)
            parent = np.int64(tree.parents[node])
            if is_underfull(tree, node):
                hung = _shift(tree, held, hung, marks, settle(tree, node))
            else:
                part_bounds(tree, held, hung.bounds, node, own_bounds)
            if node == ROOT:
                break
            node = parent
    return len(old), hung
