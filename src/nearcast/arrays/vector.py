"""The few instructions that kernels use directly, each with an equivalent in plain Python.

Most are LLVM operations on vectors of eight words, which LLVM translates for the machine: SSE2, AVX2, AVX-512 or none.
Only the packing of words uses an instruction of a certain machine, if AVX2 is available.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import intrinsic, ir, kernel, types

WIDTH = 8

# For each byte, the positions of its set bits, lowest first, one byte each.
_POSITIONS = np.array(
    [sum(k << (8 * at) for at, k in enumerate(k for k in range(WIDTH) if byte >> k & 1)) for byte in range(1 << WIDTH)],
    np.uint64,
)


def plain_none_above(words: np.ndarray, start: int, limits: int) -> int:
    """Bit k, for k in 0 .. 7, is set if no byte of words[start + k] is above the same byte of `limits`."""
    bits = 0
    for k in range(WIDTH):
        word = int(words[start + k])
        bits |= all(word >> s & 255 <= int(limits) >> s & 255 for s in (0, 8, 16, 24)) << k
    return bits


def plain_lowest_bit(bits: int) -> int:
    """The position of the lowest bit set."""
    return (int(bits) & -int(bits)).bit_length() - 1


def plain_count_bits(bits: int) -> int:
    """How many bits are set."""
    return int(bits).bit_count()


def plain_store_packed(array: np.ndarray, at: int, words: np.ndarray, first: int, bits: int) -> None:
    """Write the words of words[first : first + 8] whose bit is set to array[at:]. All of array[at : at + 8] is
    overwritten.
    """
    for k in range(WIDTH):
        array[at + k] = words[first + (int(_POSITIONS[bits]) >> (8 * k) & 255)]


def plain_store_positions(array: np.ndarray, at: int, bits: int, summand: int) -> None:
    """Write summand + the position of each set bit to array[at:]. All of array[at : at + 8] is overwritten."""
    for k in range(WIDTH):
        array[at + k] = int(summand) + (int(_POSITIONS[bits]) >> (8 * k) & 255)


def plain_prefetch(array: np.ndarray, at: int) -> None:
    """Prefetch the cache line of array[at]; `at` may be past the end."""


def plain_finish_writes() -> None:
    """Let no later write of this thread become visible to other threads before an earlier one."""


_WORD = ir.IntType(32)
_VECTOR = ir.VectorType(_WORD, WIDTH)
_BYTES = ir.VectorType(ir.IntType(8), 4 * WIDTH)


def _splat(builder: Any, word: Any) -> Any:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, word, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_VECTOR, [0] * WIDTH))


def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [at])


def _loaded(builder: Any, address: Any) -> Any:
    return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=4)


def _stored(builder: Any, vector: Any, address: Any) -> None:
    builder.store(vector, builder.bitcast(address, _VECTOR.as_pointer()), align=4)


def _positions(builder: Any, packed: Any) -> Any:
    """Eight bytes as eight words."""
    return builder.zext(builder.bitcast(packed, ir.VectorType(ir.IntType(8), WIDTH)), _VECTOR)


@intrinsic
def _none_above(typingctx, words, start, limits):
    def generate(context, builder, signature, args):
        loaded = _loaded(builder, _address(context, builder, signature.args[0], args[0], args[1]))
        beyond = builder.module.declare_intrinsic("llvm.usub.sat.v32i8", [], ir.FunctionType(_BYTES, [_BYTES] * 2))
        limits = builder.bitcast(_splat(builder, builder.trunc(args[2], _WORD)), _BYTES)
        left = builder.bitcast(builder.call(beyond, [builder.bitcast(loaded, _BYTES), limits]), _VECTOR)
        bits = builder.icmp_unsigned("==", left, ir.Constant(_VECTOR, [0] * WIDTH))
        return builder.zext(builder.bitcast(bits, ir.IntType(WIDTH)), ir.IntType(64))

    return types.int64(words, types.int64, types.int64), generate


@intrinsic
def _lowest_bit(typingctx, bits):
    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic
def _count_bits(typingctx, bits):
    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.int64), generate


@intrinsic
def _store_packed(typingctx, array, at, words, first, positions):
    def generate(context, builder, signature, args):
        source = _address(context, builder, signature.args[2], args[2], args[3])
        target = _address(context, builder, signature.args[0], args[0], args[1])
        positions = _positions(builder, args[4])
        if "+avx2" in context.codegen().magic_tuple()[2]:
            permuted = builder.module.declare_intrinsic(
                "llvm.x86.avx2.permd", [], ir.FunctionType(_VECTOR, [_VECTOR] * 2)
            )
            _stored(builder, builder.call(permuted, [_loaded(builder, source), positions]), target)
            return context.get_dummy_value()
        for k in range(WIDTH):
            place = builder.extract_element(positions, ir.Constant(_WORD, k))
            builder.store(builder.load(builder.gep(source, [place])), builder.gep(target, [ir.Constant(_WORD, k)]))
        return context.get_dummy_value()

    return types.void(array, types.int64, words, types.int64, types.uint64), generate


@intrinsic
def _store_positions(typingctx, array, at, positions, summand):
    def generate(context, builder, signature, args):
        sums = builder.add(_positions(builder, args[2]), _splat(builder, builder.trunc(args[3], _WORD)))
        _stored(builder, sums, _address(context, builder, signature.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64, types.int64), generate


@intrinsic
def _prefetch(typingctx, array, at):
    def generate(context, builder, signature, args):
        byte = ir.IntType(8).as_pointer()
        address = builder.bitcast(_address(context, builder, signature.args[0], args[0], args[1]), byte)
        declared = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, _WORD, _WORD, _WORD])
        )
        read, keep, data = ir.Constant(_WORD, 0), ir.Constant(_WORD, 3), ir.Constant(_WORD, 1)
        builder.call(declared, [address, read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def _finish_writes(typingctx):
    def generate(context, builder, signature, args):
        builder.fence("release")
        return context.get_dummy_value()

    return types.void(), generate


@kernel(plain=plain_none_above)
def none_above(words, start, limits):
    return _none_above(words, start, limits)


@kernel(plain=plain_lowest_bit)
def lowest_bit(bits):
    return _lowest_bit(bits)


@kernel(plain=plain_count_bits)
def count_bits(bits):
    return _count_bits(bits)


@kernel(plain=plain_store_packed)
def store_packed(array, at, words, first, bits):
    _store_packed(array, at, words, first, _POSITIONS[bits])


@kernel(plain=plain_store_positions)
def store_positions(array, at, bits, summand):
    _store_positions(array, at, _POSITIONS[bits], summand)


@kernel(plain=plain_prefetch)
def prefetch(array, at):
    _prefetch(array, at)


@kernel(plain=plain_finish_writes)
def finish_writes():
    _finish_writes()
