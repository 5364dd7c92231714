"""Routes through the tree: the leaves of a row at a place, and the nodes that a message enters."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.ragged import sort_in_place
from nearcast.moving.ap_plus_tree.tree import (
    ACROSS,
    BORDERS,
    DOWN,
    DUMMY,
    K_NODE,
    KIDS,
    KIND,
    LEAF,
    LEVEL,
    NONE,
    ROOT,
    add_leaf,
    borders_up_to,
    cell_range,
    confine_to_cell,
)
from nearcast.moving.entry_lists.place_codes import HIGHEST, code_of

TOO_LONG = -2
"""What a route returns that needs a longer array."""


@kernel
def sorted_ranks(ranks, terms, first, count):
    """int32[count]: the ranks of some terms, ascending."""
    out = np.empty(count, np.int32)
    for k in range(count):
        out[k] = ranks[terms[first + k]]
    sort_in_place(out, 0, count)
    return out


@kernel
def leaves_of_row(tree, row_ranks, box, route, bounds):
    """(route, n): the leaves of a row with these ranks at a box, each once. `bounds` (int64[8]) are those of the row.

    Absent children are created, as empty leaves. n is NONE if there is no room for them.
    """
    n = follow_row(tree, row_ranks, box, route, bounds)
    while n == TOO_LONG:
        route = with_room(route, len(route), len(route))
        n = follow_row(tree, row_ranks, box, route, bounds)
    return route, n


@lean_kernel
def follow_row(tree, row_ranks, box, route, bounds):
    """The number of leaves, written to `route`; NONE without room for nodes, or TOO_LONG."""
    for side in range(4):
        bounds[2 * side], bounds[2 * side + 1] = 0, HIGHEST
    route[0] = ROOT
    n, at, leaves = np.int64(1), 0, np.int64(0)
    while at < n:
        node = np.int64(route[at])
        at += 1
        kind, level = tree.nodes[node, KIND], np.int64(tree.nodes[node, LEVEL])
        if kind == LEAF:
            route[leaves] = node  # leaves <= at: what is overwritten has been read
            leaves += 1
            continue
        if kind == K_NODE:
            is_over = level >= len(row_ranks)
        else:
            is_over = tree.nodes[node, DUMMY] != NONE and _is_in_dummy(tree, node, box, bounds)
        if not is_over and kind != K_NODE:
            n = _cells_of_row(tree, node, box, route, n, bounds)
            if n < 0:
                return n
            continue
        kid = np.int64(NONE) if is_over else _cut(tree, node, row_ranks[level])
        child = _child(tree, node, kid)
        if child == NONE:
            return np.int64(NONE)
        if n == len(route):
            return np.int64(TOO_LONG)
        route[n] = child
        n += 1
    return leaves


@lean_kernel
def _is_in_dummy(tree, node, box, bounds):
    """Whether a box covers the region of a node; confines the box to where that stays so."""
    for side in range(4):
        border = tree.regions[node, side]
        if (box[side] > border) if side < 2 else (box[side] < border):
            code = _code(tree, side, border)
            _confine(bounds, side, code + 1 if side < 2 else 0, HIGHEST if side < 2 else code - 1)
            return False
    for side in range(4):
        code = _code(tree, side, tree.regions[node, side])
        _confine(bounds, side, 0 if side < 2 else code + 1, code - 1 if side < 2 else HIGHEST)
    return True


@inline_kernel
def _code(tree, side, value):
    """The code of a coordinate of side 0 to 3: x, y, x, y."""
    return code_of(tree.codes.x, value) if side % 2 == 0 else code_of(tree.codes.y, value)


@lean_kernel
def _confine(bounds, side, lowest, highest):
    bounds[2 * side] = max(bounds[2 * side], lowest)
    bounds[2 * side + 1] = min(bounds[2 * side + 1], highest)


@lean_kernel
def _confine_to_cells(tree, node, cells, bounds):
    """Confine each side of a box to the column (or line) that it is in."""
    first, across = np.int64(tree.nodes[node, BORDERS]), np.int64(tree.nodes[node, ACROSS])
    for side in range(4):
        at = first if side % 2 == 0 else first + across - 1
        count = across if side % 2 == 0 else np.int64(tree.nodes[node, DOWN])
        cell = cells[side]
        lowest = _code(tree, side, tree.borders[at + cell - 1]) + 1 if cell > 0 else np.int64(0)
        highest = _code(tree, side, tree.borders[at + cell]) - 1 if cell < count - 1 else np.int64(HIGHEST)
        _confine(bounds, side, lowest, highest)


@lean_kernel
def _cut(tree, node, rank):
    """The position in `kids` of the cut of a rank."""
    first, cuts = np.int64(tree.nodes[node, BORDERS]), np.int64(tree.nodes[node, ACROSS])
    return np.int64(tree.nodes[node, KIDS]) + borders_up_to(tree.borders, first, cuts - 1, rank)


@lean_kernel
def _child(tree, node, kid):
    """A child of a k-node, or the dummy of any node (kid NONE), created if absent; NONE without room."""
    child = np.int64(tree.nodes[node, DUMMY]) if kid == NONE else np.int64(tree.kids[kid])
    if child == NONE:
        level = np.int64(tree.nodes[node, LEVEL])
        child = add_leaf(tree, node, kid, level + 1 if kid != NONE else level)
    return np.int64(child)


@lean_kernel
def _cells_of_row(tree, node, box, route, n, bounds):
    """The length of the route with the cells of a node behind route[:n]; NONE or TOO_LONG."""
    left, right, below, above = cell_range(tree, node, box)
    _confine_to_cells(tree, node, (left, below, right, above), bounds)
    if n + (right - left + 1) * (above - below + 1) > len(route):
        return np.int64(TOO_LONG)
    first, across = np.int64(tree.nodes[node, KIDS]), np.int64(tree.nodes[node, ACROSS])
    for line in range(below, above + 1):
        for column in range(left, right + 1):
            kid = first + line * across + column
            child = np.int64(tree.kids[kid])
            if child == NONE:
                child = np.int64(add_leaf(tree, node, kid, np.int64(tree.nodes[node, LEVEL])))
                if child == NONE:
                    return np.int64(NONE)
                confine_to_cell(tree, child, node, column, line)
            route[n] = child
            n += 1
    return n


@kernel
def entered_children(tree, node, position, ranks, box, out):
    """(out, n, is_whole): (child, position) pairs that a message enters from a node, and whether none is absent.

    `position` is how many of the message's ascending ranks are used up.
    """
    own = tree.nodes[node]
    n, is_whole = 0, True
    if own[DUMMY] != NONE:
        out = with_room(out, 0, 2)
        out[0], out[1], n = own[DUMMY], position, 1
    else:
        is_whole = own[KIND] != K_NODE or own[LEVEL] == 0  # every row has a first term; an s-node needs no dummy
    if own[KIND] == K_NODE:
        last = np.int64(-1)
        out = with_room(out, 2 * n, 2 * (len(ranks) - position))
        for k in range(position, len(ranks)):
            kid = _cut(tree, node, ranks[k])
            if kid == last:
                continue
            last = kid
            is_whole, n = _entered(tree.kids[kid], k + 1, out, n, is_whole)
        return out, n, is_whole
    left, right, below, above = cell_range(tree, node, box)
    out = with_room(out, 2 * n, 2 * (right - left + 1) * (above - below + 1))
    for line in range(below, above + 1):
        for column in range(left, right + 1):
            child = tree.kids[np.int64(own[KIDS]) + line * own[ACROSS] + column]
            is_whole, n = _entered(child, position, out, n, is_whole)
    return out, n, is_whole


@kernel
def _entered(child, position, out, n, is_whole):
    if child == NONE:
        return False, n
    out[2 * n], out[2 * n + 1] = child, position
    return is_whole, n + 1
