"""Kernels that read the common forms of regions: circle(x, y, 2.5km) and a GeoJSON Polygon.

They check the form and copy the numbers; Arrow converts all numbers at once. `geojson.parse_region` defines what a text
means. Any other form, an exponent, or a number that could be read in two ways is left to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import large_string_array
from nearcast.arrays.jit import kernel

OTHER, KILOMETRES, METRES = range(3)
"""The form of a text: not a circle, or a circle whose radius is in kilometres (in a plane: units) or metres."""

MAX_NUMBER_BYTES = 24
MAX_INTEGER_DIGITS = 15
"""Longer integers may not be exact as float64."""

CIRCLE = np.frombuffer(b"circle", np.uint8)
TYPE = np.frombuffer(b'"type"', np.uint8)
POLYGON = np.frombuffer(b'"Polygon"', np.uint8)
COORDINATES = np.frombuffer(b'"coordinates"', np.uint8)


class Numbers(NamedTuple):
    """Numbers as text."""

    raw: np.ndarray  # uint8[...]
    starts: np.ndarray  # int64[...]
    rings: np.ndarray  # int64[...]  number of the first position of each ring
    counts: np.ndarray  # int64[2]    numbers and rings so far

    @classmethod
    def room_for(cls, n_bytes: int, n_numbers: int, n_rings: int) -> Numbers:
        return cls(
            np.empty(n_bytes, np.uint8),
            np.zeros(n_numbers + 1, np.int64),
            np.zeros(n_rings + 1, np.int64),
            np.zeros(2, np.int64),
        )

    def values(self) -> np.ndarray:
        """float64[n]: the numbers, each the float64 nearest to its text."""
        texts = large_string_array(self.raw, self.starts[: self.counts[0] + 1])
        return np.array(pc.cast(texts, pa.float64()))


@kernel
def read_circles(raw, offsets, is_planar, numbers, out_forms):
    """Write the form of each text and the three numbers of each circle."""
    for row in range(len(out_forms)):
        n_before = numbers.counts[0]
        i, stop = offsets[row], offsets[row + 1]
        out_forms[row] = OTHER
        if not starts_with(raw, i, stop, CIRCLE, 0x20):
            continue
        i = after(raw, i + len(CIRCLE), stop, 0x28)
        i = after(raw, read_number(raw, i, stop, False, numbers), stop, 0x2C)
        i = after(raw, read_number(raw, i, stop, False, numbers), stop, 0x2C)
        i = read_number(raw, i, stop, False, numbers)
        if i >= 0:
            i = skip_space(raw, i, stop)
            form = KILOMETRES
            if not is_planar:
                form = unit_of(raw, i, stop)
                i += 2 if form == KILOMETRES else 1
            if form != OTHER and after(raw, i, stop, 0x29) == stop:
                out_forms[row] = form
        if out_forms[row] == OTHER:
            numbers.counts[0] = n_before


@kernel
def unit_of(raw, i, stop):
    """KILOMETRES or METRES if the unit km or m is at i, else OTHER."""
    if i + 1 < stop and raw[i] | 0x20 == 0x6B and raw[i + 1] | 0x20 == 0x6D:
        return KILOMETRES
    return METRES if i < stop and raw[i] | 0x20 == 0x6D else OTHER


@kernel
def read_polygons(raw, offsets, numbers, out_first_rings, out_is_read):
    """Write the numbers and rings of each text that is a GeoJSON Polygon of two-dimensional positions."""
    out_first_rings[0] = 0
    for row in range(len(out_is_read)):
        n_numbers, n_rings = numbers.counts[0], numbers.counts[1]
        out_is_read[row] = read_polygon(raw, offsets[row], offsets[row + 1], numbers)
        if not out_is_read[row]:
            numbers.counts[0], numbers.counts[1] = n_numbers, n_rings
        out_first_rings[row + 1] = numbers.counts[1]
    numbers.rings[numbers.counts[1]] = numbers.counts[0] // 2


@kernel
def read_polygon(raw, i, stop, numbers):
    """Whether raw[i:stop] is an object with a type, Polygon, and coordinates, each once, and nothing else."""
    i = after(raw, i, stop, 0x7B)
    has_type = has_coordinates = False
    while i >= 0:
        i = skip_space(raw, i, stop)
        if not has_type and starts_with(raw, i, stop, TYPE, 0):
            i = after(raw, i + len(TYPE), stop, 0x3A)
            i = skip_space(raw, i, stop) if i >= 0 else stop
            if not starts_with(raw, i, stop, POLYGON, 0):
                return False
            i += len(POLYGON)
            has_type = True
        elif not has_coordinates and starts_with(raw, i, stop, COORDINATES, 0):
            i = read_rings(raw, after(raw, i + len(COORDINATES), stop, 0x3A), stop, numbers)
            has_coordinates = True
        else:
            return False
        if has_type and has_coordinates:
            i = after(raw, i, stop, 0x7D)
            return i >= 0 and skip_space(raw, i, stop) == stop
        i = after(raw, i, stop, 0x2C)
    return False


@kernel
def read_rings(raw, i, stop, numbers):
    """Append the rings of the list at i; return the position after the list, or -1."""
    i = after(raw, i, stop, 0x5B)
    while i >= 0:
        numbers.rings[numbers.counts[1]] = numbers.counts[0] // 2
        i = read_ring(raw, i, stop, numbers)
        numbers.counts[1] += 1
        end = after(raw, i, stop, 0x5D)
        if end >= 0:
            return end
        i = after(raw, i, stop, 0x2C)
    return -1


@kernel
def read_ring(raw, i, stop, numbers):
    """Append the positions of the list at i; return the position after the list, or -1."""
    i = after(raw, i, stop, 0x5B)
    while i >= 0:
        i = after(raw, i, stop, 0x5B)
        i = after(raw, read_number(raw, i, stop, True, numbers), stop, 0x2C)
        i = after(raw, read_number(raw, i, stop, True, numbers), stop, 0x5D)
        end = after(raw, i, stop, 0x5D)
        if end >= 0:
            return end
        i = after(raw, i, stop, 0x2C)
    return -1


@kernel
def skip_space(raw, i, stop):
    """The position of the first byte from i on that is not white space, or `stop`."""
    while i < stop and (raw[i] == 0x20 or raw[i] == 0x0A or raw[i] == 0x0D or raw[i] == 0x09):
        i += 1
    return i


@kernel
def after(raw, i, stop, byte):
    """The position after `byte`, which must follow i and white space; -1 if it does not, or if i is -1."""
    if i < 0:
        return -1
    i = skip_space(raw, i, stop)
    return i + 1 if i < stop and raw[i] == byte else -1


@kernel
def starts_with(raw, i, stop, text, ignored_bits):
    """Whether `text` is at i. Bits that are set in `text` and in `ignored_bits` may be clear: 0x20 ignores case."""
    if stop - i < len(text):
        return False
    for k in range(len(text)):
        if raw[i + k] | (text[k] & ignored_bits) != text[k]:
            return False
    return True


@kernel
def read_number(raw, i, stop, is_json, numbers):
    """Append the number at i, after white space; return the position after it, or -1 if it needs the parser.

    JSON has no plus sign, no leading zeros and digits on both sides of a point. Its -0 is an integer and so not
    negative.
    """
    if i < 0:
        return -1
    first = i = skip_space(raw, i, stop)
    if i < stop and (raw[i] == 0x2D or (raw[i] == 0x2B and not is_json)):
        i += 1
        first += raw[first] == 0x2B  # Arrow does not accept a plus sign
    digits_at = i
    while i < stop and 0x30 <= raw[i] <= 0x39:
        i += 1
    n_whole, n_fraction = i - digits_at, np.int64(0)
    has_point = i < stop and raw[i] == 0x2E
    if has_point:
        i += 1
        while i < stop and 0x30 <= raw[i] <= 0x39:
            i += 1
            n_fraction += 1
    if n_whole + n_fraction == 0 or i - first > MAX_NUMBER_BYTES:
        return -1
    if is_json and not is_json_number(raw, digits_at, n_whole, n_fraction, has_point, digits_at > first):
        return -1
    n = numbers.counts[0]
    start = numbers.starts[n]
    for k in range(first, i):
        numbers.raw[start + k - first] = raw[k]
    numbers.starts[n + 1] = start + i - first
    numbers.counts[0] = n + 1
    return i


@kernel
def is_json_number(raw, digits_at, n_whole, n_fraction, has_point, is_negative):
    """Whether a number of these parts is one in JSON and has one meaning as float64."""
    if n_whole == 0 or (n_whole > 1 and raw[digits_at] == 0x30) or (has_point and n_fraction == 0):
        return False
    is_integer_zero = n_whole == 1 and raw[digits_at] == 0x30 and not has_point
    return has_point or (n_whole <= MAX_INTEGER_DIGITS and not (is_negative and is_integer_zero))
