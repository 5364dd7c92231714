"""Insertion and removal of rows, with the nodes that appear or vanish, and what all nodes above know of the rows.

A removal computes a box again if the removed box touched it. A node with many children and rows (a root has 200,000)
counts such removals as its debt instead, until they are an eighth of its children and rows. Until then its box may be
too large, never too small, and a removal costs 8 comparisons on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.arena import first_from, free_number
from nearcast.structures.boxes import set_box
from nearcast.structures.trie import layout
from nearcast.structures.trie.layout import child_of, child_place, empty_node, new_node, set_range, widen
from nearcast.structures.trie.numbering import number_last_row

_FEW = 32  # up to so many children and rows, a box is computed again at once


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
        n_rows = _larger_room(trie.spans[node, layout.N_ROWS])
    elif trie.spans[node, layout.N_CHILDREN] == trie.rooms[node, 0]:
        n_children += _larger_room(trie.spans[node, layout.N_CHILDREN])
    return Room(n_nodes, n_children, n_rows)


@kernel
def has_room(trie, needed):
    return (
        len(trie.below) - trie.head[layout.USED] + trie.head[layout.N_FREE] >= needed.nodes
        and len(trie.children) - trie.head[layout.CHILDREN_USED] >= needed.children
        and len(trie.rows) - trie.head[layout.ROWS_USED] >= needed.rows
    )


@kernel
def _larger_room(count):
    """The room of a full run that moves: half as much again. An empty run gets 1: most nodes have one child."""
    return np.int64(count) + (np.int64(count) >> 1) + 1


@kernel
def _deepest(trie, sets, i):
    """The last existing node on the path of row i, and the place of the first rank that leads on from it."""
    node = np.int64(layout.ROOT)
    for k in range(sets.starts[i], sets.starts[i + 1]):
        child = child_of(trie, node, sets.ranks[k])
        if child == layout.NONE:
            return node, k
        node = np.int64(child)
    return node, sets.starts[i + 1]


@kernel
def _add_child(trie, parent, rank):
    """Add a child among its siblings, which are sorted by rank; return it."""
    spans = trie.spans
    if spans[parent, layout.N_CHILDREN] == trie.rooms[parent, 0]:
        source, target = _move_run(trie, parent, 0)
        for k in range(spans[parent, layout.N_CHILDREN]):
            trie.children[target + k] = trie.children[source + k]
    node = new_node(trie, parent, rank)
    place = child_place(trie, parent, rank)
    for k in range(np.int64(spans[parent, layout.FIRST_CHILD]) + spans[parent, layout.N_CHILDREN], place, -1):
        trie.children[k, 0] = trie.children[k - 1, 0]
        trie.children[k, 1] = trie.children[k - 1, 1]
    trie.children[place, 0], trie.children[place, 1] = rank, node
    spans[parent, layout.N_CHILDREN] += 1
    return node


@kernel
def _move_run(trie, node, which):
    """Move a full run of children (0) or rows (1) to the arena's end, with more room; return its old and new place."""
    source, target = np.int64(trie.spans[node, 2 * which]), trie.head[layout.CHILDREN_USED + which]
    trie.spans[node, 2 * which] = target
    trie.rooms[node, which] = _larger_room(trie.spans[node, 2 * which + 1])
    trie.head[layout.CHILDREN_USED + which] += trie.rooms[node, which]
    return source, target


@kernel
def _add_row(trie, node, row, box):
    """Append a row to a node's list, number it, and update all nodes above."""
    if trie.spans[node, layout.N_ROWS] == trie.rooms[node, 1]:
        source, target = _move_run(trie, node, 1)
        for k in range(trie.spans[node, layout.N_ROWS]):
            trie.rows[target + k] = trie.rows[source + k]
            set_box(trie.row_boxes, target + k, trie.row_boxes[source + k])
    place = np.int64(trie.spans[node, layout.FIRST_ROW]) + trie.spans[node, layout.N_ROWS]
    trie.rows[place], trie.leaves[row] = row, node
    set_box(trie.row_boxes, place, box)
    trie.spans[node, layout.N_ROWS] += 1
    above = np.int64(node)
    while above != layout.NONE:
        trie.below[above] += 1
        widen(trie.boxes[above], box)
        above = np.int64(trie.parents[above])
    number_last_row(trie, node)
    above = np.int64(node)
    while above != layout.NONE:
        set_range(trie, above)
        above = np.int64(trie.parents[above])


@kernel
def remove_rows(trie, rows):
    former = np.empty(4, np.float32)  # the removed box, or the box of a child before it shrank
    for i in range(len(rows)):
        node, is_smaller = np.int64(trie.leaves[rows[i]]), True
        _drop_row(trie, node, rows[i], former)
        while node != layout.NONE:
            parent = np.int64(trie.parents[node])
            trie.below[node] -= 1
            is_smaller = _tighten(trie, node, former, is_smaller)
            if trie.below[node] > 0:
                set_range(trie, node)
            elif node != layout.ROOT:
                _drop_child(trie, parent, node)
            else:
                empty_node(trie, node)
            node = parent


@kernel
def _drop_row(trie, node, row, former):
    """Remove a row, found by its number, from its list, and write its box to `former`."""
    first = np.int64(trie.spans[node, layout.FIRST_ROW])
    stop = first + trie.spans[node, layout.N_ROWS]
    place = first_from(trie.numbers, trie.rows, first, stop, trie.numbers[row])
    former[:] = trie.row_boxes[place]
    for k in range(place, stop - 1):
        trie.rows[k] = trie.rows[k + 1]
        set_box(trie.row_boxes, k, trie.row_boxes[k + 1])
    trie.spans[node, layout.N_ROWS] -= 1
    trie.leaves[row] = layout.NONE


@kernel
def _drop_child(trie, parent, node):
    """Remove a node without rows from its parent's children, and free its number."""
    place = child_place(trie, parent, trie.ranks[node])
    for k in range(place, np.int64(trie.spans[parent, layout.FIRST_CHILD]) + trie.spans[parent, layout.N_CHILDREN] - 1):
        trie.children[k, 0] = trie.children[k + 1, 0]
        trie.children[k, 1] = trie.children[k + 1, 1]
    trie.spans[parent, layout.N_CHILDREN] -= 1
    empty_node(trie, node)
    free_number(trie.head, layout.N_FREE, trie.free, node)


@kernel
def _tighten(trie, node, former, is_smaller):
    """Compute a node's box again if something below it became smaller that touched it, or count that as debt.

    Return whether the node's box is smaller now; if so, write its former box to `former`.
    """
    box = trie.boxes[node]
    inside = former[0] > box[0] and former[1] > box[1] and former[2] < box[2] and former[3] < box[3]
    if is_smaller and not inside:
        trie.debts[node] += 1
    n = np.int64(trie.spans[node, layout.N_CHILDREN]) + trie.spans[node, layout.N_ROWS]
    if trie.debts[node] == 0 or (n > _FEW and 8 * trie.debts[node] < n):
        return False
    former[:] = box
    _set_box(trie, node)
    return former[0] < box[0] or former[1] < box[1] or former[2] > box[2] or former[3] > box[3]


@kernel
def _set_box(trie, node):
    """Compute the box around a node's rows and children."""
    box = trie.boxes[node]
    box[:2], box[2:] = np.inf, -np.inf
    first_child, n_children, first_row, n_rows = trie.spans[node]
    for place in range(first_row, first_row + n_rows):
        widen(box, trie.row_boxes[place])
    for place in range(first_child, first_child + n_children):
        widen(box, trie.boxes[trie.children[place, 1]])
    trie.debts[node] = 0
