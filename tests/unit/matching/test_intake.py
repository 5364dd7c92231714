"""Arrays that arrive from outside: what is wrong raises InvalidInput, or is put right, before a kernel reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nearcast.errors import InvalidInput
from nearcast.geo.shapes.columns import NO_SHAPES, ShapeColumns
from nearcast.geo.space import Space
from nearcast.matching.intake import checked_messages, checked_rows
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import MATCH, NEVER, NO_TIME, RANK, MessageBatch, RowBatch

INT64, INT32 = np.int64, np.int32


def messages(**changed: Any) -> MessageBatch:
    made = MessageBatch(
        np.array([5, 6]),
        np.array([0, 2, 1], INT32),
        np.array([0, 2, 3]),
        np.zeros((2, 4)),
        np.full(2, NO_TIME),
    )
    return made._replace(**changed)


def rows(**changed: Any) -> RowBatch:
    made = RowBatch(
        np.array([7, 8]),
        np.array([0, 2, 1], INT32),
        np.array([0, 2, 3]),
        np.array([1], INT32),
        np.array([0, 1, 1]),
        np.zeros((2, 4)),
        np.full(2, -1, INT32),
        np.full(2, NEVER),
    )
    return made._replace(**changed)


WRONG_RAGGED: list[dict[str, Any]] = [
    {"term_starts": np.array([0, 2])},
    {"term_starts": np.array([0, 2, 4])},
    {"term_starts": np.array([0, 2, 2])},
    {"term_starts": np.array([1, 2, 3])},
    {"term_starts": np.array([0, -1, 3])},
    {"term_starts": np.array([0, 1 << 40, 3])},
    {"term_starts": np.array([0.0, 2.0, 3.0])},
    {"term_starts": np.array([], INT64)},
    {"term_starts": None},
    {"terms": np.array([0, 2, 1], np.float64)},
    {"terms": np.array([0, 1 << 40, 1])},
    {"terms": np.array(["a", "b", "c"])},
    {"terms": np.zeros((3, 2), INT32)},
    {"terms": None},
    {"terms": [[1, 2], [3]]},
    {"boxes": np.zeros((1, 4))},
    {"boxes": np.zeros((2, 2))},
    {"boxes": np.zeros(8)},
    {"boxes": np.full((2, 4), np.nan)},
    {"boxes": np.array([[0.0, 0.0, np.inf, 0.0]] * 2)},
    {"boxes": np.array([[1.0, 0.0, 0.0, 0.0]] * 2)},
    {"boxes": np.array([["a"] * 4] * 2)},
]
WRONG_MESSAGES = [
    *WRONG_RAGGED,
    {"ids": np.array([5])},
    {"ids": np.array([5.5, 6.0])},
    {"ids": np.array([1 << 63, 1], np.uint64)},
    {"times": np.array([1])},
    {"times": None},
]
WRONG_ROWS = [
    *WRONG_RAGGED,
    {"terms": np.array([0, np.iinfo(INT32).max, 1], INT32)},
    {"terms": np.array([0, -2, 1], INT32)},
    {"not_starts": np.array([0, 2, 1])},
    {"not_starts": np.array([0, 1])},
    {"not_terms": np.array([-1], INT32)},
    {"owner_ids": np.array([7])},
    {"shapes": np.array([0, -1], INT32)},
    {"shapes": np.array([-2, -1], INT32)},
    {"shapes": np.array([-1], INT32)},
    {"expires": np.array([1])},
]


@pytest.mark.parametrize("wrong", WRONG_MESSAGES, ids=str)
def test_wrong_messages_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        checked_messages(messages(**wrong), 3)


@pytest.mark.parametrize("wrong", WRONG_ROWS, ids=str)
def test_wrong_rows_are_refused_and_nothing_is_replaced(wrong: dict[str, Any]) -> None:
    live = SubscriptionSet("brute", Space.of(None))
    live.insert(rows())
    with pytest.raises(InvalidInput):
        live.insert(rows(**wrong))
    assert live.match_one(np.array([0, 2], INT32), 0.0, 0.0).tolist() == [7]


@pytest.mark.parametrize("change", [lambda m: m._replace(terms=m.terms[::-1][::-1]), lambda m: m])
def test_right_messages_pass_without_a_copy(change: Callable[[MessageBatch], MessageBatch]) -> None:
    given = change(messages())
    checked = checked_messages(given, 3)
    assert checked.boxes is given.boxes and np.array_equal(checked.terms, given.terms)


def test_what_can_be_put_right_is() -> None:
    disordered = messages(terms=np.array([2, 0, 9], np.int64), boxes=np.zeros((2, 4), np.float32), ids=[5, 6])
    checked = checked_messages(disordered, 3)
    assert checked.terms.tolist() == [0, 2] and checked.term_starts.tolist() == [0, 2, 2]
    assert [each.dtype for each in checked] == [INT64, INT32, INT64, np.float64, INT64]
    assert checked_rows(rows(terms=np.array([2, 0, 1], INT32))).terms.tolist() == [0, 2, 1]


def test_rows_of_one_owner_become_neighbours() -> None:
    apart = rows(
        owner_ids=np.array([7, 8, 7]),
        term_starts=np.array([0, 1, 2, 3]),
        not_starts=np.array([0, 0, 0, 1]),
        boxes=np.zeros((3, 4)),
        shapes=np.full(3, -1, INT32),
        expires=np.full(3, NEVER),
    )
    live = SubscriptionSet("brute", Space.of(None))
    live.insert(rows(owner_ids=np.array([1, 2])))  # later rows keep the order in which they are given
    live.insert(apart)
    live.remove(np.array([7]))
    assert live.match_one(np.array([0, 2], INT32), 0.0, 0.0).tolist() == [1, 8]


def test_parameters_of_a_kind_are_one_number_for_each_row() -> None:
    plain = rows(not_terms=np.empty(0, INT32), not_starts=np.zeros(3, INT64))
    right = {"alpha": np.zeros(2), "threshold": np.ones(2)}
    assert checked_rows(plain._replace(params=right), RANK).size == 2
    for name, value in (("alpha", np.zeros(1)), ("threshold", np.full(2, np.nan)), ("alpha", np.full(2, 1.5))):
        with pytest.raises(InvalidInput):
            checked_rows(plain._replace(params=right | {name: value}), RANK)
    with pytest.raises(InvalidInput):
        checked_rows(plain, RANK)


@pytest.mark.parametrize("circles", [np.zeros((1, 2)), np.full((1, 3), np.nan), np.array([[0.0, 0.0, -1.0]])])
def test_wrong_circles_are_refused(circles: np.ndarray) -> None:
    live, shaped = SubscriptionSet("brute", Space.of(None)), rows(shapes=np.array([0, -1], INT32))
    with pytest.raises(InvalidInput):
        live.insert(shaped, ShapeColumns(circles, np.array([None], object)))
    with pytest.raises(InvalidInput):
        live.insert(shaped, NO_SHAPES._replace(circles=np.zeros((1, 3)), geometries=np.array(["x"], object)))
    assert len(live) == 0


@pytest.mark.parametrize("terms", [[-1], [2, 0], [0, 0], [1 << 30], [-(1 << 30), 1]])
@pytest.mark.parametrize("method", ["pyramid", "brute", "keyword-first"])
def test_one_message_with_wrong_terms_is_matched_by_the_right_ones(method: str, terms: list[int]) -> None:
    live = SubscriptionSet(method, Space.of(None))
    live.insert(rows())
    expected = ([7] if {0, 2} <= set(terms) else []) + ([8] if 1 in terms else [])
    assert live.match_one(np.array(terms, INT32), 0.0, 0.0).tolist() == expected
    assert live.match_one(np.array(terms, INT64), 0.0, 0.0).tolist() == expected
    for wrong in (np.array([0.5]), "a", None, np.zeros((1, 1), INT32)):
        with pytest.raises(InvalidInput):
            live.match_one(wrong, 0.0, 0.0)  # type: ignore[arg-type]
    assert MATCH.name == live.kind.name
