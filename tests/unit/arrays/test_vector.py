"""The vector instructions and their plain twins agree, on random words and on edges."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import (
    WIDTH,
    all_set,
    count_bits,
    lowest_bit,
    passing,
    plain_all_set,
    plain_count_bits,
    plain_lowest_bit,
    plain_store_sums,
    prefetch,
    sifted,
    store_sums,
)

WORDS = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1, 0x7FFF_7FFF_7FFF_7FFF, 0x8000_8000_8000_8000])
)


@kernel
def run_all_set(words, start, minuend, mask):  # type: ignore[no-untyped-def]
    return all_set(words, start, minuend, mask)


@kernel
def run_lowest_bit(bits):  # type: ignore[no-untyped-def]
    return lowest_bit(bits)


@kernel
def run_count_bits(bits):  # type: ignore[no-untyped-def]
    return count_bits(bits)


@kernel
def run_store_sums(array, at, terms, first, summand):  # type: ignore[no-untyped-def]
    store_sums(array, at, terms, first, summand)


@kernel
def run_prefetch(array, at):  # type: ignore[no-untyped-def]
    prefetch(array, at)
    return array[0]


@given(st.lists(WORDS, min_size=WIDTH, max_size=WIDTH), st.integers(0, 3), WORDS, WORDS)
def test_all_set_agrees_with_its_twin_at_any_alignment(words: list[int], start: int, minuend: int, mask: int) -> None:
    array = np.array([7] * start + words, np.uint64)
    arguments = (array, start, np.uint64(minuend), np.uint64(mask))
    with np.errstate(over="ignore"):
        expected = plain_all_set(*arguments)
    assert run_all_set(*arguments) == expected


def test_all_set_sees_each_of_the_eight_words() -> None:
    for k in range(WIDTH):
        array = np.zeros(WIDTH, np.uint64)
        array[k] = 1
        assert run_all_set(array, 0, np.uint64(1), np.uint64(1)) == 0xFF ^ (1 << k)


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


SHORT_WORDS = st.lists(st.integers(0, 2**31), min_size=11, max_size=11)


@given(SHORT_WORDS, st.integers(0, 3), st.integers(0, 9), st.integers(0, 2**31 - 1))
def test_store_sums_agrees_with_its_twin_at_any_alignment(words: list[int], first: int, at: int, summand: int) -> None:
    got, expected, terms = np.zeros(20, np.uint32), np.zeros(20, np.uint32), np.array(words, np.uint32)
    run_store_sums(got, at, terms, first, summand)
    plain_store_sums(expected, at, terms, first, summand)
    assert got.tolist() == expected.tolist()


SMALL_WORDS = st.lists(st.integers(0, 3), max_size=40)
TOP = 1 << 63


@given(SMALL_WORDS, st.integers(0, 40), st.integers(0, 3), st.integers(0, 2))
def test_passing_finds_each_word_that_passes_and_no_other(words: list[int], start: int, limit: int, n: int) -> None:
    array = np.array(words + [0] * WIDTH, np.uint64)  # those behind the span would pass
    out = np.full(60, 99, np.uint32)
    start = min(start, len(words))
    end = passing(array, (start, len(words)), np.uint64(TOP + limit), np.uint64(TOP), out, n)
    assert out[:n].tolist() == [99] * n
    assert out[n:end].tolist() == [k for k in range(start, len(words)) if words[k] <= limit]


@given(SMALL_WORDS, st.integers(1, 3))
def test_sifted_passes_by_the_strict_word_and_tells_whether_others_pass_by_the_loose_one(
    words: list[int], limit: int
) -> None:
    array = np.array(words + [limit] * WIDTH, np.uint64)
    out = np.empty(60, np.uint32)
    minuends = (np.uint64(TOP + limit - 1), np.uint64(TOP + limit))
    n, others = sifted(array, (0, len(words)), minuends, np.uint64(TOP), out, 0)
    assert out[:n].tolist() == [k for k, word in enumerate(words) if word < limit]
    assert (others != 0) == (limit in words)
