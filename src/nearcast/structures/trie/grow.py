"""Inserting a row: the nodes that its set lacks are made, the row is the last of its list, and all above follow."""

from __future__ import annotations

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


@kernel
def insert_sets(trie, sets, done):
    """Insert rows from `done` on until room runs out; return how many are done."""
    for i in range(done, len(sets.rows)):
        needed = room_needed(trie, sets, i)
        if not has_room(trie, needed):
            return i
        node, k = _deepest(trie, sets, i)
        for at in range(k, sets.starts[i + 1]):
            node = _add_child(trie, node, sets.tokens[at])
        _add_row(trie, node, sets.rows[i], sets.boxes[i])
    return len(sets.rows)


@kernel
def room_needed(trie, sets, i):
    """(nodes, places of children, places of rows) that row i may need at most."""
    node, k = _deepest(trie, sets, i)
    n_nodes = sets.starts[i + 1] - k
    n_children, n_rows = np.int64(n_nodes), np.int64(1)
    if n_nodes == 0:
        n_rows = roomier(trie.spans[node, N_ROWS])
    elif trie.spans[node, N_CHILDREN] == trie.rooms[node, 0]:
        n_children += roomier(trie.spans[node, N_CHILDREN])
    return n_nodes, n_children, n_rows


@kernel
def has_room(trie, needed):
    n_nodes, n_children, n_rows = needed
    return (
        len(trie.below) - trie.head[USED] + trie.head[N_FREE] >= n_nodes
        and len(trie.children) - trie.head[CHILDREN_USED] >= n_children
        and len(trie.rows) - trie.head[ROWS_USED] >= n_rows
    )


@kernel
def roomier(count):
    """The room of a run of so many that is full and must move: half as much again."""
    return np.int64(count) + (np.int64(count) >> 1) + 1


@kernel
def _deepest(trie, sets, i):
    """The last node there is on the way of row i, and the place of the first token that leads on from it."""
    node = np.int64(ROOT)
    for k in range(sets.starts[i], sets.starts[i + 1]):
        child = child_of(trie, node, sets.tokens[k])
        if child == NONE:
            return node, k
        node = np.int64(child)
    return node, sets.starts[i + 1]


@kernel
def _add_child(trie, parent, token):
    """A new child among its siblings, by token; return it."""
    spans = trie.spans
    if spans[parent, N_CHILDREN] == trie.rooms[parent, 0]:
        _move_children(trie, parent)
    node = new_node(trie, parent, token)
    place = child_place(trie, parent, token)
    for k in range(np.int64(spans[parent, FIRST_CHILD]) + spans[parent, N_CHILDREN], place, -1):
        trie.children[k, 0] = trie.children[k - 1, 0]
        trie.children[k, 1] = trie.children[k - 1, 1]
    trie.children[place, 0], trie.children[place, 1] = token, node
    spans[parent, N_CHILDREN] += 1
    return node


@kernel
def _move_children(trie, node):
    """To the arena's end, where there is more room."""
    source, target = np.int64(trie.spans[node, FIRST_CHILD]), trie.head[CHILDREN_USED]
    for k in range(trie.spans[node, N_CHILDREN]):
        trie.children[target + k, 0] = trie.children[source + k, 0]
        trie.children[target + k, 1] = trie.children[source + k, 1]
    trie.spans[node, FIRST_CHILD] = target
    trie.rooms[node, 0] = roomier(trie.spans[node, N_CHILDREN])
    trie.head[CHILDREN_USED] += trie.rooms[node, 0]


@kernel
def _move_rows(trie, node):
    """To the arena's end, where there is more room."""
    source, target = np.int64(trie.spans[node, FIRST_ROW]), trie.head[ROWS_USED]
    for k in range(trie.spans[node, N_ROWS]):
        trie.rows[target + k] = trie.rows[source + k]
        trie.row_boxes[target + k] = trie.row_boxes[source + k]
    trie.spans[node, FIRST_ROW] = target
    trie.rooms[node, 1] = roomier(trie.spans[node, N_ROWS])
    trie.head[ROWS_USED] += trie.rooms[node, 1]


@kernel
def _add_row(trie, node, row, box):
    """A row as the last of a node's list, numbered, and known to all nodes above."""
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
