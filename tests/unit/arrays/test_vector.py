"""The vector instructions and their plain twins agree, on random words and on edges."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import (
    CHUNK,
    WIDTH,
    all_set,
    count_bits,
    lowest_bit,
    passing,
    plain_all_set,
    plain_count_bits,
    plain_lowest_bit,
    plain_store_word,
    prefetch,
    sifted,
    store_word,
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
def run_store_word(array, at, word):  # type: ignore[no-untyped-def]
    store_word(array, at, word)


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


@given(WORDS, st.integers(0, 9))
def test_store_word_agrees_with_its_twin_at_any_alignment(word: int, at: int) -> None:
    got, expected = np.zeros(20, np.uint8), np.zeros(20, np.uint8)
    run_store_word(got, at, np.uint64(word))
    plain_store_word(expected, at, np.uint64(word))
    assert got.tolist() == expected.tolist()


SMALL_WORDS = st.lists(st.integers(0, 3), max_size=40)


@given(SMALL_WORDS, st.integers(0, 40), st.integers(0, 3))
def test_passing_finds_each_word_that_passes_and_no_other(words: list[int], start: int, limit: int) -> None:
    array = np.array(words + [0] * WIDTH, np.uint64)  # those behind the span would pass
    top = 1 << 63
    out = np.empty(CHUNK + 8, np.uint8)
    start = min(start, len(words))
    n = passing(array, (start, len(words)), np.uint64(top + limit), np.uint64(top), out)
    assert out[:n].tolist() == [k - start for k in range(start, len(words)) if words[k] <= limit]


@given(SMALL_WORDS, st.integers(1, 3))
def test_sifted_passes_by_the_strict_word_and_tells_whether_others_pass_by_the_loose_one(
    words: list[int], limit: int
) -> None:
    array = np.array(words + [limit] * WIDTH, np.uint64)
    top = 1 << 63
    out = np.empty(CHUNK + 8, np.uint8)
    minuends = (np.uint64(top + limit - 1), np.uint64(top + limit))
    n, others = sifted(array, (0, len(words)), minuends, np.uint64(top), out)
    assert out[:n].tolist() == [k for k, word in enumerate(words) if word < limit]
    assert (others != 0) == (limit in words)


def test_passing_takes_a_whole_chunk() -> None:
    array = np.zeros(CHUNK + WIDTH, np.uint64)
    out = np.empty(CHUNK + 8, np.uint8)
    assert passing(array, (0, CHUNK), np.uint64(1 << 63), np.uint64(1 << 63), out) == CHUNK
    assert out[:CHUNK].tolist() == list(range(CHUNK))
