"""The stored rows from a ticket whose first arrays they are."""

from __future__ import annotations

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.matching.store import RowArrays

if not JIT_DISABLED:
    from nearcast.arrays.pointers import unsafe_boxes, unsafe_int32, unsafe_int64, unsafe_uint8, unsafe_uint16

    @kernel
    def unsafe_rows(ticket):
        return RowArrays(
            unsafe_boxes(ticket, 0),
            unsafe_int64(ticket, 1),
            unsafe_uint16(ticket, 2),
            unsafe_uint16(ticket, 3),
            unsafe_uint8(ticket, 4),
            unsafe_int32(ticket, 5),
        )
