"""Boxes as four bytes in one word: where their edges are within a cell.

A monotone map takes each axis to 2^24 steps: half of them by where the rows' edges are, half evenly, so that a city's
boxes differ although the space is the world. A cell of level l has 2^(24-l) steps each way; within it a step has a
code of 1 .. 254. An edge before the cell has 0, one behind it 255. Monotone is all that exactness needs: if two codes
differ, the values differ the same way round; if they are equal, the exact box is asked.

A row is R = (x0, y0, ~x1, ~y1), ~v = 255 - v; a place is Q = (x1, y1, ~x0, ~y0). Where no byte of R is above that of Q
the boxes may overlap. Where none is above that of Q less one, they overlap strictly, and no exact test is needed.
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


class Axes(NamedTuple):
    """The knots of the map of each axis, ascending; between two knots it is linear."""

    x: np.ndarray  # float64[n]
    y: np.ndarray  # float64[m]


def fitted_axes(boxes: np.ndarray, bounds: tuple[float, float, float, float]) -> Axes:
    """The map for rows with these boxes in a space with these bounds."""
    sample = boxes[:: max(1, len(boxes) // _SAMPLE)]
    return Axes(
        _knots(sample[:, [0, 2]].ravel(), bounds[0], bounds[2]),
        _knots(sample[:, [1, 3]].ravel(), bounds[1], bounds[3]),
    )


def _knots(edges: np.ndarray, low: float, high: float) -> np.ndarray:
    shares = np.linspace(0.0, 1.0, _KNOTS // 2 + 1)
    inside = edges[(edges >= low) & (edges <= high)]
    by_mass = np.quantile(inside, shares, method="inverted_cdf") if len(inside) else np.empty(0)
    return np.unique(np.concatenate([np.linspace(low, high, _KNOTS // 2 + 1), by_mass]))


@kernel
def mapped(knots, value):
    """The step of a coordinate: monotone, rounding included; beyond the knots it is the first or the last."""
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
    """The steps of each box's edges, x0, y0, x1, y1."""
    for i in range(len(boxes)):
        out[i, 0], out[i, 1] = mapped(axes.x, boxes[i, 0]), mapped(axes.y, boxes[i, 1])
        out[i, 2], out[i, 3] = mapped(axes.x, boxes[i, 2]), mapped(axes.y, boxes[i, 3])


@kernel
def code(step, shift):
    """Where a step is within its own cell, of 2^shift steps."""
    return 1 + (((np.int64(step) & ((1 << shift) - 1)) * _CODES) >> shift)


@kernel
def code_in(step, shift, cell):
    """Where a step is within any cell."""
    own = step >> shift
    if own == cell:
        return code(step, shift)
    return 0 if own < cell else _BEHIND


@kernel
def packed(x0, y0, x1, y1):
    """R of a row whose edges have these codes; with the edges of each axis swapped, Q of a place."""
    return x0 | (y0 << 8) | ((_BEHIND - x1) << 16) | ((_BEHIND - y1) << 24)


@kernel
def point_word(x, y, level):
    """Q of a point within its own cell of a level."""
    a, b = code(x, BITS - level), code(y, BITS - level)
    return packed(a, b, a, b)


@kernel
def row_word(steps, cell):
    """R of a mapped box within a cell = (level, column, row)."""
    level, column, row = cell
    shift = BITS - level
    x0, y0 = code_in(steps[0], shift, column), code_in(steps[1], shift, row)
    return packed(x0, y0, code_in(steps[2], shift, column), code_in(steps[3], shift, row))


@kernel
def place_word(steps, cell):
    """Q of a mapped box within a cell that it overlaps. Edges beyond the cell count as in its first or last code, which
    is close enough: what touches there is asked exactly.
    """
    level, column, row = cell
    shift = BITS - level
    x0, y0 = max(1, code_in(steps[0], shift, column)), max(1, code_in(steps[1], shift, row))
    x1, y1 = code_in(steps[2], shift, column), code_in(steps[3], shift, row)
    return packed(min(x1, _CODES), min(y1, _CODES), x0, y0)
