"""Packed arguments of a search for one message: first the arrays of the row store, then those of the method."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.arrays.pointers import (
    unsafe_boxes,
    unsafe_int32,
    unsafe_int64,
    unsafe_uint8,
    unsafe_uint16,
)
from nearcast.arrays.ragged import drop_repeats, sort_in_place
from nearcast.geo.shapes.arrays import ShapeArrays, locate, unsafe_shapes
from nearcast.matching.predicate import FLAG_SHAPED
from nearcast.matching.store import RowArrays, RowDetails, StoreView
from nearcast.matching.verify import is_delivered
from nearcast.model import MessageBatch

DETAILS = len(RowArrays._fields)
SHAPES = DETAILS + len(RowDetails._fields)
FIRST_OWN = SHAPES + len(ShapeArrays._fields)
"""The first position that a method fills with its own arrays."""


def store_arrays(store: StoreView) -> tuple[np.ndarray, ...]:
    """The arrays at the first FIRST_OWN positions."""
    return *store.arrays, *store.details, *store.shapes


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
def _unsafe_details(pointers):
    return RowDetails(
        unsafe_int64(pointers, DETAILS),
        unsafe_int32(pointers, DETAILS + 1),
        unsafe_int64(pointers, DETAILS + 2),
        unsafe_int32(pointers, DETAILS + 3),
    )


@kernel
def one_message(terms, x, y, time):
    """A message at a point as a batch. Its id is not read."""
    starts = np.array((0, len(terms)))
    return MessageBatch(starts, terms, starts, np.array(((x, y, x, y),)), np.array((time,)))


@kernel
def delivered_ids(pointers, message, rows):
    """The subscriptions of those rows that hold in full, ascending, each once: a new array."""
    ids = np.empty(len(rows), np.int64)
    n = write_delivered(pointers, message, rows, len(rows), ids, 0)
    return ids[: in_order(ids, n)]


@kernel
def write_delivered(pointers, message, rows, n_rows, ids, n):
    """Write the owners of those of rows[:n_rows] that hold in full to ids[n:]; return the new n."""
    store, details, shapes = unsafe_rows(pointers), _unsafe_details(pointers), unsafe_shapes(pointers, SHAPES)
    return n + _write_owners(store, details, shapes, message, rows[:n_rows], ids[n:], np.empty(4))


@lean_kernel
def _write_owners(store, details, shapes, message, rows, ids, place):
    """Write the owners of the rows that hold in full; return how many there are."""
    n, is_located = 0, False
    for k in range(len(rows)):
        row = rows[k]
        if store.flags[row] & FLAG_SHAPED and not is_located:
            locate(shapes, message.boxes, 0, place)
            is_located = True
        if is_delivered(store, details, shapes, row, message, 0, place):
            ids[n] = details.owner_ids[row]
            n += 1
    return n


@kernel
def in_order(ids, n):
    """Sort ids[:n] and drop repeats; return how many are left."""
    sort_in_place(ids, 0, n)
    return drop_repeats(ids, 0, n)
