"""Counted token sets: for each node and token, how many rows below the node stand there with that token.

One flat hash table for the whole tree, keyed by (node, token): 12 bytes a slot, no table of its own for each node. A
row stands with all its terms, or with the one that was chosen for it. A count that falls to 0 is forgotten, so no
token is stale. Chosen tokens also lie in the leaves, beside the rows: a leaf's are one stretch of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMap, IntMapArrays, count_down, home_slot
from nearcast.arrays.jit import kernel
from nearcast.matching.store import RowArrays
from nearcast.structures.node_table import term_key, with_slots
from nearcast.structures.rtree.grow import add_row, is_overfull, leaf_for, split
from nearcast.structures.rtree.nodes import ROOT, TreeArrays, all_rows, rows_below
from nearcast.structures.rtree.shrink import is_underfull, root_is_thin, settle, take_row
from nearcast.structures.rtree.tree import has_room


class Chosen(NamedTuple):
    """The term that stands for each row."""

    of_rows: np.ndarray  # int32[rows]; empty where a row stands with all its terms
    in_leaves: np.ndarray  # int32[nodes, B + 1], as the rows lie in the leaves; means nothing in other nodes

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
"""No term is chosen: a row stands with all of them."""


class TokenSets:
    """The sets of all nodes of a tree."""

    def __init__(self) -> None:
        self._map = IntMap()

    @property
    def arrays(self) -> IntMapArrays:
        return self._map.arrays

    @property
    def nbytes(self) -> int:
        return self._map.nbytes

    def build(self, tree: TreeArrays, rows: RowArrays, chosen: Chosen) -> None:
        """Start anew with the rows that are in the tree."""
        self._take(*_hang_all(tree, IntMap().arrays, rows, chosen))

    def insert(self, tree: TreeArrays, rows: RowArrays, chosen: Chosen, new: np.ndarray, done: int) -> int:
        """Insert rows from `done` on until the root is overfull or nodes run out; return how many are done."""
        done, table, size = _insert(tree, self.arrays, self._map.size, rows, chosen, new, done)
        self._take(table, size)
        return int(done)

    def remove(self, tree: TreeArrays, rows: RowArrays, chosen: Chosen, old: np.ndarray, done: int) -> int:
        """Remove rows from `done` on until the root is thin; return how many are done."""
        done, table, size = _remove(tree, self.arrays, self._map.size, rows, chosen, old, done)
        self._take(table, size)
        return int(done)

    def _take(self, table: IntMapArrays, size: int) -> None:
        self._map.arrays, self._map.size = table, int(size)

    def state(self) -> dict[str, np.ndarray]:
        return {f"token_{name}": array for name, array in self.arrays._asdict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._map = IntMap.from_arrays(IntMapArrays(arrays["token_keys"], arrays["token_values"]))


@kernel
def tokens_of(rows, chosen, row):
    """(array, first, stop): what a row stands with."""
    if len(chosen.of_rows) == 0:
        first = rows.offsets[row]
        return rows.terms, first, first + np.int64(rows.n_terms[row])
    return chosen.of_rows, np.int64(row), np.int64(row) + 1


@kernel
def _place_tokens(tree, chosen, node):
    """Write the chosen tokens of a leaf's rows beside them."""
    if len(chosen.of_rows) > 0 and tree.levels[node] == 0:
        for k in range(tree.counts[node]):
            chosen.in_leaves[node, k] = chosen.of_rows[tree.slots[node, k]]


@kernel
def _count_up(keys, values, node, tokens):
    """Count tokens once more at a node; return how many are new there. There is room."""
    terms, first, stop = tokens
    mask, added = len(keys) - 1, 0
    for k in range(first, stop):
        key = term_key(node, terms[k])
        slot = home_slot(key, mask)
        while values[slot] != ABSENT and keys[slot] != key:
            slot = (slot + 1) & mask
        if values[slot] == ABSENT:
            keys[slot] = key
            values[slot] = 0
            added += 1
        values[slot] += 1
    return added


@kernel
def _enter(table, size, node, tokens):
    """One row more below a node; return the table and its size."""
    table = with_slots(table, size, tokens[2] - tokens[1])
    return table, size + _count_up(table.keys, table.values, node, tokens)


@kernel
def _leave(table, size, node, tokens):
    """One row less below a node; return the table's size."""
    terms, first, stop = tokens
    for k in range(first, stop):
        size -= count_down(table, term_key(node, terms[k]))
    return size


@kernel
def _shift(tree, table, size, rows, chosen, step):
    """Follow entries that went from one sibling to another; return the table and its size."""
    source, target, first = step
    for k in range(first, tree.counts[target]):
        below = rows_below(tree, tree.slots[target, k], tree.levels[target])
        for i in range(len(below)):
            tokens = tokens_of(rows, chosen, below[i])
            size = _leave(table, size, source, tokens)
            table, size = _enter(table, size, target, tokens)
    _place_tokens(tree, chosen, source)
    _place_tokens(tree, chosen, target)
    return table, size


@kernel
def _hang_all(tree, table, rows, chosen):
    """All rows enter the nodes on their way up, level by level and in the order of the tree, so that what is counted
    lies in the cache. Arrays are taken out of their tuples: a row costs a tenth of a microsecond here.
    """
    below, parents, leaves, size = all_rows(tree), tree.parents, tree.leaves, 0
    keys, values = table.keys, table.values
    for level in range(tree.levels[ROOT] + 1):
        for i in range(len(below)):
            node = np.int64(leaves[below[i]])
            for _ in range(level):
                node = np.int64(parents[node])
            tokens = tokens_of(rows, chosen, below[i])
            if (size + tokens[2] - tokens[1]) * 10 > len(keys) * 7:
                table = with_slots(IntMapArrays(keys, values), size, tokens[2] - tokens[1])
                keys, values = table.keys, table.values
            size += _count_up(keys, values, node, tokens)
    for node in range(len(tree.counts)):
        _place_tokens(tree, chosen, node)
    return IntMapArrays(keys, values), size


@kernel
def _insert(tree, table, size, rows, chosen, new, done):
    for i in range(done, len(new)):
        if not has_room(tree) or is_overfull(tree, ROOT):
            return i, table, size
        row, tokens = new[i], tokens_of(rows, chosen, new[i])
        leaf = leaf_for(tree, rows.boxes[row])
        node = np.int64(leaf)
        table, size = _enter(table, size, node, tokens)
        while node != ROOT:
            node = np.int64(tree.parents[node])
            table, size = _enter(table, size, node, tokens)
        add_row(tree, leaf, row, rows.boxes[row])
        node = np.int64(leaf)
        _place_tokens(tree, chosen, node)
        while node != ROOT and is_overfull(tree, node):
            sibling = split(tree, node)
            table, size = _shift(tree, table, size, rows, chosen, (node, sibling, 0))
            node = np.int64(tree.parents[node])
    return len(new), table, size


@kernel
def _remove(tree, table, size, rows, chosen, old, done):
    for i in range(done, len(old)):
        if root_is_thin(tree):
            return i, table, size
        tokens = tokens_of(rows, chosen, old[i])
        node = np.int64(tree.leaves[old[i]])
        size = _leave(table, size, node, tokens)
        while node != ROOT:
            node = np.int64(tree.parents[node])
            size = _leave(table, size, node, tokens)
        node = take_row(tree, old[i])
        _place_tokens(tree, chosen, node)
        while is_underfull(tree, node):
            parent = np.int64(tree.parents[node])
            table, size = _shift(tree, table, size, rows, chosen, settle(tree, node))
            node = parent
    return len(old), table, size
