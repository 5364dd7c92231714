"""Boxes as four 15-bit lanes in one word, in coordinates of equal mass.

A monotone map takes each axis to whole numbers 1 .. 32,766: half of the steps by where the rows' edges are, half
evenly, so that a city's boxes differ although the space is the world. Monotone is all that exactness needs: if two
mapped values differ, the values differ the same way round; if they are equal, the exact box is asked.

A row is R = (x0, y0, ~x1, ~y1), ~v = 32,767 - v, 16 bits each; a place is Q = (x1, y1, ~x0, ~y0). With H the top bit
of each lane, D = (Q | H) - R keeps a lane's top bit just where Q >= R there. All four: the mapped boxes overlap. All
four after one more is taken from each lane: they overlap strictly, and no exact test is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel

BITS = 15
STEPS = 1 << BITS
LOWEST, HIGHEST = 1, STEPS - 2  # so that no place reaches 32,767 in any lane: DEAD never passes
TOPS = np.uint64(0x8000_8000_8000_8000)
ONES = np.uint64(0x0001_0001_0001_0001)
DEAD = np.uint64(0x7FFF_7FFF_7FFF_7FFF)  # a removed entry: overlaps nothing
_FLIP = STEPS - 1
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
def mapped(knots, value):  # type: ignore[no-untyped-def]
    """The step of a coordinate: monotone, rounding included; beyond the knots it is the first or the last."""
    last = len(knots) - 1
    if value <= knots[0]:
        return LOWEST
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
    return LOWEST + np.int64(share * ((HIGHEST - LOWEST) / last))


@kernel
def packed(a, b, c, d):  # type: ignore[no-untyped-def]
    """Four lanes as one word."""
    low = np.uint64(a) | (np.uint64(b) << np.uint64(16))
    return low | (np.uint64(c) << np.uint64(32)) | (np.uint64(d) << np.uint64(48))


@kernel
def row_lanes(axes, boxes, out):  # type: ignore[no-untyped-def]
    """R of each row."""
    for i in range(len(boxes)):
        x0, y0 = mapped(axes.x, boxes[i, 0]), mapped(axes.y, boxes[i, 1])
        x1, y1 = mapped(axes.x, boxes[i, 2]), mapped(axes.y, boxes[i, 3])
        out[i] = packed(x0, y0, _FLIP - x1, _FLIP - y1)


@kernel
def lane(word, k):  # type: ignore[no-untyped-def]
    """Lane k of a word."""
    return np.int64((word >> np.uint64(16 * k)) & np.uint64(0x7FFF))


@kernel
def edges_of(row):  # type: ignore[no-untyped-def]
    """x0, y0, x1, y1 of a row's word."""
    return lane(row, 0), lane(row, 1), _FLIP - lane(row, 2), _FLIP - lane(row, 3)


@kernel
def place_word(x0, y0, x1, y1):  # type: ignore[no-untyped-def]
    """Q | H of a place."""
    return packed(x1, y1, _FLIP - x0, _FLIP - y0) | TOPS


@kernel
def overlaps(difference):  # type: ignore[no-untyped-def]
    """Whether the mapped boxes overlap, for difference = (Q | H) - R."""
    return difference & TOPS == TOPS


@kernel
def overlaps_surely(difference):  # type: ignore[no-untyped-def]
    """Whether they overlap strictly, so that the exact boxes do."""
    return (difference - ONES) & TOPS == TOPS
