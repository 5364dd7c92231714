"""The arrays of the trie, and the small steps that every change is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel

ROOT = 0
NONE = -1
USED, N_FREE, CHILDREN_USED, ROWS_USED, GAP, RENUMBERED = 0, 1, 2, 3, 4, 5  # places in TrieArrays.head
FIRST_CHILD, N_CHILDREN, FIRST_ROW, N_ROWS = 0, 1, 2, 3  # columns of TrieArrays.spans


class TrieArrays(NamedTuple):
    """By node, then by place in the two arenas, then by row.

    The root is node 0 for ever; numbers of nodes that went are used again. The children of a node are a run of one
    arena, by token; the rows of its own list a run of the other, by number, with their boxes. What a search reads of
    a node is its record, half a cache line, of which spans and boxes are views: each miss less is a third of the time.
    """

    records: np.ndarray  # int32[n,8]    the spans, then the box
    spans: np.ndarray  # int32[n,4]      where its children start and how many they are; the same of its own rows
    boxes: np.ndarray  # float32[n,4]    around all rows below, rounded outward
    ranges: np.ndarray  # int64[n,2]     the least and the largest number of a row below
    tokens: np.ndarray  # int32[n]       the token that leads to it from its parent
    parents: np.ndarray  # int32[n]
    below: np.ndarray  # int32[n]        rows below, its own included
    rooms: np.ndarray  # int32[n,2]      how many children, and rows of its own, fit before its run must move
    debts: np.ndarray  # int32[n]        removals since its box was exact; see shrink.py
    free: np.ndarray  # int32[n]         numbers of nodes that went
    children: np.ndarray  # int32[arena,2]  token and node
    rows: np.ndarray  # int32[arena]
    row_boxes: np.ndarray  # float32[arena,4]  rounded outward
    numbers: np.ndarray  # int64[rows]   the order of all rows
    leaves: np.ndarray  # int32[rows]    the node whose list has the row, or NONE
    head: np.ndarray  # int64[6]         nodes ever numbered, numbers free, arenas' ends, the gap, rows renumbered


def views_of(records: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records, and their halves: spans and boxes."""
    return records, records[:, :4], records.view(np.float32)[:, 4:]


@kernel
def child_place(trie, node, token):
    """The place in the arena of the node's first child whose token is not below `token`; it may be the run's end."""
    low = np.int64(trie.spans[node, FIRST_CHILD])
    high = low + trie.spans[node, N_CHILDREN]
    while low < high:
        middle = (low + high) >> 1
        if trie.children[middle, 0] < token:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def child_of(trie, node, token):
    """The child that a token leads to, or NONE."""
    place = child_place(trie, node, token)
    if place == trie.spans[node, FIRST_CHILD] + trie.spans[node, N_CHILDREN] or trie.children[place, 0] != token:
        return NONE
    return np.int64(trie.children[place, 1])


@kernel
def set_range(trie, node):
    """The range of a node that has rows below, from its own rows and its first and last child: its own come first."""
    first_child, n_children, first_row, n_rows = trie.spans[node]
    if n_rows > 0:
        trie.ranges[node, 0] = trie.numbers[trie.rows[first_row]]
        trie.ranges[node, 1] = trie.numbers[trie.rows[first_row + n_rows - 1]]
    if n_children > 0:
        trie.ranges[node, 1] = trie.ranges[trie.children[first_child + n_children - 1, 1], 1]
        if n_rows == 0:
            trie.ranges[node, 0] = trie.ranges[trie.children[first_child, 1], 0]


@kernel
def new_node(trie, parent, token):
    """A node without children and rows. The caller has made room, and hangs it on its parent."""
    if trie.head[N_FREE] > 0:
        trie.head[N_FREE] -= 1
        node = np.int64(trie.free[trie.head[N_FREE]])
    else:
        node = trie.head[USED]
        trie.head[USED] += 1
    empty_node(trie, node)
    trie.parents[node], trie.tokens[node] = parent, token
    return node


@kernel
def empty_node(trie, node):
    trie.spans[node] = 0
    trie.rooms[node] = 0
    trie.boxes[node, :2], trie.boxes[node, 2:] = np.inf, -np.inf
    trie.ranges[node, 0], trie.ranges[node, 1] = 0, -1
    trie.below[node] = trie.debts[node] = 0


@kernel
def widen(box, other):
    """Make a box hold another one too."""
    box[0], box[1] = min(box[0], other[0]), min(box[1], other[1])
    box[2], box[3] = max(box[2], other[2]), max(box[3], other[3])
