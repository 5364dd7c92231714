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


def plain_store_sums(array: np.ndarray, at: int, terms: np.ndarray, first: int, summand: int) -> None:
    """array[at + k] = terms[first + k] + summand, for k in 0 .. 7, all uint32."""
    for k in range(WIDTH):
        array[at + k] = int(terms[first + k]) + int(summand)


def plain_prefetch(array: np.ndarray, at: int) -> None:
    """Ask for the cache line of array[at]; may name a place past the end."""


if JIT_DISABLED:
    all_set, lowest_bit, prefetch = kernel(plain_all_set), kernel(plain_lowest_bit), kernel(plain_prefetch)
    count_bits, store_sums = kernel(plain_count_bits), kernel(plain_store_sums)
else:
    _VECTOR = ir.VectorType(ir.IntType(64), WIDTH)

    def _splat(builder: Any, word: Any, vector: Any) -> Any:
        first = builder.insert_element(ir.Constant(vector, ir.Undefined), word, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

    def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
        data = context.make_array(array_type)(context, builder, array).data
        return builder.gep(data, [at])

    @intrinsic  # type: ignore[untyped-decorator]
    def _all_set(typingctx, words, start, minuend, mask):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            address = _address(context, builder, signature.args[0], args[0], args[1])
            loaded = builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=8)
            masks = _splat(builder, args[3], _VECTOR)
            passed = builder.and_(builder.sub(_splat(builder, args[2], _VECTOR), loaded), masks)
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
    def _store_sums(typingctx, array, at, terms, first, summand):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            vector = ir.VectorType(ir.IntType(32), WIDTH)
            source = _address(context, builder, signature.args[2], args[2], args[3])
            loaded = builder.load(builder.bitcast(source, vector.as_pointer()), align=4)
            added = builder.add(loaded, _splat(builder, builder.trunc(args[4], ir.IntType(32)), vector))
            target = _address(context, builder, signature.args[0], args[0], args[1])
            builder.store(added, builder.bitcast(target, vector.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.void(array, types.int64, terms, types.int64, types.int64), generate

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
    def store_sums(array, at, terms, first, summand):  # type: ignore[no-untyped-def]
        _store_sums(array, at, terms, first, summand)

    @kernel
    def prefetch(array, at):  # type: ignore[no-untyped-def]
        _prefetch(array, at)


# For each byte, the positions of its bits that are set, lowest first; eight numbers each.
_POSITIONS = np.array(
    [([k for k in range(WIDTH) if byte >> k & 1] + [0] * WIDTH)[:WIDTH] for byte in range(1 << WIDTH)], np.uint32
).ravel()


@kernel
def passing(words, span, minuend, mask, out, n):  # type: ignore[no-untyped-def]
    """Write the k in span where (minuend - words[k]) & mask == mask to out[n:] (uint32); return the new n.

    `out` has room for 8 more than pass. No branch depends on the words: eight places are written for each eight words,
    and as many kept as pass.
    """
    start, stop = span
    for first in range(start, stop, WIDTH):
        bits = all_set(words, first, minuend, mask) & ((1 << min(WIDTH, stop - first)) - 1)
        store_sums(out, n, _POSITIONS, bits << 3, first)
        n += count_bits(bits)
    return n


@kernel
def sifted(words, span, minuends, mask, out, n):  # type: ignore[no-untyped-def]
    """`passing` by the first minuend; and a number that is not 0 where some word passes by the second one alone.

    The second must let through whatever the first does.
    """
    start, stop = span
    strict, loose = minuends
    others = 0
    for first in range(start, stop, WIDTH):
        valid = (1 << min(WIDTH, stop - first)) - 1
        bits = all_set(words, first, strict, mask) & valid
        others |= (all_set(words, first, loose, mask) & valid) ^ bits
        store_sums(out, n, _POSITIONS, bits << 3, first)
        n += count_bits(bits)
    return n, others
