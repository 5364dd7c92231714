from __future__ import annotations

import numpy as np
import pytest

from nearcast.arrays.radix import sort_each
from nearcast.arrays.ragged import starts_of


@pytest.mark.parametrize("largest", [1, 2, 1000, 65_535, 65_536, 10_000_000, 2**26 - 1, 2**26, 2**31 - 1])
def test_each_run_is_sorted_whatever_its_length_and_range(largest: int) -> None:
    rng = np.random.default_rng(largest)
    lengths = [0, 1, 2, 24, 25, 128, 200, 201, 4095, 4096, 0]
    starts = starts_of(np.array(lengths))
    rows = rng.integers(0, largest, starts[-1], endpoint=True).astype(np.int32)
    rows[starts[8] : starts[8] + 2] = largest, 0
    wanted = [sorted(rows[a:b].tolist()) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    sort_each(rows, starts)
    assert [rows[a:b].tolist() for a, b in zip(starts[:-1], starts[1:], strict=True)] == wanted


def test_nothing_to_sort_is_fine() -> None:
    sort_each(np.empty(0, np.int32), np.zeros(1, np.int64))


@pytest.mark.parametrize("crowd", [15, 16, 17, 40])
def test_crowded_and_equal_numbers_are_sorted_too(crowd: int) -> None:
    rows = np.concatenate([np.arange(60)[::-1] * 30_000_000 // 60, np.full(crowd, 7), [2**31 - 1, 0]]).astype(np.int32)
    wanted = sorted(rows.tolist())
    sort_each(rows, np.array([0, len(rows)]))
    assert rows.tolist() == wanted
