"""Removing a row: its list closes up, nodes without rows go, and the ranges and boxes above become tight again.

A box is computed anew where what went touched it. For a node of many children and rows that would be dear with every
removal at its border (a root with 200,000 children, rows that end at the edge of the world): such a node waits until an
eighth as many removals have touched it as it has to look at, and counts them as its debt. Its box is then too large by
a little, never too small, and a removal costs 8 looks on average.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.trie.nodes import (
    FIRST_CHILD,
    FIRST_ROW,
    N_CHILDREN,
    N_FREE,
    N_ROWS,
    NONE,
    ROOT,
    child_place,
    empty_node,
    set_range,
    widen,
)

_FEW = 32  # a node with so few children and rows is looked at at once


@kernel
def remove_rows(trie, rows):
    former = np.empty(4, np.float32)  # the box of what went or shrank below, around all that can have changed
    for i in range(len(rows)):
        node, is_smaller = np.int64(trie.leaves[rows[i]]), True
        _drop_row(trie, node, rows[i], former)
        while node != NONE:
            parent = np.int64(trie.parents[node])
            trie.below[node] -= 1
            is_smaller = _tighten(trie, node, former, is_smaller)
            if trie.below[node] > 0:
                set_range(trie, node)
            elif node != ROOT:
                _drop_child(trie, parent, node)
            else:
                empty_node(trie, node)
            node = parent


@kernel
def row_place(trie, node, row):
    """Where a row of the node's list lies in the arena: found by its number."""
    low = np.int64(trie.spans[node, FIRST_ROW])
    high, number = low + trie.spans[node, N_ROWS], trie.numbers[row]
    while low < high:
        middle = (low + high) >> 1
        if trie.numbers[trie.rows[middle]] < number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _drop_row(trie, node, row, former):
    """Take a row out of its list, and write its box to `former`."""
    place = row_place(trie, node, row)
    former[:] = trie.row_boxes[place]
    for k in range(place, np.int64(trie.spans[node, FIRST_ROW]) + trie.spans[node, N_ROWS] - 1):
        trie.rows[k] = trie.rows[k + 1]
        trie.row_boxes[k] = trie.row_boxes[k + 1]
    trie.spans[node, N_ROWS] -= 1
    trie.leaves[row] = NONE


@kernel
def _drop_child(trie, parent, node):
    """Take a node that has nothing left out of its parent's children; its number may come back."""
    place = child_place(trie, parent, trie.tokens[node])
    for k in range(place, np.int64(trie.spans[parent, FIRST_CHILD]) + trie.spans[parent, N_CHILDREN] - 1):
        trie.children[k, 0] = trie.children[k + 1, 0]
        trie.children[k, 1] = trie.children[k + 1, 1]
    trie.spans[parent, N_CHILDREN] -= 1
    empty_node(trie, node)
    trie.free[trie.head[N_FREE]] = node
    trie.head[N_FREE] += 1


@kernel
def _tighten(trie, node, former, is_smaller):
    """Where something below became smaller that had touched the node's box, make it anew, or count that as debt. Say
    whether the node's box is smaller now, and then write the one that it had to `former`.
    """
    box = trie.boxes[node]
    inside = former[0] > box[0] and former[1] > box[1] and former[2] < box[2] and former[3] < box[3]
    if is_smaller and not inside:
        trie.debts[node] += 1
    n = np.int64(trie.spans[node, N_CHILDREN]) + trie.spans[node, N_ROWS]
    if trie.debts[node] == 0 or (n > _FEW and 8 * trie.debts[node] < n):
        return False
    former[:] = box
    box_anew(trie, node)
    return former[0] < box[0] or former[1] < box[1] or former[2] > box[2] or former[3] > box[3]


@kernel
def box_anew(trie, node):
    """The box around the node's rows and children."""
    box = trie.boxes[node]
    box[:2], box[2:] = np.inf, -np.inf
    first_child, n_children, first_row, n_rows = trie.spans[node]
    for place in range(first_row, first_row + n_rows):
        widen(box, trie.row_boxes[place])
    for place in range(first_child, first_child + n_children):
        widen(box, trie.boxes[trie.children[place, 1]])
    trie.debts[node] = 0
