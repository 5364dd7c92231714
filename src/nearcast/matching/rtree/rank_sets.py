"""What hangs on the nodes of a tree of ranked rows: counted token sets, as in token_sets.py, and bounds.

Both follow each step of the tree. A row enters and leaves the sets of all nodes above it; the bounds of a node that
changed are computed anew, from the leaf up to the root.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap, IntMapArrays, count_down, count_up
from nearcast.arrays.jit import kernel
from nearcast.matching.rtree.grow import add_row, is_overfull, leaf_for, split
from nearcast.matching.rtree.node_table import token_key, with_slots
from nearcast.matching.rtree.nodes import ROOT, TreeArrays, rows_below
from nearcast.matching.rtree.rank_bounds import N_BOUNDS, bound_all, bound_node, bounds_of, join_bounds, part_bounds
from nearcast.matching.rtree.rank_tokens import RankedRows, standing_tokens
from nearcast.matching.rtree.shrink import is_underfull, root_is_thin, settle, take_row
from nearcast.matching.rtree.tree import has_room


class RankSets:
    """The sets and the bounds of all nodes of a tree."""

    def __init__(self) -> None:
        self._map = IntMap()
        self.bounds = np.zeros((1, N_BOUNDS))

    @property
    def table(self) -> IntMapArrays:
        return self._map.arrays

    @property
    def nbytes(self) -> int:
        return self._map.nbytes + int(self.bounds.nbytes)

    def build(self, tree: TreeArrays, held: RankedRows) -> None:
        """Start anew with the rows that are in the tree."""
        self._take(*_hang_all(tree, held, IntMap().arrays))
        self.bounds = np.zeros((len(tree.counts), N_BOUNDS))
        bound_all(tree, held, self.bounds)

    def insert(self, tree: TreeArrays, held: RankedRows, new: np.ndarray, done: int) -> int:
        """Insert rows from `done` on until the root is overfull or nodes run out; return how many are done."""
        self.bounds = grown(self.bounds, len(tree.counts))
        done, table, size = _insert(tree, held, self.table, self._map.size, self.bounds, new, done)
        self._take(table, size)
        return int(done)

    def remove(self, tree: TreeArrays, held: RankedRows, old: np.ndarray, done: int) -> int:
        """Remove rows from `done` on until the root is thin; return how many are done."""
        done, table, size = _remove(tree, held, self.table, self._map.size, self.bounds, old, done)
        self._take(table, size)
        return int(done)

    def _take(self, table: IntMapArrays, size: int) -> None:
        self._map.arrays, self._map.size = table, int(size)

    def state(self) -> dict[str, np.ndarray]:
        return {"token_keys": self.table.keys, "token_values": self.table.values, "bounds": self.bounds}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._map = IntMap.from_arrays(IntMapArrays(arrays["token_keys"], arrays["token_values"]))
        self.bounds = arrays["bounds"]


@kernel
def _enter(table, size, node, tokens):  # type: ignore[no-untyped-def]
    """One row more below a node; return the table and its size."""
    table = with_slots(table, size, len(tokens))
    for k in range(len(tokens)):
        size += count_up(table, token_key(node, tokens[k]))
    return table, size


@kernel
def _leave(table, size, node, tokens):  # type: ignore[no-untyped-def]
    """One row less below a node; return the table's size."""
    for k in range(len(tokens)):
        size -= count_down(table, token_key(node, tokens[k]))
    return size


@kernel
def _shift(tree, held, table, size, step):  # type: ignore[no-untyped-def]
    """Follow entries that went from one sibling to another; return the table and its size."""
    source, target, first = step
    for k in range(first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], tree.levels[target])
        for i in range(len(below)):
            tokens = standing_tokens(held, np.int64(below[i]))
            size = _leave(table, size, source, tokens)
            table, size = _enter(table, size, target, tokens)
    return table, size


@kernel
def _hang_all(tree, held, table):  # type: ignore[no-untyped-def]
    """All rows of the tree enter the nodes on their way up; return the table and its size."""
    size = 0
    for row in range(len(tree.leaves)):
        node = np.int64(tree.leaves[row])
        if node < 0:
            continue
        tokens = standing_tokens(held, row)
        while node >= 0:  # the root has no parent
            table, size = _enter(table, size, node, tokens)
            node = np.int64(tree.parents[node])
    return table, size


@kernel
def _insert(tree, held, table, size, bounds, new, done):  # type: ignore[no-untyped-def]
    for i in range(done, len(new)):
        if not has_room(tree) or is_overfull(tree, ROOT):
            return i, table, size
        row = np.int64(new[i])
        tokens, own_bounds = standing_tokens(held, row), bounds_of(held, row)
        node = np.int64(leaf_for(tree, held.rows.boxes[row]))
        add_row(tree, node, row, held.rows.boxes[row])
        while True:
            table, size = _enter(table, size, node, tokens)
            if node != ROOT and is_overfull(tree, node):
                sibling = split(tree, node)
                table, size = _shift(tree, held, table, size, (node, sibling, np.int64(0)))
                bound_node(tree, held, bounds, sibling)
                bound_node(tree, held, bounds, node)
            else:
                join_bounds(bounds, node, own_bounds)
            if node == ROOT:
                break
            node = np.int64(tree.parents[node])
    return len(new), table, size


@kernel
def _remove(tree, held, table, size, bounds, old, done):  # type: ignore[no-untyped-def]
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, table, size
        row = np.int64(old[i])
        tokens, own_bounds = standing_tokens(held, row), bounds_of(held, row)
        node = take_row(tree, row)
        while True:
            size = _leave(table, size, node, tokens)
            parent = np.int64(tree.parents[node])
            if is_underfull(tree, node):
                step = settle(tree, node)
                table, size = _shift(tree, held, table, size, step)
                bound_node(tree, held, bounds, step[0])
                bound_node(tree, held, bounds, step[1])
            else:
                part_bounds(tree, held, bounds, node, own_bounds)
            if node == ROOT:
                break
            node = parent
    return len(old), table, size
