"""Insertion of rows: adds missing nodes, appends the row to its list, and updates all nodes above."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.trie.nodes import (
    CHILDREN_USED,
    FIRST_CHILD,
    FIRST_ROW,
    N_CHILDREN,
    N_FREE,
    N_ROWS,
    NONE,
    ROOT,
    ROWS_USED,
    USED,
    child_of,
    child_place,
    new_node,
    set_range,
    widen,
)
from nearcast.structures.trie.numbering import number_last_row


class Room(NamedTuple):
    """The numbers of nodes, places of children, and places of rows that an insertion may take at most."""

    nodes: int
    children: int
    rows: int


@kernel
def insert_sets(trie, sets, done):
    """Insert rows from `done` on until room runs out; return the number done."""
    for i in range(done, len(sets.rows)):
        if not has_room(trie, room_needed(trie, sets, i)):
            return i
        node, k = _deepest(trie, sets, i)
        for at in range(k, sets.starts[i + 1]):
            node = _add_child(trie, node, sets.ranks[at])
        _add_row(trie, node, sets.rows[i], sets.boxes[i])
    return len(sets.rows)


@kernel
def room_needed(trie, sets, i):
    node, k = _deepest(trie, sets, i)
    n_nodes = sets.starts[i + 1] - k
    n_children, n_rows = np.int64(n_nodes), np.int64(1)
    if n_nodes == 0:
        n_rows = _larger_room(trie.spans[node, N_ROWS])
    elif trie.spans[node, N_CHILDREN] == trie.rooms[node, 0]:
        n_children += _larger_room(trie.spans[node, N_CHILDREN])
    return Room(n_nodes, n_children, n_rows)


@kernel
def has_room(trie, needed):
    return (
        len(trie.below) - trie.head[USED] + trie.head[N_FREE] >= needed.nodes
        and len(trie.children) - trie.head[CHILDREN_USED] >= needed.children
        and len(trie.rows) - trie.head[ROWS_USED] >= needed.rows
    )


@kernel
def _larger_room(count):
    """The room of a full run that moves: half as much again. An empty run gets 1: most nodes have one child."""
    return np.int64(count) + (np.int64(count) >> 1) + 1


@kernel
def _deepest(trie, sets, i):
    """The last existing node on the path of row i, and the place of the first rank that leads on from it."""
    node = np.int64(ROOT)
    for k in range(sets.starts[i], sets.starts[i + 1]):
        child = child_of(trie, node, sets.ranks[k])
        if child == NONE:
            return node, k
        node = np.int64(child)
    return node, sets.starts[i + 1]


@kernel
def _add_child(trie, parent, rank):
    """Add a child among its siblings, which are sorted by rank; return it."""
    spans = trie.spans
    if spans[parent, N_CHILDREN] == trie.rooms[parent, 0]:
        _move_children(trie, parent)
    node = new_node(trie, parent, rank)
    place = child_place(trie, parent, rank)
    for k in range(np.int64(spans[parent, FIRST_CHILD]) + spans[parent, N_CHILDREN], place, -1):
        trie.children[k, 0] = trie.children[k - 1, 0]
        trie.children[k, 1] = trie.children[k - 1, 1]
    trie.children[place, 0], trie.children[place, 1] = rank, node
    spans[parent, N_CHILDREN] += 1
    return node


@kernel
def _move_children(trie, node):
    """Move a node's children to the end of their arena, with more room."""
    source, target = np.int64(trie.spans[node, FIRST_CHILD]), trie.head[CHILDREN_USED]
    for k in range(trie.spans[node, N_CHILDREN]):
        trie.children[target + k, 0] = trie.children[source + k, 0]
        trie.children[target + k, 1] = trie.children[source + k, 1]
    trie.spans[node, FIRST_CHILD] = target
    trie.rooms[node, 0] = _larger_room(trie.spans[node, N_CHILDREN])
    trie.head[CHILDREN_USED] += trie.rooms[node, 0]


@kernel
def _move_rows(trie, node):
    """Move a node's rows to the end of their arena, with more room."""
    source, target = np.int64(trie.spans[node, FIRST_ROW]), trie.head[ROWS_USED]
    for k in range(trie.spans[node, N_ROWS]):
        trie.rows[target + k] = trie.rows[source + k]
        trie.row_boxes[target + k] = trie.row_boxes[source + k]
    trie.spans[node, FIRST_ROW] = target
    trie.rooms[node, 1] = _larger_room(trie.spans[node, N_ROWS])
    trie.head[ROWS_USED] += trie.rooms[node, 1]


@kernel
def _add_row(trie, node, row, box):
    """Append a row to a node's list, number it, and update all nodes above."""
    if trie.spans[node, N_ROWS] == trie.rooms[node, 1]:
        _move_rows(trie, node)
    place = np.int64(trie.spans[node, FIRST_ROW]) + trie.spans[node, N_ROWS]
    trie.rows[place], trie.leaves[row] = row, node
    trie.row_boxes[place] = box
    trie.spans[node, N_ROWS] += 1
    above = np.int64(node)
    while above != NONE:
        trie.below[above] += 1
        widen(trie.boxes[above], box)
        above = np.int64(trie.parents[above])
    number_last_row(trie, node)
    above = np.int64(node)
    while above != NONE:
        set_range(trie, above)
        above = np.int64(trie.parents[above])
