"""Arrays that grow. Capacity grows by half or doubles, so that n appended values cost O(n)."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel


def grown(array: np.ndarray, needed: int, fill: float | None = None) -> np.ndarray:
    """`array` itself if it has `needed` rows, else a copy with at least `needed` rows, and half as many again."""
    if needed <= len(array):
        return array
    capacity = max(needed, len(array) + len(array) // 2, 16)
    out = np.empty((capacity, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    if fill is not None:
        out[len(array) :] = fill
    return out


@kernel
def with_room(out, used, extra):
    """`out` itself if `extra` more values fit behind the first `used`, else a copy of at least twice the size."""
    if used + extra <= len(out):
        return out
    bigger = np.empty(max(2 * len(out), used + extra), out.dtype)
    copy_values(bigger, 0, out, 0, used)
    return bigger


@kernel
def copy_values(target, at, source, first, stop):
    """Copy source[first:stop] to `target` from place `at` on. Numba takes a second to compile a copy of slices."""
    for k in range(first, stop):
        target[at + k - first] = source[k]
