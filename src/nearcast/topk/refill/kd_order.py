"""Orders postings so that every block of 32 has near points and similar values: a k-d tree without nodes."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel

BLOCK = 32
VALUE = 3
"""The dimension after the coordinates of a point."""
VALUE_SCALE = 2.0
"""A value of 1 counts as much as a distance of 2: the best of 0.5, 1, 2 and 4 for refills on map notes."""


@kernel
def order_stretch(postings, start, count):
    """Order the postings start .. start+count-1 and set the headers of whole blocks; return how many have headers."""
    keys = np.empty((4, count), np.float32)
    order = np.arange(count).astype(np.int32)
    for k in range(count):
        for d in range(3):
            keys[d, k] = postings.points[start + k, d]
        keys[VALUE, k] = postings.values[start + k] * VALUE_SCALE
    _split_all(keys, order)
    _permute(postings, start, order)
    whole = count // BLOCK * BLOCK
    set_headers(postings, start, whole)
    return whole


@kernel
def _split_all(keys, order):
    """Halve ranges at a multiple of BLOCK by their widest dimension until they are blocks."""
    waiting = np.empty((64, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, len(order)
    n = 1
    while n > 0:
        n -= 1
        low, high = waiting[n, 0], waiting[n, 1]
        if high - low <= BLOCK:
            continue
        middle = low + ((high - low) // 2 + BLOCK - 1) // BLOCK * BLOCK
        _select(keys[_widest(keys, order, low, high)], order, low, high, middle)
        waiting[n, 0], waiting[n, 1] = low, middle
        waiting[n + 1, 0], waiting[n + 1, 1] = middle, high
        n += 2


@kernel
def _widest(keys, order, low, high):
    """The dimension of the largest spread, by a sample of up to 256."""
    best, widest = np.float32(-1.0), 0
    step = max(1, (high - low) >> 8)
    for d in range(4):
        least, most = np.float32(np.inf), np.float32(-np.inf)
        for k in range(low, high, step):
            least, most = min(least, keys[d, order[k]]), max(most, keys[d, order[k]])
        if most - least > best:
            best, widest = most - least, d
    return widest


@kernel
def _select(key, order, low, high, middle):
    """Move the smallest middle - low of order[low:high], by key, to the front."""
    first, last = low, high - 1
    while first < last:
        pivot = key[order[(first + last) >> 1]]
        i, j = first, last
        while i <= j:
            while key[order[i]] < pivot:
                i += 1
            while key[order[j]] > pivot:
                j -= 1
            if i <= j:
                swapped = order[i]
                order[i] = order[j]
                order[j] = swapped
                i += 1
                j -= 1
        if middle <= j:
            last = j
        elif middle >= i:
            first = i
        else:
            return


@kernel
def _permute(postings, start, order):
    """Put posting start + order[k] at start + k."""
    n = len(order)
    points, values = postings.points[start : start + n].copy(), postings.values[start : start + n].copy()
    gains, arrivals = postings.gains[start : start + n].copy(), postings.arrivals[start : start + n].copy()
    for k in range(n):
        for d in range(3):
            postings.points[start + k, d] = points[order[k], d]
        postings.values[start + k] = values[order[k]]
        postings.gains[start + k] = gains[order[k]]
        postings.arrivals[start + k] = arrivals[order[k]]


@kernel
def set_headers(postings, start, count):
    """Set the headers of the blocks of the first `count` postings of a stretch; `count` is a multiple of BLOCK."""
    for first in range(start, start + count, BLOCK):
        block = first // BLOCK
        for d in range(3):
            low, high = postings.points[first, d], postings.points[first, d]
            for p in range(first + 1, first + BLOCK):
                low, high = min(low, postings.points[p, d]), max(high, postings.points[p, d])
            postings.lows[block, d] = low
            postings.highs[block, d] = high
        value, gain = postings.values[first], postings.gains[first]
        for p in range(first + 1, first + BLOCK):
            value, gain = max(value, postings.values[p]), max(gain, postings.gains[p])
        postings.tops[block, 0] = value
        postings.tops[block, 1] = gain
