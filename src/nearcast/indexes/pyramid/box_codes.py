"""Boxes encoded as four bytes in one 32-bit word: the position of each edge within a grid cell.

A monotone map takes each axis to 2^24 steps. Half of the steps follow the distribution of the rows' edges, and half are
even, so that boxes within one city get different codes although the space is the whole world. A cell of level l spans
2^(24-l) steps on each axis. Within a cell a step has a code from 1 to 254; an edge before the cell has code 0, and an
edge behind it has code 255. Exactness needs only that the map is monotone: if two codes differ, the coordinates differ
in the same direction; if two codes are equal, the exact box is compared.

A row is R = (x0, y0, ~x1, ~y1) with ~v = 255 - v. A place, which is the box of a message, is Q = (x1, y1, ~x0, ~y0). If
no byte of R is above the same byte of Q, the boxes may overlap. If no byte of R is above that of Q less one, they
surely overlap, and no exact test is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel

BITS = 24
HIGHEST = (1 << BITS) - 1
ONES = 0x0101_0101
DEAD = np.uint32(0xFFFF_FFFF)  # a removed entry: no place has 255 in any byte, so it overlaps nothing
_CODES = 254
_BEHIND = _CODES + 1
_KNOTS = 1024
_SAMPLE = 20_000


class Cell(NamedTuple):
    """One cell of a grid of 2^level x 2^level cells."""

    level: int
    column: int
    row: int


class Axes(NamedTuple):
    """The map of each axis: ascending knots, which are equal numbers of steps apart. Between two knots it is linear."""

    x: np.ndarray  # float64[n]
    y: np.ndarray  # float64[m]


def fitted_axes(boxes: np.ndarray, bounds: tuple[float, float, float, float]) -> Axes:
    """The map for rows with these boxes, in a space with these bounds."""
    sample = boxes[:: max(1, len(boxes) // _SAMPLE)]
    return Axes(
        _knots(sample[:, [0, 2]].ravel(), bounds[0], bounds[2]), _knots(sample[:, [1, 3]].ravel(), bounds[1], bounds[3])
    )


def _knots(edges: np.ndarray, low: float, high: float) -> np.ndarray:
    shares = np.linspace(0.0, 1.0, _KNOTS // 2 + 1)
    inside = edges[(edges >= low) & (edges <= high)]
    by_mass = np.quantile(inside, shares, method="inverted_cdf") if len(inside) else np.empty(0)
    return np.unique(np.concatenate([np.linspace(low, high, _KNOTS // 2 + 1), by_mass]))


@kernel
def mapped(knots, value):
    """The step of a coordinate: monotone, also in its rounding. Beyond the knots it is the first or the last step."""
    last = len(knots) - 1
    if value <= knots[0]:
        return 0
    if value >= knots[last]:
        return HIGHEST
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) >> 1
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    share = low + (value - knots[low]) / (knots[high] - knots[low])
    return np.int64(share * (HIGHEST / last))


@kernel
def mapped_boxes(axes, boxes, out):
    """Write the steps of the edges x0, y0, x1, y1 of each box."""
    for i in range(len(boxes)):
        out[i, 0], out[i, 1] = mapped(axes.x, boxes[i, 0]), mapped(axes.y, boxes[i, 1])
        out[i, 2], out[i, 3] = mapped(axes.x, boxes[i, 2]), mapped(axes.y, boxes[i, 3])


@kernel
def code(step, shift):
    """The code of a step within its own cell of 2^shift steps."""
    return 1 + (((np.int64(step) & ((1 << shift) - 1)) * _CODES) >> shift)


@kernel
def code_in(step, shift, cell):
    """The code of a step within the column or row `cell`."""
    own = step >> shift
    if own == cell:
        return code(step, shift)
    return 0 if own < cell else _BEHIND


@kernel
def packed(x0, y0, x1, y1):
    """R of a row whose edges have these codes. With the edges of each axis swapped it is Q of a place."""
    return x0 | (y0 << 8) | ((_BEHIND - x1) << 16) | ((_BEHIND - y1) << 24)


@kernel
def point_word(x, y, level):
    """Q of a point within its own cell of a level."""
    a, b = code(x, BITS - level), code(y, BITS - level)
    return packed(a, b, a, b)


@kernel
def row_word(steps, cell):
    """R of a mapped box within a cell."""
    shift = BITS - cell.level
    x0, y0 = code_in(steps[0], shift, cell.column), code_in(steps[1], shift, cell.row)
    return packed(x0, y0, code_in(steps[2], shift, cell.column), code_in(steps[3], shift, cell.row))


@kernel
def place_word(steps, cell):
    """Q of a mapped box within a cell that it overlaps.

    An edge beyond the cell gets the first or last code of the cell. A row that touches there is compared exactly.
    """
    shift = BITS - cell.level
    x0, y0 = max(1, code_in(steps[0], shift, cell.column)), max(1, code_in(steps[1], shift, cell.row))
    x1, y1 = code_in(steps[2], shift, cell.column), code_in(steps[3], shift, cell.row)
    return packed(min(x1, _CODES), min(y1, _CODES), x0, y0)
