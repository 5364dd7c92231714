"""Sorting row numbers: two passes over half of the bits each, in the first-level cache.

1,400 numbers below 10 M take 8 us; a comparison sort takes 58.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place

_FEWEST = 128  # below, clearing the counters costs more than sorting by comparison
_MOST_DIGIT_BITS = 13  # 8,192 counters are 32 KB; numbers of more than 26 bits are sorted by comparison


@kernel
def sort_rows(rows, first, stop, scratch, counts):  # type: ignore[no-untyped-def]
    """Sort the non-negative int32 rows[first:stop]. `scratch` has as much room, `counts` 2^_MOST_DIGIT_BITS + 1."""
    if stop - first < _FEWEST:
        sort_in_place(rows, first, stop)
        return
    largest = 0
    for k in range(first, stop):
        largest = max(largest, rows[k])
    bits = 1
    while largest >> (2 * bits):
        bits += 1
    if bits > _MOST_DIGIT_BITS:
        sort_in_place(rows, first, stop)
        return
    _by_digit(rows[first:stop], scratch, 0, bits, counts)
    _by_digit(scratch[: stop - first], rows[first:stop], bits, bits, counts)


@kernel
def _by_digit(source, target, shift, bits, counts):  # type: ignore[no-untyped-def]
    """Stable: numbers with equal digits keep their order."""
    mask = (1 << bits) - 1
    counts[: mask + 2] = 0
    for k in range(len(source)):
        counts[np.uint64(((source[k] >> shift) & mask) + 1)] += 1
    for digit in range(mask):
        counts[digit + 1] += counts[digit]
    for k in range(len(source)):
        digit = np.uint64((source[k] >> shift) & mask)  # unsigned: a signed index is tested for being negative
        target[np.uint64(counts[digit])] = source[k]
        counts[digit] += 1


@kernel
def sort_each(rows, starts):  # type: ignore[no-untyped-def]
    """Sort each run of a ragged array of row numbers."""
    longest = 0
    for m in range(len(starts) - 1):
        longest = max(longest, starts[m + 1] - starts[m])
    scratch = np.empty(longest, rows.dtype)
    counts = np.empty((1 << _MOST_DIGIT_BITS) + 1, np.int32)
    for m in range(len(starts) - 1):
        sort_rows(rows, starts[m], starts[m + 1], scratch, counts)
