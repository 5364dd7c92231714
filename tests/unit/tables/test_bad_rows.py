"""Every kind of bad row: the error names row, column and reason; with on_bad="skip" the rejects table has the same
reason.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from nearcast.engine.index import Index, build_index
from nearcast.errors import InvalidInput, UnsupportedKind

NAN, INF = float("nan"), float("inf")
BOX = {"xmin": 1.0, "ymin": 2.0, "xmax": 3.0, "ymax": 4.0}

SUBSCRIPTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "NaN coordinate": ({"ymin": NAN}, "ymin", "missing or NaN"),
    "no coordinate": ({"xmax": None}, "xmax", "missing or NaN"),
    "infinite coordinate": ({"xmax": INF}, "xmax", "finite"),
    "longitude out of range": ({"xmax": 181.0}, "xmax", "between -180 and 180"),
    "latitude out of range": ({"ymax": 90.5}, "ymax", "between -90 and 90"),
    "xmin above xmax": ({"xmin": 3.5}, "xmin", "above xmax"),
    "ymin above ymax": ({"ymin": 4.5}, "ymin", "above ymax"),
    "no id": ({"id": None}, "id", "no id"),
    "duplicate id": ({"id": 1}, "id", "id 1 is already in this table"),
    "unparsable expression": ({"expression": "pizza AND (deal"}, "expression", "at character"),
    "expression without a word": ({"expression": "pizza AND !!"}, "expression", "at character"),
    "unknown kind": ({"kind": "nearest"}, "kind", "no kind 'nearest'; it is one of match, rank, top"),
    "tokens and expression": ({"expression": "a", "tokens": ["b"]}, "expression", "give one of them"),
    "null token": ({"tokens": ["a", None]}, "tokens", "a token is null"),
    "unreadable region": ({"region": "somewhere"}, "region", ""),
    "region out of range": ({"region": "circle(200, 0, 1km)"}, "region", ""),
}

MESSAGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "NaN coordinate": ({"x": NAN}, "x", "missing or NaN"),
    "no coordinate": ({"y": None}, "y", "missing or NaN"),
    "infinite coordinate": ({"y": -INF}, "y", "finite"),
    "longitude out of range": ({"x": -180.1}, "x", "between -180 and 180"),
    "swapped coordinates": ({"x": 51.0, "y": -114.0}, "y", "swapped"),
    "no id": ({"id": None}, "id", "no id"),
    "duplicate id": ({"id": 1}, "id", "already"),
    "null token": ({"tokens": [None]}, "tokens", "null"),
}


def subscription(**changes: Any) -> dict[str, Any]:
    return {"id": 2, "tokens": None, "expression": None, "region": None, "kind": None, **BOX, **changes}


def message(**changes: Any) -> dict[str, Any]:
    return {"id": 2, "tokens": ["a"], "x": 2.0, "y": 3.0, **changes}


@pytest.mark.parametrize("case", SUBSCRIPTIONS)
def test_a_bad_subscription_is_named(case: str) -> None:
    changes, column, reason = SUBSCRIPTIONS[case]
    table = [subscription(id=1), subscription(**changes), subscription(id=3)]
    with pytest.raises(InvalidInput) as caught:
        build_index(table)
    assert (caught.value.row, caught.value.column) == (2, column)
    assert reason in str(caught.value) and str(caught.value).startswith(f"row 2, column '{column}': ")


@pytest.mark.parametrize("case", SUBSCRIPTIONS)
def test_a_bad_subscription_is_skipped_with_the_same_reason(case: str) -> None:
    changes, column, reason = SUBSCRIPTIONS[case]
    index = build_index([subscription(id=1), subscription(**changes), subscription(id=3)], on_bad="skip")
    assert_rejected(index, column, reason)
    assert index.match([message()]).column("subscription").to_pylist() == [1, 3]


@pytest.mark.parametrize("case", MESSAGES)
def test_a_bad_message_is_named(case: str) -> None:
    changes, column, reason = MESSAGES[case]
    index = build_index([subscription(id=1)])
    with pytest.raises(InvalidInput) as caught:
        index.match([message(id=1), message(**changes)])
    assert (caught.value.row, caught.value.column) == (2, column) and reason in caught.value.reason


@pytest.mark.parametrize("case", MESSAGES)
def test_a_bad_message_is_skipped_with_the_same_reason(case: str) -> None:
    changes, column, reason = MESSAGES[case]
    index = build_index([subscription(id=7)])
    found = index.match([message(id=1), message(**changes), message(id=3)], on_bad="skip")
    assert found.column("message").to_pylist() == [1, 3]
    assert_rejected(index, column, reason)


def assert_rejected(index: Index, column: str, reason: str) -> None:
    assert index.rejects is not None
    (reject,) = index.rejects.to_pylist()
    assert reject["row"] == 2 and reject["column"] == column and reason in reject["reason"]
    assert "id" in json.loads(reject["record"])


def test_the_first_bad_row_is_named_and_the_others_counted() -> None:
    with pytest.raises(InvalidInput, match=r"row 1, column 'xmin'.*and 2 more bad rows"):
        build_index([subscription(id=i, xmin=9.0) for i in range(3)])


def test_a_bad_insert_changes_nothing() -> None:
    index = build_index([subscription(id=1)])
    words = len(index.vocabulary)
    with pytest.raises(InvalidInput):
        index.insert([subscription(id=1, tokens=["new"]), subscription(id=2, xmin=9.0)])
    assert index.match([message()]).num_rows == 1 and len(index) == 1
    assert len(index.vocabulary) == words


def test_rejected_rows_leave_no_word_in_the_vocabulary() -> None:
    index = build_index([subscription(tokens=["good"]), subscription(id=3, tokens=["bad"], xmin=9.0)], on_bad="skip")
    assert index.vocabulary.term("good") >= 0 and index.vocabulary.term("bad") == -1


@pytest.mark.parametrize(("kind", "method"), [("rank", "pyramid"), ("top", "auto")])
def test_a_kind_that_the_method_does_not_serve_is_refused(kind: str, method: str) -> None:
    with pytest.raises(UnsupportedKind, match=f"does not serve subscriptions of kind '{kind}'"):
        build_index([subscription(kind=kind, threshold=0.5, tokens=["a"], xmax=1.0, ymax=2.0)], method)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"tokens": [["a"]], "x": [0.0], "y": [0.0]}, "need a column 'id'"),
        ({"id": [1], "tokens": [["a"]]}, "no place"),
        ({"id": [1], "x": [0.0], "y": [0.0]}, "need a column 'tokens' or 'expression'; there are id"),
        ({"id": [1], "token": [["a"]], "x": [0.0], "y": [0.0]}, "do you mean 'tokens'"),
        ({"id": [1], "tokens": [3], "x": [0.0], "y": [0.0]}, "list of strings"),
        ({"id": [1], "expression": [3], "x": [0.0], "y": [0.0]}, "must hold text"),
    ],
)
def test_a_table_of_the_wrong_shape_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        build_index(table)


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        (pa.array([1.0, 2.5]), "2.5 is not a whole number"),
        (pa.array([1.0, NAN]), "no id"),
        (pa.array([1, 2**63], pa.uint64()), "is not a whole number within int64"),
    ],
)
def test_ids_that_are_no_int64_are_bad_rows(ids: pa.Array, fault: str) -> None:
    table = pa.table({"id": ids, "tokens": [["a"], ["a"]], "x": [0.0, 0.0], "y": [0.0, 0.0]})
    with pytest.raises(InvalidInput, match=fault) as caught:
        build_index(table)
    assert caught.value.row == 2
    index = build_index(table, on_bad="skip")
    assert len(index) == 1


def test_unreadable_numbers_and_times_are_bad_rows() -> None:
    index = build_index([subscription(id=1)])
    with pytest.raises(InvalidInput, match="'east' is not a number"):
        index.match({"id": [1], "text": ["a"], "x": ["east"], "y": ["1.5"]})
    with pytest.raises(InvalidInput, match="'noon' is not a time"):
        index.match({"id": [1], "text": ["a"], "x": [2.0], "y": [3.0], "time": ["noon"]})


def test_messages_without_a_text_column_are_refused() -> None:
    with pytest.raises(InvalidInput, match="messages need a column 'text' or 'tokens'; there are id, body, x, y"):
        build_index([subscription(id=1)]).match({"id": [1], "body": ["a"], "x": [2.0], "y": [3.0]})


def test_on_bad_takes_two_words_only() -> None:
    with pytest.raises(InvalidInput, match="on_bad is 'raise' or 'skip'"):
        build_index([subscription()], on_bad="ignore")
