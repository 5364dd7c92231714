"""Codes of 16 bits for coordinates. A monotone map gives crowded parts of an axis more codes than empty parts.

Codes skip work and decide nothing alone: a coordinate with a smaller code is smaller, equal codes are compared exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, lean_kernel

BITS = 16
HIGHEST = (1 << BITS) - 1
_SEGMENTS = 1024
_SPREAD = 0.1  # share of the codes that is given to the axis evenly, whatever the sample says


class AxisCodes(NamedTuple):
    """The map of one axis: linear within each of 1,024 equal segments. Values outside get the codes of the ends."""

    low: float
    scale: float  # segments per unit
    starts: np.ndarray  # float64[1025]  the code at the start of each segment, and 65,535 at the end


class PlaceCodes(NamedTuple):
    x: AxisCodes
    y: AxisCodes


def place_codes(boxes: np.ndarray, bounds: tuple[float, float, float, float]) -> PlaceCodes:
    """The codes that fit a sample of boxes (float64[n,4]) in a space; even codes over the space without a sample."""
    middles = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    xmin, ymin, xmax, ymax = bounds
    return PlaceCodes(_axis(middles[:, 0], xmin, xmax), _axis(middles[:, 1], ymin, ymax))


def _axis(values: np.ndarray, low: float, high: float) -> AxisCodes:
    inside = values[(values >= low) & (values <= high)]
    if len(inside) > 1 and inside.max() > inside.min():
        low, high = float(inside.min()), float(inside.max())
    scale = _SEGMENTS / (high - low)
    if not np.isfinite(scale):  # the sample spans less than a float can divide
        low, scale = 0.0, 1.0
    at = np.clip((inside - low) * scale, 0, _SEGMENTS - 1).astype(np.int64)
    counts = np.bincount(at, minlength=_SEGMENTS)[:_SEGMENTS]
    shares = (1 - _SPREAD) * counts / max(1, counts.sum()) + _SPREAD / _SEGMENTS
    starts = np.concatenate([[0.0], np.cumsum(shares)])
    return AxisCodes(low, scale, starts / starts[-1] * HIGHEST)


@inline_kernel
def code_of(axis, value):
    """The code of a coordinate: never smaller than that of a smaller coordinate."""
    at = min(max((value - axis.low) * axis.scale, 0.0), 1023.9999)
    segment = np.int64(at)
    start = axis.starts[segment]
    code = np.int64(start + (at - segment) * (axis.starts[segment + 1] - start))
    return min(code, np.int64(HIGHEST))


@inline_kernel
def corner_code(codes, x, y):
    """Both codes of a corner in one word: x in the lower half."""
    return np.uint32(code_of(codes.x, x) | (code_of(codes.y, y) << BITS))


@inline_kernel
def x_of(word):
    return np.int64(word) & HIGHEST


@inline_kernel
def y_of(word):
    return np.int64(word) >> BITS


NOWHERE, AT_THE_BORDER, SURELY = 0, 1, 2


class CodedBox(NamedTuple):
    """A box as codes: left, below, right, above."""

    left: int
    below: int
    right: int
    above: int


@inline_kernel
def coded_box(low, high):
    return CodedBox(x_of(low), y_of(low), x_of(high), y_of(high))


@inline_kernel
def overlap_of(low, high, box):
    """Whether the box of two corner words overlaps a coded box: NOWHERE, AT_THE_BORDER (compare exactly) or SURELY."""
    left, below, right, above = x_of(low), y_of(low), x_of(high), y_of(high)
    if left > box.right or right < box.left or below > box.above or above < box.below:
        return NOWHERE
    if left < box.right and right > box.left and below < box.above and above > box.below:
        return SURELY
    return AT_THE_BORDER


@inline_kernel
def signature_bit(term):
    """One of 32 bits for a term."""
    return np.uint32(1) << np.uint32((np.uint64(term) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(59))


@lean_kernel
def signature(terms, first, count):
    """uint32: the bits of some terms. A message without all bits of a row lacks one of the row's terms."""
    bits = np.uint32(0)
    for k in range(first, first + count):
        bits |= signature_bit(terms[k])
    return bits
