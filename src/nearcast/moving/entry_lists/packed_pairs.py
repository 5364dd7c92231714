"""Pairs of a row and a message in one number, as kernels write them: the row, a sign bit, and the message's slot."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.moving.pairs import Pairs, SignedPairs

BEGINS = np.int64(1) << 31
"""Set in a packed pair that begins to hold; the others cease to."""


@inline_kernel
def packed_pair(row, slot):
    return (np.int64(row) << 32) | np.int64(slot)


def unpacked(packed: np.ndarray) -> Pairs:
    """The pairs."""
    pairs = Pairs(np.empty(len(packed), np.int32), np.empty(len(packed), np.int32))
    _unpack(packed, *pairs, np.empty(0, np.int8))
    return pairs


def unpacked_changes(packed: np.ndarray) -> SignedPairs:
    """The pairs, and which of them begin to hold."""
    n = len(packed)
    pairs = SignedPairs(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int8))
    _unpack(packed, *pairs)
    return pairs


@kernel
def _unpack(packed, out_rows, out_slots, out_signs):
    """Unpack all pairs in one pass. `out_signs` may be empty."""
    for i in range(len(packed)):
        out_rows[i], out_slots[i] = packed[i] >> 32, packed[i] & (BEGINS - 1)
        if len(out_signs):
            out_signs[i] = 1 if packed[i] & BEGINS else -1
