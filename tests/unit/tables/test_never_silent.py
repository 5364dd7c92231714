"""What looks like a mistake is said: unknown columns, swapped tables, no good row, expressions that never hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import nearcast as nc
from nearcast.errors import InvalidInput

SUBSCRIPTION: dict[str, Any] = {"id": 1, "expression": "a", "x": 0.0, "y": 0.0}
MESSAGE: dict[str, Any] = {"id": 5, "text": "a", "x": 0.0, "y": 0.0}
TOP: dict[str, Any] = {"id": 1, "tokens": ["a"], "x": 0.0, "y": 0.0}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("exprssion", "expression"), ("Expression ", "expression"), ("expiry", "expires"), ("polygon", "region")],
)
def test_an_unknown_column_of_subscriptions_names_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(InvalidInput, match=f"do you mean '{meant}'") as raised:
        nc.build_index([SUBSCRIPTION | {name: None}])
    assert raised.value.column == name


def test_the_nearest_name_is_one_that_is_known() -> None:
    with pytest.raises(InvalidInput, match="there are id, expression, tokens, region"):
        nc.build_index([SUBSCRIPTION | {"qqq": 1}])


@pytest.mark.parametrize("make", [nc.build_index, nc.Moving, lambda rows, **how: nc.TopK(rows, window=3, **how)])
def test_extra_names_payload_or_allows_all(make: Callable[..., Any]) -> None:
    rows = [TOP | {"note": "n"}]
    with pytest.raises(InvalidInput, match="column 'note': subscriptions have no such column"):
        make(rows)
    assert len(make(rows, extra="ignore")) == len(make(rows, extra=["note"])) == 1
    for wrong in ("note", [], 3, [1]):
        with pytest.raises(InvalidInput, match="extra= is 'raise', 'ignore' or a list"):
            make(rows, extra=wrong)


def test_what_an_index_keeps_is_known_to_it(tmp_path: Path) -> None:
    index = nc.build_index([SUBSCRIPTION | {"note": "n"}], extra=["note"])
    index.insert([SUBSCRIPTION | {"id": 2, "note": "m"}])
    index.save(tmp_path)
    index = nc.open_index(tmp_path)
    index.insert([SUBSCRIPTION | {"id": 3, "note": "o"}])
    assert index.match([MESSAGE], keep=["note"])["note"].to_pylist() == ["n", "m", "o"]
    with pytest.raises(InvalidInput, match="'nte'"):
        index.insert([SUBSCRIPTION | {"id": 4, "nte": "o"}])


@pytest.mark.parametrize(
    ("name", "meant"), [("tme", "time"), ("Time", "time"), ("expire", "expires"), ("Expires", "expires")]
)
def test_a_misspelt_column_of_messages_is_an_error(name: str, meant: str) -> None:
    index = nc.build_index([SUBSCRIPTION])
    with pytest.raises(InvalidInput, match=f"is it '{meant}'"):
        index.match([MESSAGE | {name: None}])
    for allowed in ({"extra": "ignore"}, {"extra": [name]}, {"keep": [name]}, {"keep": [f"message.{name}"]}):
        assert index.match([MESSAGE | {name: "v"}], **allowed).num_rows == 1  # type: ignore[arg-type]


def test_a_misspelt_id_does_not_become_row_numbers() -> None:
    table = {"ID": [5], "text": ["a"], "x": [0.0], "y": [0.0]}
    with pytest.raises(InvalidInput, match="is it 'id'"):
        nc.build_index([SUBSCRIPTION]).match(table)


def test_further_columns_of_messages_are_attributes() -> None:
    index = nc.build_index([SUBSCRIPTION | {"expression": "a {tme > 3}"}])
    more = {"tme": 4, "user": "u", "title": "t", "late": 1, "token": "x"}
    assert index.match([MESSAGE | more]).num_rows == 1


def test_swapped_tables_are_refused() -> None:
    index = nc.build_index([SUBSCRIPTION])
    with pytest.raises(InvalidInput, match="looks like a messages table: it has a column 'text'"):
        nc.build_index([MESSAGE])
    with pytest.raises(InvalidInput, match="looks like a messages table: it has a column 'time'"):
        nc.build_index([TOP | {"time": None}])
    with pytest.raises(InvalidInput, match="looks like a subscriptions table: it has a column 'expression'"):
        index.match([SUBSCRIPTION])
    with pytest.raises(InvalidInput, match="looks like a subscriptions table: it has a column 'threshold'"):
        index.match([TOP | {"threshold": 0.5}])
    assert index.match([MESSAGE | {"expression": "smile", "region": "Alberta", "kind": "fire"}]).num_rows == 1


def test_no_good_row_is_an_error_and_few_good_rows_a_warning() -> None:
    bad: dict[str, Any] = {"x": 999.0}
    index = nc.build_index([SUBSCRIPTION])
    for call, row in (
        (lambda rows: nc.build_index(rows, on_bad="skip"), SUBSCRIPTION),
        (lambda rows: index.insert(rows, on_bad="skip"), SUBSCRIPTION),
        (lambda rows: index.match(rows, on_bad="skip"), MESSAGE),
        (lambda rows: nc.TopK(rows, window=3, on_bad="skip"), TOP),
        (lambda rows: nc.TopK(window=3).publish(rows, on_bad="skip"), MESSAGE),
        (lambda rows: nc.Moving().subscribe(rows, on_bad="skip"), TOP),
        (lambda rows: nc.Moving().publish(rows, on_bad="skip"), MESSAGE),
        (lambda rows: nc.Engine().publish_many(rows, on_bad="skip"), MESSAGE),
    ):
        rows = [row | {"id": number} for number in range(3)]
        with pytest.raises(InvalidInput, match=r"all 3 rows of the (messages|subscriptions) are bad; the first is row"):
            call([each | bad for each in rows])
        with pytest.warns(nc.MostlyRejected, match="2 of the 3 rows"):
            call([rows[0] | bad, rows[1] | bad, rows[2]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call([rows[0] | bad, rows[1]])
    assert index.match({"id": [], "text": [], "x": [], "y": []}, on_bad="skip").num_rows == 0


def test_records_have_the_union_of_their_keys() -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "tokens": ["a"], "x": 0.0, "y": 0.0}, SUBSCRIPTION | {"id": 2}]
    rows[1]["expression"] = "b"
    index = nc.build_index(rows)
    assert index.match_one("a", 0, 0).tolist() == [1] and index.match_one("b", 0, 0).tolist() == [2]


@pytest.mark.parametrize("keep_source", [True, False])
def test_what_can_never_match_is_counted_and_named(tmp_path: Path, keep_source: bool) -> None:
    never = SUBSCRIPTION | {"expression": "a NOT a"}
    index = nc.build_index([never, SUBSCRIPTION | {"id": 2}, never | {"id": 3}], keep_source=keep_source)
    assert len(index) == 3 and index.never_matching == [1, 3] and list(index) == [1, 2, 3]
    assert "2 of which can never match" in repr(index) and "can never match" in index._repr_html_()
    index.insert([SUBSCRIPTION | {"id": 3}, never | {"id": 2}])
    assert len(index) == 3 and index.never_matching == [1, 2] and index.match_one("a", 0, 0).tolist() == [3]
    index.save(tmp_path)
    index = nc.open_index(tmp_path)
    assert index.never_matching == [1, 2] and 1 in index
    index.remove([1, 3])
    assert len(index) == 1 and index.never_matching == [2] and list(index) == [2] and 1 not in index


PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=2)


def test_expired_subscriptions_never_match() -> None:
    rows = [SUBSCRIPTION | {"id": 1, "expires": PAST}, SUBSCRIPTION | {"id": 2, "expires": FUTURE}]
    index = nc.build_index(rows)
    before, after = PAST - timedelta(days=1), FUTURE + timedelta(days=1)

    def found(now: Any = None, **more: Any) -> list[int]:
        return index.match([MESSAGE | more], now=now)["subscription"].to_pylist()  # type: ignore[no-any-return]

    assert found() == [2] and found(before) == [1, 2] and found(after) == [] and found("2019-12-31") == [1, 2]
    assert found(time=before) == [1, 2] and found(after, time=before) == [1, 2]  # the message's own time counts
    assert index.match_one("a", 0, 0).tolist() == [2]
    assert index.match_one("a", 0, 0, now=before).tolist() == [1, 2]
    assert index.explain(1, "a", at=(0, 0)).expired and index.explain(1, "a", at=(0, 0), now=before).holds
    with pytest.raises(InvalidInput, match="is no time; write it as"):
        found("soon")


def test_match_one_checks_words_and_numbers() -> None:
    index = nc.build_index([SUBSCRIPTION])
    assert index.match_one("An A", 0, 0).tolist() == index.match_one(["a"], 0, 0).tolist() == [1]
    for x, y, column in ((float("nan"), 0, "x"), (0, float("inf"), "y"), (181, 0, "x"), (0, -91, "y"), ("0", 0, "x")):
        with pytest.raises(InvalidInput) as raised:
            index.match_one("a", x, y)  # type: ignore[arg-type]
        assert raised.value.column == column
    for words in (None, 3, b"a", [1], {"a": 1}, [["a"]]):
        with pytest.raises(InvalidInput, match="a text or a list of tokens"):
            index.match_one(words, 0, 0)  # type: ignore[arg-type]
