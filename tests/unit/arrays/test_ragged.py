from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.ragged import distinct, sorted_sets, starts_of, take

LISTS = st.lists(st.lists(st.integers(-2, 6), max_size=40), max_size=6)


def as_ragged(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    flat = np.array([value for values in lists for value in values], np.int32)
    return flat, starts_of(np.array([len(values) for values in lists], np.int64))


def as_lists(values: np.ndarray, starts: np.ndarray) -> list[list[int]]:
    return [values[a:b].tolist() for a, b in zip(starts[:-1], starts[1:], strict=True)]


@given(LISTS)
def test_sorted_sets_drop_repeats_and_negatives(lists: list[list[int]]) -> None:
    values, starts = as_ragged(lists)
    before = values.copy()
    assert as_lists(*sorted_sets(values, starts)) == [sorted({v for v in values if v >= 0}) for values in lists]
    assert np.array_equal(values, before), "the input was changed"


@given(LISTS, st.data())
def test_take_gives_the_rows_in_the_order_asked(lists: list[list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8) if lists else st.just([]))
    taken = take(*as_ragged(lists), np.array(rows, np.int64))
    assert as_lists(*taken) == [lists[row] for row in rows]


def test_grown_keeps_content_and_fills_the_rest() -> None:
    array = np.array([1, 2], np.int32)
    assert grown(array, 2) is array
    bigger = grown(array, 3, fill=9)
    assert bigger[:3].tolist() == [1, 2, 9] and len(bigger) >= 16


def test_with_room_doubles() -> None:
    out = np.arange(4, dtype=np.int32)
    assert len(with_room(out, 2, 2)) == 4
    more = with_room(out, 4, 1)
    assert len(more) == 8 and more[:4].tolist() == [0, 1, 2, 3]
    assert len(with_room(out, 4, 100)) == 104


@given(st.lists(st.integers(-3, 6), max_size=20))
def test_distinct_values_are_sorted_and_come_once(values: list[int]) -> None:
    given_values = np.array(values, np.int64)
    assert distinct(given_values).tolist() == sorted(set(values))
    assert given_values.tolist() == values, "the input was changed"
