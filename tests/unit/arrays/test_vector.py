"""The vector instructions and their plain twins agree, on random words and on edges."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import WIDTH, all_set, lowest_bit, plain_all_set, plain_lowest_bit, prefetch

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
