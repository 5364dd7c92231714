"""The side of a line on which a point lies, exact for all finite coordinates.

Floating-point arithmetic decides unless the point is within some 1e-16 of the line, or a product overflows or
underflows. Otherwise the sign is computed from the binary digits of the products: the terms of the determinant are
added 32 bits at a time, the highest first, until the rest cannot change the sign.
"""

from __future__ import annotations

import math

from nearcast.arrays.jit import kernel

ERROR = 4e-16
"""The rounding error of the determinant in relation to the sum of its two products: 3 units of 1.1e-16, rounded up."""
SMALLEST = 1e-290  # smaller products may lose digits to underflow
DIGIT_BITS = 32
DIGIT_MASK = (1 << DIGIT_BITS) - 1
MOST_TERMS = 24  # six products of four parts each
LOW_BITS = 27
LOW_MASK = (1 << LOW_BITS) - 1


@kernel
def side_of_line(ax, ay, bx, by, x, y):
    """1 if the point x, y is left of the line from a to b, -1 if it is right of it, 0 on it or if a equals b."""
    left = (ax - x) * (by - y)
    right = (ay - y) * (bx - x)
    size = abs(left) + abs(right)
    if SMALLEST < size and size < math.inf:
        if left - right > ERROR * size:
            return 1
        if left - right < -ERROR * size:
            return -1
    return _exact_side(ax, ay, bx, by, x, y)


@kernel
def _exact_side(ax, ay, bx, by, x, y):
    """The sign of ax by - ay bx + bx y - by x + x ay - y ax."""
    if (ax == x and (ay == y or bx == x)) or (by == y and (ay == y or bx == x)):
        return 0  # both products have a factor 0: the usual case, an edge along an axis
    top = max(_exponent(ax), _exponent(bx), _exponent(x)) + max(_exponent(ay), _exponent(by), _exponent(y))
    bottom = min(_exponent(ax), _exponent(bx), _exponent(x)) + min(_exponent(ay), _exponent(by), _exponent(y)) - 106
    total, at = 0, top
    while at > bottom:
        at -= DIGIT_BITS
        total = total * (1 << DIGIT_BITS) + _digit(ax, by, at) - _digit(ay, bx, at)
        total += _digit(bx, y, at) - _digit(by, x, at) + _digit(x, ay, at) - _digit(y, ax, at)
        if abs(total) >= MOST_TERMS:  # each term is cut off by less than 1
            break
    return (total > 0) - (total < 0)


@kernel
def _exponent(value):
    return math.frexp(value)[1]


@kernel
def _digit(a, b, at):
    """The 32 bits from 2**at on of the product of a and b, added up over its four parts, with its sign."""
    fraction_a, exponent_a = math.frexp(abs(a))
    fraction_b, exponent_b = math.frexp(abs(b))
    whole_a, whole_b = int(fraction_a * 2.0**53), int(fraction_b * 2.0**53)
    high_a, low_a = whole_a >> LOW_BITS, whole_a & LOW_MASK
    high_b, low_b = whole_b >> LOW_BITS, whole_b & LOW_MASK
    shift = at - (exponent_a + exponent_b - 106)
    digit = _bits(high_a * high_b, shift - 2 * LOW_BITS) + _bits(low_a * low_b, shift)
    digit += _bits(high_a * low_b, shift - LOW_BITS) + _bits(low_a * high_b, shift - LOW_BITS)
    return -digit if (a < 0.0) != (b < 0.0) else digit


@kernel
def _bits(value, shift):
    """The 32 bits from `shift` on of a value below 2**54; a negative shift is to the left."""
    if shift >= 0:
        return (value >> min(shift, 60)) & DIGIT_MASK
    if shift <= -DIGIT_BITS:
        return 0
    return (value & (DIGIT_MASK >> -shift)) << -shift


@kernel
def segment_meets_box(corners, at, xmin, ymin, xmax, ymax):
    """Whether the segment corners[at : at + 4], which is ax, ay, bx, by, shares a point with the closed box.

    It does unless the box lies beside the bounds of the segment, or strictly on one side of its line.
    """
    ax, ay, bx, by = corners[at], corners[at + 1], corners[at + 2], corners[at + 3]
    if max(ax, bx) < xmin or xmax < min(ax, bx) or max(ay, by) < ymin or ymax < min(ay, by):
        return False
    if ax == bx or ay == by or (xmin <= ax and ax <= xmax and ymin <= ay and ay <= ymax):
        return True
    # Of a rising line, the upper left and the lower right corner are the farthest on either side.
    if (ax < bx) == (ay < by):
        return side_of_line(ax, ay, bx, by, xmin, ymax) * side_of_line(ax, ay, bx, by, xmax, ymin) <= 0
    return side_of_line(ax, ay, bx, by, xmin, ymin) * side_of_line(ax, ay, bx, by, xmax, ymax) <= 0
