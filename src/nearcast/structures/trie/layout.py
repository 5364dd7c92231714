"""The arrays of a trie, and the kernels that find, add and empty nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.arena import take_number

ROOT = 0
NONE = -1
USED, N_FREE, CHILDREN_USED, ROWS_USED, GAP, RENUMBERED = range(6)  # places in TrieArrays.head
FIRST_CHILD, N_CHILDREN, FIRST_ROW, N_ROWS = range(4)  # columns of TrieArrays.spans


class TrieArrays(NamedTuple):
    """Arrays by node, then by place in one of two arenas, then by row.

    The root is node 0; numbers of dropped nodes are used again. The children of a node are a run in one arena, sorted
    by rank; the rows of its list are a run in the other, sorted by number, with their boxes. A search reads a node's
    record, half a cache line; spans and boxes are views of the records. Each cache miss less saves a third of the time.
    """

    records: np.ndarray  # int32[n,8]    the span, then the box
    spans: np.ndarray  # int32[n,4]      where its children start, how many they are; the same for its own rows
    boxes: np.ndarray  # float32[n,4]    around all rows at or below, rounded outward
    ranges: np.ndarray  # int64[n,2]     the least and the largest number of a row at or below
    ranks: np.ndarray  # int32[n]        the term rank that leads to it from its parent
    parents: np.ndarray  # int32[n]
    below: np.ndarray  # int32[n]        rows at or below
    rooms: np.ndarray  # int32[n,2]      how many children, and own rows, fit before its run must move
    debts: np.ndarray  # int32[n]        removals since its box was exact; see change.py
    free: np.ndarray  # int32[n]         numbers of dropped nodes
    children: np.ndarray  # int32[arena,2]  rank and node
    rows: np.ndarray  # int32[arena]
    row_boxes: np.ndarray  # float32[arena,4]  rounded outward
    numbers: np.ndarray  # int64[rows]   the order of all rows
    leaves: np.ndarray  # int32[rows]    the node whose list has the row, or NONE
    head: np.ndarray  # int64[6]  nodes ever numbered, numbers free, ends of both arenas, the gap, rows renumbered


def views_of(records: np.ndarray) -> dict[str, np.ndarray]:
    """The records and their two halves, by field."""
    return {"records": records, "spans": records[:, :4], "boxes": records.view(np.float32)[:, 4:]}


@kernel
def child_place(trie, node, rank):
    """The place in the arena of the node's first child whose rank is not below `rank`; it may be the run's end."""
    low = np.int64(trie.spans[node, FIRST_CHILD])
    high = low + trie.spans[node, N_CHILDREN]
    while low < high:
        middle = (low + high) >> 1
        if trie.children[middle, 0] < rank:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def child_of(trie, node, rank):
    """The child that a rank leads to, or NONE."""
    place = child_place(trie, node, rank)
    if place == trie.spans[node, FIRST_CHILD] + trie.spans[node, N_CHILDREN] or trie.children[place, 0] != rank:
        return NONE
    return np.int64(trie.children[place, 1])


@kernel
def set_range(trie, node):
    """Set the range of a node with rows from its own rows, which come first, and its first and last child."""
    first_child, n_children, first_row, n_rows = trie.spans[node]
    if n_rows > 0:
        trie.ranges[node, 0] = trie.numbers[trie.rows[first_row]]
        trie.ranges[node, 1] = trie.numbers[trie.rows[first_row + n_rows - 1]]
    if n_children > 0:
        trie.ranges[node, 1] = trie.ranges[trie.children[first_child + n_children - 1, 1], 1]
        if n_rows == 0:
            trie.ranges[node, 0] = trie.ranges[trie.children[first_child, 1], 0]


@kernel
def new_node(trie, parent, rank):
    """Add a node without children and rows; the caller has made room and enters it among its parent's children."""
    node = take_number(trie.head, USED, N_FREE, trie.free)
    empty_node(trie, node)
    trie.parents[node], trie.ranks[node] = parent, rank
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
    """Extend a box so that it contains another one."""
    box[0], box[1] = min(box[0], other[0]), min(box[1], other[1])
    box[2], box[3] = max(box[2], other[2]), max(box[3], other[3])
