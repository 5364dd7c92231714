"""The few instructions that kernels use directly, each with an equivalent in plain Python.

Most are LLVM operations on vectors of eight words, which LLVM translates for the machine: SSE2, AVX2, AVX-512 or none.
Only the packing of words uses an instruction of a certain machine, if AVX2 is available.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import inline_kernel, intrinsic, ir, kernel, types

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


def plain_halves_up_to(words: np.ndarray, start: int, limits: int) -> int:
    """Bit k, for k in 0 .. 7, is set if no half of words[start + k] (16 bits) is above the same half of `limits`."""
    halves = _halves(words, start)
    return _bits_of(halves <= _halves(np.array([limits]), 0))


def plain_halves_from(words: np.ndarray, start: int, limits: int) -> int:
    """Bit k, for k in 0 .. 7, is set if no half of words[start + k] (16 bits) is below the same half of `limits`."""
    halves = _halves(words, start)
    return _bits_of(halves >= _halves(np.array([limits]), 0))


def plain_masked_equal(words: np.ndarray, start: int, mask: int, wanted: int) -> int:
    """Bit k, for k in 0 .. 7, is set if words[start + k] & mask is `wanted`."""
    return sum((int(words[start + k]) & int(mask) & 0xFFFF_FFFF == int(wanted)) << k for k in range(WIDTH))


def _halves(words: np.ndarray, start: int) -> np.ndarray:
    """int64[n,2]: the lower and the upper half of up to eight words."""
    some = words[start : start + WIDTH].astype(np.int64)
    return np.stack([some & 0xFFFF, some >> 16], axis=1)


def _bits_of(flags: np.ndarray) -> int:
    """A bit for each word whose halves are both flagged (bool[n,2])."""
    return int(np.packbits(flags[:, 0] & flags[:, 1], bitorder="little")[0])


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
_HALVES = ir.VectorType(ir.IntType(16), 2 * WIDTH)


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


def _beyond(builder: Any, vector_type: Any, left: Any, right: Any) -> Any:
    """By how much each unsigned lane of `left` is above that of `right`, as words: 0 where it is not."""
    name = f"llvm.usub.sat.v{vector_type.count}i{vector_type.element.width}"
    beyond = builder.module.declare_intrinsic(name, [], ir.FunctionType(vector_type, [vector_type] * 2))
    called = builder.call(beyond, [builder.bitcast(left, vector_type), builder.bitcast(right, vector_type)])
    return builder.bitcast(called, _VECTOR)


def _bits_where_equal(builder: Any, left: Any, right: Any) -> Any:
    """The words that are equal, one bit each."""
    bits = builder.icmp_unsigned("==", left, right)
    return builder.zext(builder.bitcast(bits, ir.IntType(WIDTH)), ir.IntType(64))


def _splat_low(builder: Any, number: Any) -> Any:
    """The low word of a number, eight times."""
    return _splat(builder, builder.trunc(number, _WORD))


_NO_WORDS = ir.Constant(_VECTOR, [0] * WIDTH)


def _generator(vector_type: Any, is_limit_first: bool) -> Any:
    """Code that compares the parts of eight words with those of a limit: which words have no part beyond it."""

    def generate(context, builder, signature, args):
        loaded = _loaded(builder, _address(context, builder, signature.args[0], args[0], args[1]))
        limits = _splat_low(builder, args[2])
        pair = (limits, loaded) if is_limit_first else (loaded, limits)
        return _bits_where_equal(builder, _beyond(builder, vector_type, *pair), _NO_WORDS)

    return generate


@intrinsic
def _none_above(typingctx, words, start, limits):
    return types.int64(words, types.int64, types.int64), _generator(_BYTES, False)


@intrinsic
def _halves_up_to(typingctx, words, start, limits):
    return types.int64(words, types.int64, types.int64), _generator(_HALVES, False)


@intrinsic
def _halves_from(typingctx, words, start, limits):
    return types.int64(words, types.int64, types.int64), _generator(_HALVES, True)


@intrinsic
def _masked_equal(typingctx, words, start, mask, wanted):
    def generate(context, builder, signature, args):
        loaded = _loaded(builder, _address(context, builder, signature.args[0], args[0], args[1]))
        masked = builder.and_(loaded, _splat_low(builder, args[2]))
        return _bits_where_equal(builder, masked, _splat_low(builder, args[3]))

    return types.int64(words, types.int64, types.int64, types.int64), generate


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


@kernel(plain=plain_halves_up_to)
def halves_up_to(words, start, limits):
    return _halves_up_to(words, start, limits)


@kernel(plain=plain_halves_from)
def halves_from(words, start, limits):
    return _halves_from(words, start, limits)


@kernel(plain=plain_masked_equal)
def masked_equal(words, start, mask, wanted):
    return _masked_equal(words, start, mask, wanted)


@inline_kernel
def low_bits(k):
    """The k lowest of eight bits; none below 0, all above 8."""
    return (1 << min(WIDTH, max(0, k))) - 1


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
