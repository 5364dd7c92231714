"""Building the trie at once: level by level, all nodes of a level by one sort of (parent, token).

Siblings get neighbouring numbers and a level lies together; lists lie in the order of their sets, so that a subtrie's
rows are one stretch of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.trie.nodes import (
    FIRST_CHILD,
    FIRST_ROW,
    GAP,
    N_CHILDREN,
    N_ROWS,
    NONE,
    ROOT,
    TrieArrays,
    empty_node,
    set_range,
    views_of,
    widen,
)


class Sets(NamedTuple):
    """Rows with their tokens (rarest first) and boxes (rounded outward)."""

    rows: np.ndarray  # int32[n]
    tokens: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]
    boxes: np.ndarray  # float32[n,4]

    def part(self, which: np.ndarray) -> Sets:
        """Those at these places."""
        counts = (self.starts[1:] - self.starts[:-1])[which]
        starts = np.concatenate([[0], np.cumsum(counts)])
        source = np.repeat(self.starts[which] - starts[:-1], counts) + np.arange(starts[-1])
        return Sets(self.rows[which], self.tokens[source], starts, self.boxes[which])


class Levels(NamedTuple):
    """Nodes numbered from the root on, level by level, siblings by token."""

    parents: np.ndarray  # int32[n_nodes]
    tokens: np.ndarray  # int32[n_nodes]
    leaves: np.ndarray  # int32[n]  the node of each row's set


def empty_trie(n_nodes: int, n_rows: int, n_numbered: int, gap: int) -> TrieArrays:
    """Room for so many nodes, rows in lists, and rows numbered in the store; the root alone is there."""
    records, spans, boxes = views_of(np.zeros((n_nodes, 8), np.int32))
    made = TrieArrays(
        records,
        spans,
        boxes,
        np.zeros((n_nodes, 2), np.int64),
        np.full(n_nodes, NONE, np.int32),
        np.full(n_nodes, NONE, np.int32),
        np.zeros(n_nodes, np.int32),
        np.zeros((n_nodes, 2), np.int32),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes, np.int32),
        np.zeros((n_nodes, 2), np.int32),
        np.zeros(n_rows, np.int32),
        np.zeros((n_rows, 4), np.float32),
        np.zeros(n_numbered, np.int64),
        np.full(n_numbered, NONE, np.int32),
        np.array([1, 0, 0, 0, gap, 0], np.int64),
    )
    empty_node(made, ROOT)
    return made


def built_trie(sets: Sets, n_numbered: int, gap: int) -> TrieArrays:
    """A trie of these rows; numbers of rows are below `n_numbered`."""
    levels = _levels(sets)
    n = len(levels.tokens)
    trie = empty_trie(n, len(sets.rows), n_numbered, gap)
    trie.tokens[:], trie.parents[:] = levels.tokens, levels.parents
    trie.children[: n - 1, 0], trie.children[: n - 1, 1] = levels.tokens[1:], np.arange(1, n)
    trie.head[:4] = n, 0, n - 1, len(sets.rows)
    _count(trie, levels.leaves)
    _lay_out(trie)
    _fill(trie, levels.leaves, sets)
    _gather_up(trie)
    return trie


def _levels(sets: Sets) -> Levels:
    """All nodes, and the node of each row. A row takes part in as many levels as it has tokens."""
    counts = np.diff(sets.starts)
    leaves = np.zeros(len(sets.rows), np.int32)
    parents, tokens = [np.array([NONE], np.int32)], [np.array([NONE], np.int32)]
    active, depth, first = np.flatnonzero(counts > 0), 0, 1
    while len(active):
        keys = leaves[active].astype(np.int64) << 32 | sets.tokens[sets.starts[active] + depth]
        order = np.argsort(keys)
        keys = keys[order]
        is_new = np.concatenate([[True], keys[1:] != keys[:-1]])
        leaves[active[order]] = first + np.cumsum(is_new, dtype=np.int32) - 1
        keys = keys[is_new]
        parents.append((keys >> 32).astype(np.int32))
        tokens.append((keys & 0xFFFFFFFF).astype(np.int32))
        first, depth = first + len(keys), depth + 1
        active = active[counts[active] > depth]
    return Levels(np.concatenate(parents), np.concatenate(tokens), leaves)


@kernel
def _count(trie, leaves):
    """Rows of each node, and below it, and children. Children have larger numbers than their parents."""
    spans, rooms, below, parents = trie.spans, trie.rooms, trie.below, trie.parents
    for i in range(len(leaves)):
        rooms[leaves[i], 1] += 1
        below[leaves[i]] += 1
    for node in range(len(parents) - 1, 0, -1):
        below[parents[node]] += below[node]
        spans[parents[node], N_CHILDREN] += 1
        spans[parents[node], FIRST_CHILD] = node - 1
        rooms[parents[node], 0] += 1


@kernel
def _lay_out(trie):
    """Where each list lies: its own rows first, then those below its children, by token."""
    spans, rooms, below, parents = trie.spans, trie.rooms, trie.below, trie.parents
    ends = np.zeros(len(parents), np.int32)  # of what is laid out below each node so far
    ends[ROOT] = rooms[ROOT, 1]
    for node in range(1, len(parents)):
        parent = parents[node]
        spans[node, FIRST_ROW] = ends[parent]
        ends[node] = ends[parent] + rooms[node, 1]
        ends[parent] += below[node]


@kernel
def _fill(trie, leaves, sets):
    """Put rows in their lists, number them by their place there, and put boxes around them."""
    spans, gap = trie.spans, trie.head[GAP]
    for i in range(len(leaves)):
        node, row = leaves[i], sets.rows[i]
        place = spans[node, FIRST_ROW] + spans[node, N_ROWS]
        spans[node, N_ROWS] += 1
        trie.rows[place], trie.leaves[row] = row, node
        trie.row_boxes[place] = sets.boxes[i]
        trie.numbers[row] = place * gap


@kernel
def _gather_up(trie):
    """Boxes and ranges, from the last node to the root."""
    spans, boxes, parents = trie.spans, trie.boxes, trie.parents
    for node in range(len(parents)):
        boxes[node, :2], boxes[node, 2:] = np.inf, -np.inf
    for node in range(len(parents) - 1, -1, -1):
        for place in range(spans[node, FIRST_ROW], spans[node, FIRST_ROW] + spans[node, N_ROWS]):
            widen(boxes[node], trie.row_boxes[place])
        set_range(trie, node)
        if node != ROOT:
            widen(boxes[parents[node]], boxes[node])
