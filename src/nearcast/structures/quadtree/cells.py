"""Coordinates as whole numbers: the span of a box, the cells that a span overlaps, and the level it belongs to."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.geo.loose_grid import position
from nearcast.structures.boxes import rounded_down

FINEST = 24
"""Spans are given in columns and lines of this level. Its cells are 2.4 m wide on the equator."""


@kernel
def span_of(bounds, box):
    """(first column, first line, last column, last line) of a box, inclusive."""
    left, right = position(box[0], bounds[0], bounds[2], FINEST), position(box[2], bounds[0], bounds[2], FINEST)
    low, high = position(box[1], bounds[1], bounds[3], FINEST), position(box[3], bounds[1], bounds[3], FINEST)
    return left, low, right, high


@kernel
def row_span(bounds, box):
    """The span of a row's box rounded outward to float32. It can be computed from the row's entries alone."""
    left = position(rounded_down(box[0]), bounds[0], bounds[2], FINEST)
    right = position(-rounded_down(-box[2]), bounds[0], bounds[2], FINEST)
    low = position(rounded_down(box[1]), bounds[1], bounds[3], FINEST)
    high = position(-rounded_down(-box[3]), bounds[1], bounds[3], FINEST)
    return left, low, right, high


@kernel
def cells_needed(span, level):
    """The number of cells of a level that a span overlaps."""
    shift = FINEST - level
    return ((span[2] >> shift) - (span[0] >> shift) + 1) * ((span[3] >> shift) - (span[1] >> shift) + 1)


@kernel
def depth_of(span, copies, limit):
    """The deepest level, at most `limit`, where a span needs no more than `copies` cells."""
    level = 0
    while level < limit and cells_needed(span, level + 1) <= copies:
        level += 1
    return level


@kernel
def in_cell(span, level, x, y):
    """Whether a span overlaps cell (x, y) of a level."""
    shift = FINEST - level
    across = (span[0] >> shift) <= x and x <= (span[2] >> shift)
    return across and (span[1] >> shift) <= y and y <= (span[3] >> shift)


@kernel
def in_quarter(span, level, x, y, quarter):
    """Whether a span overlaps a quarter (0 to 3) of cell (x, y) of a level."""
    return in_cell(span, level + 1, 2 * x + (quarter & 1), 2 * y + (quarter >> 1))


def level_limit(depth: int, tau_area: float) -> int:
    """The deepest level of a tree, given that cells smaller than `tau_area` of the whole are not divided."""
    return sum(0.25**level >= tau_area for level in range(depth))


def frame(boxes: np.ndarray, space: tuple[float, float, float, float]) -> np.ndarray:
    """float64[4]: the bounds of a tree: the box around all boxes, clipped to the space.

    An axis on which that box has no extent, as with rows at one place, gets the bounds of the space.
    """
    bounds = np.array(space, np.float64)
    if len(boxes) == 0:
        return bounds
    for low, high in ((0, 2), (1, 3)):
        least, most = max(boxes[:, low].min(), space[low]), min(boxes[:, high].max(), space[high])
        if least < most:
            bounds[low], bounds[high] = least, most
    return bounds
