"""Builds a trie at once: level by level, with one sort of (parent, rank) for each level.

Siblings get consecutive numbers and a level lies together. Lists lie in the order of their sets, so that the rows of a
subtree are one range of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.arena import add_to_parents
from nearcast.structures.boxes import set_box
from nearcast.structures.trie import layout
from nearcast.structures.trie.layout import TrieArrays, empty_node, set_range, views_of, widen


class RowSets(NamedTuple):
    """Rows with the ranks of their terms (rarest first) and their boxes (rounded outward)."""

    rows: np.ndarray  # int32[n]
    ranks: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]
    boxes: np.ndarray  # float32[n,4]


def empty_trie(n_nodes: int, n_rows: int, n_numbered: int, gap: int) -> TrieArrays:
    """A trie that is only a root, with room for so many nodes, rows in lists, and row numbers of the store."""
    n_nodes = max(2, n_nodes)  # NumPy takes the halves of a single record for contiguous, which is another type
    trie = TrieArrays(
        **views_of(np.zeros((n_nodes, 8), np.int32)),
        ranges=np.zeros((n_nodes, 2), np.int64),
        ranks=np.full(n_nodes, layout.NONE, np.int32),
        parents=np.full(n_nodes, layout.NONE, np.int32),
        below=np.zeros(n_nodes, np.int32),
        rooms=np.zeros((n_nodes, 2), np.int32),
        debts=np.zeros(n_nodes, np.int32),
        free=np.zeros(n_nodes, np.int32),
        children=np.zeros((n_nodes, 2), np.int32),
        rows=np.zeros(n_rows, np.int32),
        row_boxes=np.zeros((n_rows, 4), np.float32),
        numbers=np.zeros(n_numbered, np.int64),
        leaves=np.full(n_numbered, layout.NONE, np.int32),
        head=np.array([1, 0, 0, 0, gap, 0], np.int64),
    )
    empty_node(trie, layout.ROOT)
    return trie


def built_trie(sets: RowSets, n_numbered: int, gap: int) -> TrieArrays:
    """A trie of these rows, which are below `n_numbered`."""
    parents, ranks, leaves = _number_nodes(sets)
    n = len(ranks)
    trie = empty_trie(n, len(sets.rows), n_numbered, gap)
    trie.ranks[:n], trie.parents[:n] = ranks, parents
    trie.children[: n - 1, 0], trie.children[: n - 1, 1] = ranks[1:], np.arange(1, n)
    trie.head[:4] = n, 0, n - 1, len(sets.rows)
    trie.rooms[:n, 0], trie.rooms[:n, 1] = np.bincount(parents[1:], minlength=n), np.bincount(leaves, minlength=n)
    trie.spans[:n, layout.FIRST_CHILD] = np.searchsorted(parents[1:], np.arange(n))
    trie.spans[:n, layout.N_CHILDREN], trie.below[:n] = trie.rooms[:n, 0], trie.rooms[:n, 1]
    add_to_parents(trie.below, parents, n)
    _lay_out(trie)
    _fill(trie, leaves, sets)
    _set_boxes_and_ranges(trie)
    return trie


def _number_nodes(sets: RowSets) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parents and ranks of all nodes, level by level, siblings by rank; and the node of each row's set.

    A row takes part in as many levels as it has terms.
    """
    counts = np.diff(sets.starts)
    leaves = np.zeros(len(sets.rows), np.int32)
    parents, ranks = [np.array([layout.NONE], np.int32)], [np.array([layout.NONE], np.int32)]
    active, depth, first = np.flatnonzero(counts > 0), 0, 1
    while len(active):
        keys = leaves[active].astype(np.int64) << 32 | sets.ranks[sets.starts[active] + depth]
        order = np.argsort(keys)
        keys = keys[order]
        is_new = np.diff(keys, prepend=-1) > 0
        leaves[active[order]] = first + np.cumsum(is_new, dtype=np.int32) - 1
        keys = keys[is_new]
        parents.append((keys >> 32).astype(np.int32))
        ranks.append((keys & 0xFFFFFFFF).astype(np.int32))
        first, depth = first + len(keys), depth + 1
        active = active[counts[active] > depth]
    return np.concatenate(parents), np.concatenate(ranks), leaves


@kernel
def _lay_out(trie):
    """Set where each list starts: a node's own rows first, then those below its children, by rank."""
    spans, rooms, below, parents = trie.spans, trie.rooms, trie.below, trie.parents
    ends = np.zeros(len(parents), np.int32)  # of the rows laid out so far at or below each node
    ends[layout.ROOT] = rooms[layout.ROOT, 1]
    for node in range(1, trie.head[layout.USED]):
        parent = parents[node]
        spans[node, layout.FIRST_ROW] = ends[parent]
        ends[node] = ends[parent] + rooms[node, 1]
        ends[parent] += below[node]


@kernel
def _fill(trie, leaves, sets):
    """Write rows and boxes into the lists, and number rows by their place there."""
    spans, gap = trie.spans, trie.head[layout.GAP]
    for i in range(len(leaves)):
        node, row = leaves[i], sets.rows[i]
        place = spans[node, layout.FIRST_ROW] + spans[node, layout.N_ROWS]
        spans[node, layout.N_ROWS] += 1
        trie.rows[place], trie.leaves[row] = row, node
        set_box(trie.row_boxes, place, sets.boxes[i])
        trie.numbers[row] = place * gap


@kernel
def _set_boxes_and_ranges(trie):
    """Set boxes and ranges, from the last node to the root."""
    spans, boxes, parents = trie.spans, trie.boxes, trie.parents
    for node in range(len(parents)):
        boxes[node, :2], boxes[node, 2:] = np.inf, -np.inf
    for node in range(trie.head[layout.USED] - 1, -1, -1):
        for place in range(spans[node, layout.FIRST_ROW], spans[node, layout.FIRST_ROW] + spans[node, layout.N_ROWS]):
            widen(boxes[node], trie.row_boxes[place])
        set_range(trie, node)
        if node != layout.ROOT:
            widen(boxes[parents[node]], boxes[node])
