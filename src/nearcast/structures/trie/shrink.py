"""Removal of rows: closes gaps in lists, drops nodes without rows, and tightens the ranges and boxes above.

A box is computed again if the removed box touched it. For a node with many children and rows that would be expensive
with every removal at its border (a root with 200,000 children, rows that end at the edge of the world). Such a node
counts these removals as its debt, and its box is computed again only when the debt is an eighth of its children and
rows. Until then its box may be too large, never too small, and a removal costs 8 comparisons on average.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.structures.arena import first_from
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

_FEW = 32  # up to so many children and rows, a box is computed again at once


@kernel
def remove_rows(trie, rows):
    former = np.empty(4, np.float32)  # the removed box, or the box of a child before it shrank
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
def _drop_row(trie, node, row, former):
    """Remove a row, found by its number, from its list, and write its box to `former`."""
    first = np.int64(trie.spans[node, FIRST_ROW])
    stop = first + trie.spans[node, N_ROWS]
    place = first_from(trie.numbers, trie.rows, first, stop, trie.numbers[row])
    former[:] = trie.row_boxes[place]
    for k in range(place, stop - 1):
        trie.rows[k] = trie.rows[k + 1]
        trie.row_boxes[k] = trie.row_boxes[k + 1]
    trie.spans[node, N_ROWS] -= 1
    trie.leaves[row] = NONE


@kernel
def _drop_child(trie, parent, node):
    """Remove a node without rows from its parent's children, and free its number."""
    place = child_place(trie, parent, trie.ranks[node])
    for k in range(place, np.int64(trie.spans[parent, FIRST_CHILD]) + trie.spans[parent, N_CHILDREN] - 1):
        trie.children[k, 0] = trie.children[k + 1, 0]
        trie.children[k, 1] = trie.children[k + 1, 1]
    trie.spans[parent, N_CHILDREN] -= 1
    empty_node(trie, node)
    trie.free[trie.head[N_FREE]] = node
    trie.head[N_FREE] += 1


@kernel
def _tighten(trie, node, former, is_smaller):
    """Compute a node's box again if something below it became smaller that touched it, or count that as debt.

    Return whether the node's box is smaller now; if so, write its former box to `former`.
    """
    box = trie.boxes[node]
    inside = former[0] > box[0] and former[1] > box[1] and former[2] < box[2] and former[3] < box[3]
    if is_smaller and not inside:
        trie.debts[node] += 1
    n = np.int64(trie.spans[node, N_CHILDREN]) + trie.spans[node, N_ROWS]
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
