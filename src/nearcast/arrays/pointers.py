"""Many arrays handed to a kernel as one: their addresses and lengths in a small array of words.

One message by ticket takes 4.9 us in `pyramid`, by a batch of one with all its arrays 13.9. What can go wrong is named:
a ticket does not keep its arrays alive and nothing checks it, so its maker holds the arrays, and makes a new one
when any of them is replaced.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import JIT_DISABLED, carray, intrinsic, ir, kernel, types


def ticket_for(arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """uint64[n,2]: address and length (of the first axis) of each contiguous array."""
    for array in arrays:
        assert array.flags.c_contiguous
    return np.array([(array.ctypes.data, len(array)) for array in arrays], np.uint64)


if not JIT_DISABLED:

    @intrinsic
    def _pointer(typingctx, address):
        def generate(context, builder, signature, args):
            return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

        return types.voidptr(types.uint64), generate

    @kernel
    def unsafe_words(ticket, k):
        """Array k as uint64."""
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]),), np.uint64)

    @kernel
    def unsafe_word_pairs(ticket, k):
        """Array k as uint64[n,2]."""
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]), 2), np.uint64)

    @kernel
    def unsafe_floats(ticket, k):
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]),), np.float64)

    @kernel
    def unsafe_boxes(ticket, k):
        """Array k as float64[n,4]."""
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]), 4), np.float64)

    @kernel
    def unsafe_small_boxes(ticket, k):
        """Array k as float32[n,4]."""
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]), 4), np.float32)

    @kernel
    def unsafe_small_lines(ticket, k, width):
        """Array k as float32[n,width]."""
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]), np.int64(width)), np.float32)

    @kernel
    def unsafe_int32_lines(ticket, k, width):
        """Array k as int32[n,width]."""
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]), np.int64(width)), np.int32)

    @kernel
    def unsafe_uint32(ticket, k):
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]),), np.uint32)

    @kernel
    def unsafe_int32(ticket, k):
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]),), np.int32)

    @kernel
    def unsafe_int64(ticket, k):
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]),), np.int64)

    @kernel
    def unsafe_uint16(ticket, k):
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]),), np.uint16)

    @kernel
    def unsafe_uint8(ticket, k):
        return carray(_pointer(ticket[k, 0]), (np.int64(ticket[k, 1]),), np.uint8)
