from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.arrays.intmap import ABSENT, IntMap, capacity_for, count_down, count_up, home_slot

KEYS = st.one_of(st.integers(-3, 12), st.sampled_from([-(2**63), 2**63 - 1, 2**32, -1]))


@given(st.lists(st.tuples(st.booleans(), st.lists(KEYS, max_size=8)), max_size=30))
def test_it_agrees_with_a_dictionary_under_any_changes(steps: list[tuple[bool, list[int]]]) -> None:
    table, known = IntMap(), dict[int, int]()
    for step, (put, keys) in enumerate(steps):
        array = np.array(keys, np.int64)
        if put:
            table.put(array, np.full(len(keys), step, np.int32))
            known.update(dict.fromkeys(keys, step))
        else:
            table.remove(array)
            for key in keys:
                known.pop(key, None)
        asked = np.array([*range(-3, 13), -(2**63), 2**63 - 1, 2**32], np.int64)
        assert table.get(asked).tolist() == [known.get(key, ABSENT) for key in asked.tolist()]
        assert table.size == len(known)


def test_removal_closes_gaps_in_a_run_of_colliding_keys() -> None:
    mask = capacity_for(1) - 1
    colliding = [key for key in range(2000) if home_slot(np.int64(key), mask) == mask - 1][:6]
    table = IntMap()
    table.put(np.array(colliding), np.arange(6, dtype=np.int32))
    table.remove(np.array(colliding[1:3]))
    assert table.get(np.array(colliding)).tolist() == [0, ABSENT, ABSENT, 3, 4, 5]


def test_memory_is_given_back() -> None:
    table = IntMap()
    table.put(np.arange(5000), np.arange(5000, dtype=np.int32))
    full = table.nbytes
    table.remove(np.arange(10, 5000))
    assert table.nbytes < full / 16
    assert table.get(np.arange(12)).tolist() == [*range(10), ABSENT, ABSENT]


def test_ids_in_arithmetic_progression_stay_spread() -> None:
    mask = capacity_for(4096) - 1
    for step in (1, 2, 1024, 2**20, 2**40):
        homes = {int(home_slot(np.int64(k * step), mask)) for k in range(4096)}
        assert len(homes) > 2200, f"step {step} makes clusters"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=60))
def test_counting_up_and_down_is_a_counter_that_forgets_what_falls_to_zero(steps):
    table, counted = IntMap(64), Counter()
    for up, key in steps:
        if up:
            assert count_up(table.arrays, key) == (counted[key] == 0)
            counted[key] += 1
        elif counted[key]:
            counted[key] -= 1
            assert count_down(table.arrays, key) == (counted[key] == 0)
    assert [max(0, value) for value in table.get(np.arange(6)).tolist()] == [counted[key] for key in range(6)]
