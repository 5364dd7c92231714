"""The vector instructions and their plain twins agree, on random words and on edges."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.vector import (
    WIDTH,
    count_bits,
    halves_from,
    halves_up_to,
    low_bits,
    lowest_bit,
    masked_equal,
    none_above,
    plain_count_bits,
    plain_halves_from,
    plain_halves_up_to,
    plain_lowest_bit,
    plain_masked_equal,
    plain_none_above,
    plain_store_packed,
    plain_store_positions,
    prefetch,
    store_packed,
    store_positions,
)

BYTES = st.sampled_from([0, 1, 2, 127, 128, 129, 254, 255])
WORDS = st.one_of(
    st.integers(0, 2**32 - 1), st.builds(lambda *b: sum(v << 8 * k for k, v in enumerate(b)), *[BYTES] * 4)
)


@kernel
def run_none_above(words, start, limits):  # type: ignore[no-untyped-def]
    return none_above(words, start, limits)


@kernel
def run_halves_up_to(words, start, limits):  # type: ignore[no-untyped-def]
    return halves_up_to(words, start, limits)


@kernel
def run_halves_from(words, start, limits):  # type: ignore[no-untyped-def]
    return halves_from(words, start, limits)


@kernel
def run_masked_equal(words, start, mask, wanted):  # type: ignore[no-untyped-def]
    return masked_equal(words, start, mask, wanted)


@kernel
def run_low_bits(k):  # type: ignore[no-untyped-def]
    return low_bits(k)


@kernel
def run_lowest_bit(bits):  # type: ignore[no-untyped-def]
    return lowest_bit(bits)


@kernel
def run_count_bits(bits):  # type: ignore[no-untyped-def]
    return count_bits(bits)


@kernel
def run_store_packed(array, at, words, first, bits):  # type: ignore[no-untyped-def]
    store_packed(array, at, words, first, bits)


@kernel
def run_store_positions(array, at, bits, summand):  # type: ignore[no-untyped-def]
    store_positions(array, at, bits, summand)


@kernel
def run_prefetch(array, at):  # type: ignore[no-untyped-def]
    prefetch(array, at)
    return array[0]


@given(st.lists(WORDS, min_size=WIDTH, max_size=WIDTH), st.integers(0, 3), WORDS)
def test_none_above_agrees_with_its_twin_at_any_alignment(words: list[int], start: int, limits: int) -> None:
    array = np.array([7] * start + words, np.uint32)
    assert run_none_above(array, start, limits) == plain_none_above(array, start, limits)


def test_none_above_sees_each_byte_of_each_of_the_eight_words() -> None:
    for k in range(WIDTH):
        for byte in range(4):
            array = np.full(WIDTH, 0x80808080, np.uint32)
            array[k] += 1 << (8 * byte)
            assert run_none_above(array, 0, 0x80808080) == 0xFF ^ (1 << k)


@given(st.lists(WORDS, min_size=WIDTH, max_size=WIDTH), st.integers(0, 3), WORDS)
def test_halves_agree_with_their_twins_at_any_alignment(words: list[int], start: int, limits: int) -> None:
    array = np.array([7] * start + words, np.uint32)
    assert run_halves_up_to(array, start, limits) == plain_halves_up_to(array, start, limits)
    assert run_halves_from(array, start, limits) == plain_halves_from(array, start, limits)


def test_halves_see_each_half_of_each_of_the_eight_words() -> None:
    for k in range(WIDTH):
        for half in range(2):
            array = np.full(WIDTH, 0x80008000, np.uint32)
            array[k] += 1 << (16 * half)
            assert run_halves_up_to(array, 0, 0x80008000) == 0xFF ^ (1 << k)
            assert run_halves_from(array, 0, 0x80008000) == 0xFF
            array[k] -= 2 << (16 * half)
            assert run_halves_up_to(array, 0, 0x80008000) == 0xFF
            assert run_halves_from(array, 0, 0x80008000) == 0xFF ^ (1 << k)


@given(st.lists(st.integers(0, 7), min_size=WIDTH, max_size=WIDTH), st.integers(0, 3), WORDS, st.integers(0, 7))
def test_masked_equal_agrees_with_its_twin(words: list[int], start: int, mask: int, wanted: int) -> None:
    array = np.array([7] * start + words, np.uint32)
    found = run_masked_equal(array, start, mask, wanted)
    assert found == plain_masked_equal(array, start, mask, wanted)
    assert found == sum(((word & mask) == wanted) << k for k, word in enumerate(words))
    assert run_masked_equal(array, start, ~mask, 0) == plain_masked_equal(array, start, ~mask, 0)


def test_low_bits() -> None:
    assert [run_low_bits(k) for k in (-3, 0, 1, 7, 8, 9)] == [0, 0, 1, 127, 255, 255]


@given(st.integers(1, 2**62))
def test_lowest_bit_agrees_with_its_twin(bits: int) -> None:
    assert run_lowest_bit(bits) == plain_lowest_bit(bits)


def test_prefetch_changes_nothing_and_may_point_past_the_end() -> None:
    array = np.arange(4, dtype=np.uint32)
    for at in (0, 3, 4, 10_000):
        assert run_prefetch(array, at) == 0


@given(st.integers(0, 2**62))
def test_count_bits_agrees_with_its_twin(bits: int) -> None:
    assert run_count_bits(bits) == plain_count_bits(bits)


@given(st.lists(WORDS, min_size=11, max_size=11), st.integers(0, 3), st.integers(0, 9), st.integers(0, 255))
def test_store_packed_agrees_with_its_twin_at_any_alignment(words: list[int], first: int, at: int, bits: int) -> None:
    got, expected, source = np.zeros(20, np.uint32), np.zeros(20, np.uint32), np.array(words, np.uint32)
    run_store_packed(got, at, source, first, bits)
    plain_store_packed(expected, at, source, first, bits)
    assert got.tolist() == expected.tolist()
    kept = [words[first + k] for k in range(WIDTH) if bits >> k & 1]
    assert got[at : at + len(kept)].tolist() == kept


@given(st.integers(0, 255), st.integers(0, 9), st.integers(0, 2**32 - 8))
def test_store_positions_agrees_with_its_twin_at_any_alignment(bits: int, at: int, summand: int) -> None:
    got, expected = np.zeros(20, np.uint32), np.zeros(20, np.uint32)
    run_store_positions(got, at, bits, summand)
    plain_store_positions(expected, at, bits, summand)
    assert got.tolist() == expected.tolist()
    kept = [summand + k for k in range(WIDTH) if bits >> k & 1]
    assert got[at : at + len(kept)].tolist() == kept


@pytest.mark.skipif(JIT_DISABLED, reason="plain Python has no instructions to choose from")
def test_a_machine_without_wide_vectors_packs_the_same() -> None:
    """Compiled for SSE2 alone, as Numba is told by its settings, in a process of its own."""
    program = """
import numpy as np
from nearcast.arrays import vector as v
words = np.random.default_rng(1).integers(0, 2**32, 16, np.uint32)
for bits in range(256):
    got, wanted = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
    v.store_packed(got, 0, words, bits & 7, bits); v.plain_store_packed(wanted, 0, words, bits & 7, bits)
    assert got.tolist() == wanted.tolist()
    v.store_positions(got, 0, bits, 5); v.plain_store_positions(wanted, 0, bits, 5)
    assert got.tolist() == wanted.tolist()
    assert v.none_above(words, bits & 7, int(words[bits & 15])) == v.plain_none_above(words, bits & 7, words[bits & 15])
print("same", "+avx2" in str(v.store_packed.targetctx.codegen().magic_tuple()))
"""
    settings = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+sse2"}
    done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "same False", done.stderr
