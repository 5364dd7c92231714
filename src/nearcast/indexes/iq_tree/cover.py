"""The cells of a row: the cheapest set of disjoint cells, of any level, that covers its box.

A cell costs 1 + 2^doublings x its probability. All cells that may be part of the cheapest cover are listed from the
root on; then, from the last to the first, each takes the cheaper of itself and its quarters. A cell has no quarters to
consider if the box covers it (they would cost more) or if its expected verifications cost no more than the extra
copies. So a row has at most 1 + 2^doublings cells, and as a rule a handful.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.geo.loose_grid import cell_key
from nearcast.indexes.iq_tree.chances import WHOLE, mass_of
from nearcast.structures.quadtree.cells import FINEST, in_quarter, row_span

_TAKEN = -1
_SIDE = (1 << 24) - 1


class _Options(NamedTuple):
    """The cells that the cover of one row may consist of, parents before children."""

    cells: np.ndarray  # int64[...]  keys
    quarters: np.ndarray  # int64[...]  8 x (where the cell's quarters start) + (how many of them the row overlaps)
    costs: np.ndarray  # int64[...]


@kernel
def covers(masses, bounds, limit, boxes, rows, doublings):
    """The cells of rows as keys, and for each cell the position of its row among `rows`."""
    cells, items = np.empty(2 * len(rows) + 64, np.int64), np.empty(2 * len(rows) + 64, np.int32)
    options, n = _Options(np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)), 0
    for i in range(len(rows)):
        span = row_span(bounds, boxes[rows[i]])
        weight = np.int64(doublings[i])
        options, n_options = _list_options(masses, limit, span, weight, options)
        _choose(masses, weight, options, n_options)
        cells, items = with_room(cells, n, n_options), with_room(items, n, n_options)
        first, n = n, _write_chosen(options, n_options, cells, n)
        items[first:n] = i
    return cells[:n].copy(), items[:n].copy()


@kernel
def cell_of(key):
    """(level, x, y) of a key."""
    return key >> 48, (key >> 24) & _SIDE, key & _SIDE


@kernel
def _list_options(masses, limit, span, doublings, options):
    """List the cells that may be chosen and their quarters; return the options, larger if needed, and their number."""
    cells, quarters = options.cells, options.quarters
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
    return _Options(cells, quarters, with_room(options.costs, 0, n)), n


@kernel
def _is_covered(span, level, x, y):
    """Whether a span covers all of a cell."""
    shift = FINEST - level
    across = span[0] <= x << shift and (x + 1) << shift <= span[2] + 1
    return across and span[1] <= y << shift and (y + 1) << shift <= span[3] + 1


@kernel
def _choose(masses, doublings, options, n):
    """Write the cost of each cell, and drop the quarters of cells that are cheaper than their quarters."""
    cells, quarters, costs = options.cells, options.quarters, options.costs
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
def _write_chosen(options, n_options, out, n):
    """Write the chosen cells to out[n:]; return the new n."""
    cells, quarters, costs = options.cells, options.quarters, options.costs
    costs[0] = _TAKEN
    for at in range(n_options):
        if costs[at] != _TAKEN:
            continue
        first, number = quarters[at] >> 3, quarters[at] & 7
        for k in range(first, first + number):
            costs[k] = _TAKEN
        if number == 0:
            out[n] = cells[at]
            n += 1
    return n
