"""Packed arguments that start with the row store: its arrays, then the owner of each row."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.pointers import unsafe_boxes, unsafe_int32, unsafe_int64, unsafe_uint8, unsafe_uint16
from nearcast.matching.store import RowArrays, RowStore

OWNERS = len(RowArrays._fields)
FIRST_OWN = OWNERS + 1
"""The first position that a method fills with its own arrays."""


def store_arrays(store: RowStore) -> tuple[np.ndarray, ...]:
    """The arrays at the first FIRST_OWN positions."""
    return *store.arrays, store.owner_ids


@kernel
def unsafe_rows(pointers):
    """The arrays of the row store."""
    return RowArrays(
        unsafe_boxes(pointers, 0),
        unsafe_int64(pointers, 1),
        unsafe_uint16(pointers, 2),
        unsafe_uint16(pointers, 3),
        unsafe_uint8(pointers, 4),
        unsafe_int32(pointers, 5),
    )


@kernel
def unsafe_owners(pointers):
    """int64[rows]: the subscription id of each row."""
    return unsafe_int64(pointers, OWNERS)
