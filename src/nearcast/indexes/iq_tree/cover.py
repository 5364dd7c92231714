"""The cells of a row: disjoint, of any level, together over its box, and by the cost model the cheapest ones.

A cell costs 1 + 2^doublings x its chance. All cells that could be part of the cheapest cover are written down, from the
root on; then from the last one back each takes the cheaper of itself and its quarters. A cell is not looked into where
the box covers it (its quarters would cost more), nor where it costs no more in verifications than further copies would.
So a row has at most 1 + 2^doublings cells, and as a rule a handful.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.geo.loose_grid import cell_key
from nearcast.indexes.iq_tree.chances import WHOLE, mass_of
from nearcast.structures.quadtree.cells import FINEST, in_quarter, row_span

_TAKEN = -1
_SIDE = (1 << 24) - 1


@kernel
def covers(masses, bounds, limit, boxes, rows, doublings):
    """The cells of rows, as keys, and for each which of the rows it is of."""
    cells, items = np.empty(2 * len(rows) + 64, np.int64), np.empty(2 * len(rows) + 64, np.int32)
    room, n = (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)), 0
    for i in range(len(rows)):
        span = row_span(bounds, boxes[rows[i]])
        heavy = np.int64(doublings[i])
        room, n_room = _possible(masses, limit, span, heavy, room)
        _choose(masses, heavy, room, n_room)
        cells, items = with_room(cells, n, n_room), with_room(items, n, n_room)
        first, n = n, _write_taken(room, n_room, cells, n)
        items[first:n] = i
    return cells[:n].copy(), items[:n].copy()


@kernel
def cell_of(key):
    """(level, x, y) of a key."""
    return key >> 48, (key >> 24) & _SIDE, key & _SIDE


@kernel
def _possible(masses, limit, span, doublings, room):
    """Write the cells that may be of use to room[0], parents first, and to room[1] where the quarters of each start and
    how many of them the span overlaps: 8 x start + number. Return (room, how many cells).
    """
    cells, quarters, costs = room
    cells[0] = cell_key(0, 0, 0)
    n, at = 1, 0
    while at < n:
        level, x, y = cell_of(cells[at])
        cells, quarters, first = with_room(cells, n, 4), with_room(quarters, n, 4), n
        if level < limit and not _is_covered(span, level, x, y):
            for quarter in range(4):
                if in_quarter(span, level, x, y, quarter):
                    cells[n] = cell_key(level + 1, 2 * x + (quarter & 1), 2 * y + (quarter >> 1))
                    n += 1
            if mass_of(masses, level, x, y) << doublings <= max(1, n - first - 1) * WHOLE:
                n = first
        quarters[at] = 8 * first + (n - first)
        at += 1
    return (cells, quarters, with_room(costs, 0, n)), n


@kernel
def _is_covered(span, level, x, y):
    """Whether a span covers all of a cell."""
    shift = FINEST - level
    across = span[0] <= x << shift and (x + 1) << shift <= span[2] + 1
    return across and span[1] <= y << shift and (y + 1) << shift <= span[3] + 1


@kernel
def _choose(masses, doublings, room, n):
    """Forget the quarters of cells that are cheaper themselves, and write what each costs to room[2]."""
    cells, quarters, costs = room
    for at in range(n - 1, -1, -1):
        level, x, y = cell_of(cells[at])
        costs[at] = WHOLE + (mass_of(masses, level, x, y) << doublings)
        first, number = quarters[at] >> 3, quarters[at] & 7
        if number > 0:
            finer = np.int64(0)
            for k in range(first, first + number):
                finer += costs[k]
            if finer < costs[at]:
                costs[at] = finer
            else:
                quarters[at] = 0


@kernel
def _write_taken(room, n_room, out, n):
    """Write the cells that the choice leads to from the root on to out[n:]; return the new n."""
    cells, quarters, costs = room
    costs[0] = _TAKEN
    for at in range(n_room):
        if costs[at] != _TAKEN:
            continue
        first, number = quarters[at] >> 3, quarters[at] & 7
        for k in range(first, first + number):
            costs[k] = _TAKEN
        if number == 0:
            out[n] = cells[at]
            n += 1
    return n
