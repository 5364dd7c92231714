"""The cells of a row: the cheapest set of disjoint cells, of any level, that covers its box.

A cell costs 1 + 2^doublings x its probability. That is divided among its quarters by the sampled messages there; where
these are few, by the rows there; where those are few too, by area. Probabilities are whole numbers, the same on every
machine and from one build to the next, so that the cells of a row can be computed again when it is removed.

All cells that may be part of the cheapest cover are listed from the root on; then, from the last to the first, each
takes the cheaper of itself and its quarters. A cell has no quarters to consider if the box covers it (they would cost
more) or if its expected verifications cost no more than the extra copies. So a row has at most 1 + 2^doublings cells,
and as a rule a handful.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.geo.loose_grid import cell_key, position
from nearcast.structures.quadtree.cells import FINEST, in_quarter, row_span

WHOLE = 1 << 24  # the mass of the root
FINEST_GRID = 8  # the deepest level at which messages and rows are counted. Fewer of them get one cell for four
HEAVIEST = 36  # the largest number of doublings of a mass: it then fits in 61 bits
_WEIGHT_OF_ROWS = 8.0  # in sampled messages: with 8 in a cell, they and the rows each decide half of its division
_TAKEN = -1
_SIDE = (1 << 24) - 1


class Masses(NamedTuple):
    """How likely each cell is, out of WHOLE."""

    cells: np.ndarray  # int32[...]  of levels 0 to grid, one level behind the other, line by line
    grid: int  # the deepest level stored; below it quarters have equal shares


def masses_of(row_boxes: np.ndarray, sample_boxes: np.ndarray, bounds: np.ndarray) -> Masses:
    """The masses of all cells, from the centres of these boxes."""
    grid = 1
    while grid < FINEST_GRID and 4 ** (grid + 1) < len(row_boxes) + len(sample_boxes):
        grid += 1
    cells = np.full(first_of(grid + 1), WHOLE, np.int32)
    _divide(_counts(row_boxes, bounds, grid), _counts(sample_boxes, bounds, grid), cells, grid)
    return Masses(cells, grid)


def _counts(boxes: np.ndarray, bounds: np.ndarray, grid: int) -> np.ndarray:
    counts = np.zeros(first_of(grid + 1), np.int64)
    _count(bounds, boxes, counts, grid)
    return counts


@kernel
def first_of(level):
    """Where the cells of a level start; level l has 4^l cells."""
    return ((1 << (2 * level)) - 1) // 3


@kernel
def _count(bounds, boxes, counts, grid):
    for i in range(len(boxes)):
        x = position(boxes[i, 0] / 2 + boxes[i, 2] / 2, bounds[0], bounds[2], grid)
        y = position(boxes[i, 1] / 2 + boxes[i, 3] / 2, bounds[1], bounds[3], grid)
        for level in range(grid + 1):
            counts[place_of_cell(level, x >> (grid - level), y >> (grid - level))] += 1


@kernel
def _divide(rows, sample, cells, grid):
    for level in range(grid):
        for y in range(1 << level):
            for x in range(1 << level):
                own = place_of_cell(level, x, y)
                for quarter in range(4):
                    at = place_of_cell(level + 1, 2 * x + (quarter & 1), 2 * y + (quarter >> 1))
                    by_rows = (rows[at] + 1.0) / (rows[own] + 4.0)
                    share = (sample[at] + _WEIGHT_OF_ROWS * by_rows) / (sample[own] + _WEIGHT_OF_ROWS)
                    cells[at] = np.int32(cells[own] * share)


@kernel
def place_of_cell(level, x, y):
    """The place of a cell among those of levels 0 to grid."""
    return first_of(level) + (y << level) + x


@kernel
def mass_of(masses, level, x, y):
    """The mass of a cell of any level, out of WHOLE."""
    down = max(0, level - masses.grid)
    return np.int64(masses.cells[place_of_cell(level - down, x >> down, y >> down)]) >> (2 * down)


def doublings_of(chances: np.ndarray, horizon: int) -> np.ndarray:
    """uint8: how often terms with these probabilities occur in `horizon` messages, as the exponent of a power of two.

    It is rounded up.
    """
    with np.errstate(divide="ignore"):
        doublings = np.ceil(np.log2(chances * horizon))
    return np.asarray(np.clip(doublings, 0, HEAVIEST).astype(np.uint8))


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
