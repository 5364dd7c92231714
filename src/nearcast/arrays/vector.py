"""The few vector instructions that kernels use by hand, each with a plain twin.

They are written as LLVM vectors of eight words, which LLVM lowers to whatever the machine has: SSE2, AVX2, AVX-512 or
none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import JIT_DISABLED, intrinsic, ir, kernel, types

WIDTH = 8


def plain_all_set(words: np.ndarray, start: int, minuend: Any, mask: Any) -> int:
    """Bit k is set where (minuend - words[start + k]) & mask == mask, for k in 0 .. 7."""
    bits = 0
    for k in range(WIDTH):
        if (minuend - words[start + k]) & mask == mask:
            bits |= 1 << k
    return bits


def plain_lowest_bit(bits: int) -> int:
    """The position of the lowest bit set."""
    return (int(bits) & -int(bits)).bit_length() - 1


def plain_count_bits(bits: int) -> int:
    """How many bits are set."""
    return int(bits).bit_count()


def plain_store_word(array: np.ndarray, at: int, word: Any) -> None:
    """Write the eight bytes of a word, lowest first, to array[at : at + 8] (uint8), wherever `at` is."""
    for k in range(8):
        array[at + k] = (int(word) >> (8 * k)) & 255


def plain_prefetch(array: np.ndarray, at: int) -> None:
    """Ask for the cache line of array[at]; may name a place past the end."""


if JIT_DISABLED:
    all_set, lowest_bit, prefetch = kernel(plain_all_set), kernel(plain_lowest_bit), kernel(plain_prefetch)
    count_bits, store_word = kernel(plain_count_bits), kernel(plain_store_word)
else:
    _VECTOR = ir.VectorType(ir.IntType(64), WIDTH)

    def _splat(builder: Any, word: Any) -> Any:
        first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), word, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), zeros)

    def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
        data = context.make_array(array_type)(context, builder, array).data
        return builder.gep(data, [at])

    @intrinsic  # type: ignore[untyped-decorator]
    def _all_set(typingctx, words, start, minuend, mask):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            address = _address(context, builder, signature.args[0], args[0], args[1])
            loaded = builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=8)
            masks = _splat(builder, args[3])
            passed = builder.and_(builder.sub(_splat(builder, args[2]), loaded), masks)
            bits = builder.bitcast(builder.icmp_unsigned("==", passed, masks), ir.IntType(WIDTH))
            return builder.zext(bits, ir.IntType(64))

        return types.int64(words, types.int64, types.uint64, types.uint64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def _lowest_bit(typingctx, bits):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def _count_bits(typingctx, bits):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.ctpop(args[0])

        return types.int64(types.int64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def _store_word(typingctx, array, at, word):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            address = _address(context, builder, signature.args[0], args[0], args[1])
            builder.store(args[2], builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.uint64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def _prefetch(typingctx, array, at):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            byte = ir.IntType(8).as_pointer()
            address = builder.bitcast(_address(context, builder, signature.args[0], args[0], args[1]), byte)
            word = ir.IntType(32)
            declared = builder.module.declare_intrinsic(
                "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            )
            read, keep, data = ir.Constant(word, 0), ir.Constant(word, 3), ir.Constant(word, 1)
            builder.call(declared, [address, read, keep, data])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    @kernel
    def all_set(words, start, minuend, mask):  # type: ignore[no-untyped-def]
        return _all_set(words, start, minuend, mask)

    @kernel
    def lowest_bit(bits):  # type: ignore[no-untyped-def]
        return _lowest_bit(bits)

    @kernel
    def count_bits(bits):  # type: ignore[no-untyped-def]
        return _count_bits(bits)

    @kernel
    def store_word(array, at, word):  # type: ignore[no-untyped-def]
        _store_word(array, at, word)

    @kernel
    def prefetch(array, at):  # type: ignore[no-untyped-def]
        _prefetch(array, at)


# For each byte, the positions of its bits that are set, lowest first, as the bytes of a word.
_POSITIONS = np.array(
    [sum(k << (8 * i) for i, k in enumerate(k for k in range(8) if byte >> k & 1)) for byte in range(256)], np.uint64
)
_EVERY_BYTE = np.uint64(0x0101_0101_0101_0101)
CHUNK = 256


@kernel
def passing(words, span, minuend, mask, out):  # type: ignore[no-untyped-def]
    """Where (minuend - word) & mask == mask in words[span]: positions from the span's start, as bytes; return how many.

    A span has CHUNK words at most; `out` (uint8) has room for 8 more. No branch depends on the words: eight positions
    are written for each eight words, and as many kept as pass.
    """
    start, stop = span
    n = 0
    for first in range(start, stop, WIDTH):
        bits = all_set(words, first, minuend, mask) & ((1 << min(WIDTH, stop - first)) - 1)
        store_word(out, n, _POSITIONS[bits] + np.uint64(first - start) * _EVERY_BYTE)
        n += count_bits(bits)
    return n


@kernel
def sifted(words, span, minuends, mask, out):  # type: ignore[no-untyped-def]
    """`passing` by the first minuend; and a number that is not 0 where some word passes by the second one alone.

    The second must let through whatever the first does.
    """
    start, stop = span
    strict, loose = minuends
    n = others = 0
    for first in range(start, stop, WIDTH):
        valid = (1 << min(WIDTH, stop - first)) - 1
        bits = all_set(words, first, strict, mask) & valid
        others |= (all_set(words, first, loose, mask) & valid) ^ bits
        store_word(out, n, _POSITIONS[bits] + np.uint64(first - start) * _EVERY_BYTE)
        n += count_bits(bits)
    return n, others
