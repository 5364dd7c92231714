"""How likely a message is to be in a cell, as whole numbers.

They are kept from one build to the next and are the same on every machine, so that the cells of a row can be computed
again when the row is removed.

The probability of a cell is divided among its quarters by the sampled messages there; where these are few, by the rows
there; where those are few too, by area.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.geo.loose_grid import position

WHOLE = 1 << 24
"""The mass of the root."""

FINEST_GRID = 8
"""The deepest level at which messages and rows are counted. Fewer of them get a coarser grid: one cell for four."""

HEAVIEST = 36
"""The largest number of doublings of a mass: it then fits in 61 bits."""

_WEIGHT_OF_ROWS = 8.0
"""The rows weigh as much as 8 sampled messages: with 8 in a cell, each of the two decides half of its division."""


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
