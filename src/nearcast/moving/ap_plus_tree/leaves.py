"""Kernels for the list of leaves that each row has, and the bounds within which it stays in them."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.moving.ap_plus_tree.tree import FIRST_LEAF, INNER, NONE, PARENT
from nearcast.moving.entry_lists.lists import COUNT, ROOM, ROOMS, START, has_room, release, size_for, take_room
from nearcast.moving.entry_lists.place_codes import x_of, y_of


@kernel
def leaves_of(tree, row, out):
    """(out, n): the leaves of a row."""
    heads, words = tree.leaves.heads, tree.leaves.words
    count, start = np.int64(heads[row, COUNT]), np.int64(heads[row, START])
    out = with_room(out, 0, count)
    if count == 1:
        out[0] = heads[row, FIRST_LEAF]
    else:
        for k in range(count):
            out[k] = words[start + k]
    return out, count


@lean_kernel
def can_set_leaves(lists, row, n):
    """Whether there is room for so many leaves of a row."""
    return n <= max(1, lists.heads[row, ROOM]) or has_room(lists, ROOMS[size_for(n)], 0)


@lean_kernel
def set_leaves(lists, row, leaves, n):
    """Replace the leaves of a row. The caller knows that there is room."""
    heads = lists.heads
    if n > heads[row, ROOM] or n == 1:
        release(lists, heads, row)
        if n > 1:
            size = size_for(n)
            heads[row, START], heads[row, ROOM] = take_room(lists, size), ROOMS[size]
    heads[row, COUNT] = n
    if n > 0:
        heads[row, FIRST_LEAF] = leaves[0]
    if n > 1:
        start = np.int64(heads[row, START])
        for k in range(n):
            lists.words[start + k] = leaves[k]


@lean_kernel
def set_bounds(bounds, row, codes):
    """Store the bounds of a row. Bounds that are crossed become 1 and 0: no box is within them."""
    for side in range(4):
        lowest, highest = codes[2 * side], codes[2 * side + 1]
        if lowest > highest:
            lowest, highest = 1, 0
        bounds[row, 2 * side], bounds[row, 2 * side + 1] = lowest, highest


@lean_kernel
def is_within_bounds(bounds, row, low, high):
    """Whether a box, as its corner words, has the same leaves as the row."""
    return (
        bounds[row, 0] <= x_of(low) <= bounds[row, 1]
        and bounds[row, 2] <= y_of(low) <= bounds[row, 3]
        and bounds[row, 4] <= x_of(high) <= bounds[row, 5]
        and bounds[row, 6] <= y_of(high) <= bounds[row, 7]
    )


@kernel
def with_inner_nodes(tree, nodes, n):
    """(nodes, n): leaves, and behind them the nodes above that may list messages, each once."""
    if tree.used[INNER] == 0:
        return nodes, n
    leaves = n
    for k in range(leaves):
        above = np.int64(tree.nodes[nodes[k], PARENT])
        while above != NONE and not is_among(nodes, n, above):
            nodes = with_room(nodes, n, 1)
            nodes[n] = above
            n += 1
            above = np.int64(tree.nodes[above, PARENT])
    return nodes, n


@lean_kernel
def is_among(nodes, n, node):
    """Whether a node is one of the first n. They are few: comparing is faster than marking."""
    for k in range(n):
        if nodes[k] == node:
            return True
    return False
