"""Many arrays passed to a kernel as one argument: a small array of their addresses and lengths.

Unpacking one array argument after another takes longer than matching a message: one message takes 4.9 us in `pyramid`
with pointers, and 13.9 us as a batch of one with separate arrays.

The pointers do not keep the arrays alive, and nothing checks them. Whoever makes them must keep the arrays, and must
make new pointers when one of the arrays is replaced. Otherwise the `unsafe_` kernels read freed memory.
"""

from __future__ import annotations

import ctypes

import numpy as np

from nearcast.arrays.jit import carray, intrinsic, ir, kernel, types


def pointers_to(arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """uint64[n,2]: the address of each contiguous array, and the length of its first axis."""
    for array in arrays:
        assert array.flags.c_contiguous
    return np.array([(_address(array), len(array)) for array in arrays], np.uint64)


@kernel
def _address(array):
    """The address of the first element. Outside of kernels it takes 1.1 us, here 0.3."""
    return array.ctypes.data


class PackedArrays:
    """Arrays, and the pointers to them. The pointers are made on first use: 0.7 us an array."""

    def __init__(self, arrays: tuple[np.ndarray, ...]) -> None:
        self._arrays = arrays  # keeps the memory alive
        self._pointers: np.ndarray | None = None

    @property
    def pointers(self) -> np.ndarray:
        pointers = self._pointers
        if pointers is None:
            pointers = self._pointers = pointers_to(self._arrays)
        return pointers


@intrinsic
def _to_pointer(typingctx, address):
    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.uint64), generate


def plain_pointer(address: int) -> ctypes.c_void_p:
    """The address as a pointer of any type."""
    return ctypes.c_void_p(int(address))


@kernel(plain=plain_pointer)
def _pointer(address):
    return _to_pointer(address)


@kernel
def unsafe_words(pointers, k):
    """Array k as uint64."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]),), np.uint64)


@kernel
def unsafe_word_pairs(pointers, k):
    """Array k as uint64[n,2]."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]), 2), np.uint64)


@kernel
def unsafe_floats(pointers, k):
    """Array k as float64."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]),), np.float64)


@kernel
def unsafe_boxes(pointers, k):
    """Array k as float64[n,4]."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]), 4), np.float64)


@kernel
def unsafe_lines(pointers, k, width):
    """Array k as float64[n,width]."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]), np.int64(width)), np.float64)


@kernel
def unsafe_small_boxes(pointers, k):
    """Array k as float32[n,4]."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]), 4), np.float32)


@kernel
def unsafe_small_lines(pointers, k, width):
    """Array k as float32[n,width]."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]), np.int64(width)), np.float32)


@kernel
def unsafe_int32_lines(pointers, k, width):
    """Array k as int32[n,width]."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]), np.int64(width)), np.int32)


@kernel
def unsafe_uint32(pointers, k):
    """Array k as uint32."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]),), np.uint32)


@kernel
def unsafe_int32(pointers, k):
    """Array k as int32."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]),), np.int32)


@kernel
def unsafe_int64(pointers, k):
    """Array k as int64."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]),), np.int64)


@kernel
def unsafe_uint16(pointers, k):
    """Array k as uint16."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]),), np.uint16)


@kernel
def unsafe_uint8(pointers, k):
    """Array k as uint8."""
    return carray(_pointer(pointers[k, 0]), (np.int64(pointers[k, 1]),), np.uint8)
