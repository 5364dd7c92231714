"""Tests after a method: what decides whether a message has a NOT term."""

from __future__ import annotations

import numpy as np
import pytest

from nearcast.arrays.jit import kernel
from nearcast.matching.verify import _has_value


@kernel
def has_value(values, low, high, value):
    return _has_value(values, low, high, value)


@pytest.mark.parametrize("length", [0, 1, 2, 15, 16, 17, 31, 32, 33, 100])
def test_a_value_is_found_only_within_its_part(length: int) -> None:
    values = np.arange(-5, 3 * length + 20, 3, dtype=np.int32)
    for low in (0, 1, 4):
        part = set(values[low : low + length].tolist())
        for value in range(-7, 3 * length + 22):
            assert has_value(values, low, low + length, value) == (value in part)
