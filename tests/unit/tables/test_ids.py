"""Ids of any kind: the same type out as in, sorted by it, and one clear error where types differ."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.errors import InvalidInput
from nearcast.tables import write_table
from nearcast.tables.ids import Names, id_column

HERE = {"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
UUIDS = [uuid.UUID(int=each) for each in (2**127, 3, 2**64)]
KINDS: dict[str, tuple[list[Any], pa.DataType]] = {
    "int64": ([9, -3, 4], pa.int64()),
    "string": (["é", "z", "Z"], pa.string()),
    "uuid": (UUIDS, pa.uuid()),
    "bytes16": ([each.bytes for each in UUIDS], pa.binary(16)),
}


def subscriptions(ids: Any) -> pa.Table:
    n = len(ids)
    return pa.table({"id": ids, "tokens": [["a"]] * n, **{name: [value] * n for name, value in HERE.items()}})


def messages(ids: Any) -> pa.Table:
    return pa.table({"id": ids, "text": ["a b"] * len(ids), "x": [0.5] * len(ids), "y": [0.5] * len(ids)})


@pytest.mark.parametrize("inserted", [False, True], ids=["built", "inserted one by one"])
@pytest.mark.parametrize("of_messages", KINDS)
@pytest.mark.parametrize("of_subscriptions", KINDS)
def test_matches_have_the_types_of_both_tables_and_their_order(
    of_subscriptions: str, of_messages: str, inserted: bool, tmp_path: Path
) -> None:
    (ids, kind), (message_ids, message_kind) = KINDS[of_subscriptions], KINDS[of_messages]
    index = nc.build_index(subscriptions(pa.array(ids[:1] if inserted else ids, kind)))
    if inserted:
        for each in ids[1:]:
            index.insert(subscriptions(pa.array([each], kind)))
    matches = index.match(messages(pa.array(message_ids, message_kind)))
    assert matches.schema.types == [message_kind, kind]
    wanted = [(m, s) for m in sorted(message_ids) for s in sorted(ids)]
    assert list(zip(*(matches[name].to_pylist() for name in matches.column_names), strict=True)) == wanted
    index.save(tmp_path / "index")
    for twin in (nc.open_index(tmp_path / "index"), pickle.loads(pickle.dumps(index))):
        assert twin.match(messages(pa.array(message_ids, message_kind))).equals(matches)


@pytest.mark.parametrize("kind", ["string", "uuid"])
def test_single_messages_give_arrays_of_ids(kind: str) -> None:
    ids = KINDS[kind][0]
    index = nc.build_index(subscriptions(pa.array(ids, KINDS[kind][1])))
    found = index.match_one("a", 0.5, 0.5)
    assert found.dtype == object and found.tolist() == sorted(ids)
    index.remove(ids[0])
    index.remove([ids[1], ids[1]])
    assert index.match_one("a", 0.5, 0.5).tolist() == ids[2:]


def test_strings_are_sorted_by_code_point() -> None:
    ids = ["a", "B", "aa", "\U0001f600", "\uffff", "é", "Z", "ab", "~"]
    index = nc.build_index(subscriptions(ids))
    assert index.match_one("a", 0.5, 0.5).tolist() == sorted(ids)


def test_python_pandas_and_polars_ids() -> None:
    columns: dict[str, Any] = {"tokens": [["a"]] * 3, **{name: [value] * 3 for name, value in HERE.items()}}
    frames: list[Callable[[dict[str, Any]], Any]] = [dict, pd.DataFrame, pl.DataFrame, pa.table]
    for make in frames:
        index = nc.build_index(make({"id": ["c", "b", "a"], **columns}))
        assert index.match_one("a", 0.5, 0.5).tolist() == ["a", "b", "c"]
    for make in (dict, pd.DataFrame, pa.table):
        index = nc.build_index(make({"id": UUIDS, **columns}))
        assert index.match_one("a", 0.5, 0.5).tolist() == sorted(UUIDS)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, "a"], "'a': the ids before it are whole numbers; the ids of one table are of one type"),
        (["a", 1], "1: the ids before it are strings"),
        (["a", UUIDS[0]], "the ids before it are strings"),
        (["a", None], "no id"),
        (["a", ""], "the id is empty; give each row one"),
        (["a", "b", "a"], "id 'a' is already in this table; ids must differ"),
        ([UUIDS[0], UUIDS[0]], r"id UUID\('80000000.*'\) is already in this table"),
        (["a", "\ud800"], "no valid Unicode"),
        ([1, 2**63], "whole number within int64"),
        ([True, False], "ids are whole numbers, strings or UUIDs, not bool"),
        ([1.5, 2.0], "1.5 is not a whole number within int64"),
    ],
)
def test_ids_that_are_refused(ids: list[Any], message: str) -> None:
    table = {"id": ids, "tokens": [["a"]] * len(ids), **{name: [value] * len(ids) for name, value in HERE.items()}}
    with pytest.raises(InvalidInput, match=message) as raised:
        nc.build_index(table)
    assert raised.value.column == "id"


def test_bad_ids_are_rejected_and_the_others_kept() -> None:
    index = nc.build_index(subscriptions(["b", None, "a", "", "b", "c"]), on_bad="skip")
    assert index.rejects is not None and index.rejects["row"].to_pylist() == [2, 4, 5]
    assert index.match_one("a", 0.5, 0.5).tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("known", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_other_types_are_refused_and_nothing_changes(known: str, other: str) -> None:
    index = nc.build_index(subscriptions(pa.array(*KINDS[known])))
    if {known, other} <= {"uuid", "bytes16"} or known == other:
        index.insert(subscriptions(pa.array(*KINDS[other])))
        return
    for call in (index.insert, lambda table: index.remove(table["id"].to_pylist())):
        if other == "bytes16" and call != index.insert:
            continue  # bytes are no ids in Python
        with pytest.raises(InvalidInput, match="the ids are .*, those of this index are .*; give ids of that type"):
            call(subscriptions(pa.array(*KINDS[other])))
    assert len(index) == len(index.match_one("a", 0.5, 0.5)) == 3


def test_an_empty_table_decides_nothing() -> None:
    index = nc.build_index(subscriptions(pa.array([], pa.int64())))
    index.insert(subscriptions(["a"]))
    assert index.match_one("a", 0.5, 0.5).tolist() == ["a"]
    assert nc.build_index(subscriptions(["a"])).match(messages(pa.array([], pa.string()))).num_rows == 0


@pytest.mark.parametrize("bad", [None, 1.5, True, b"a", {"a": 1}, object(), [[1]], [None]])
def test_what_is_no_id_is_refused(bad: Any) -> None:
    index = nc.build_index(subscriptions(["a"]))
    with pytest.raises(InvalidInput, match="id"):
        index.remove(bad)


def test_names_of_removed_subscriptions_are_forgotten() -> None:
    index = nc.build_index(subscriptions([f"first-{k}" for k in range(10)]))
    most = 0
    for round in range(60):
        ids = [f"{round}-{k:03}" for k in range(100)]
        index.insert(subscriptions(ids))
        assert index.match_one("a", 0.5, 0.5).tolist() == sorted([f"first-{k}" for k in range(10)] + ids)
        index.remove(ids)
        most = max(most, len(index.names))
    assert most < 1500 and index.names.nbytes < 150_000
    assert index.match_one("a", 0.5, 0.5).tolist() == sorted(f"first-{k}" for k in range(10))


def test_a_reader_of_an_older_table_keeps_its_names() -> None:
    names = Names()
    numbers = names.add(id_column([f"{k:04}" for k in range(3000)]))
    newer = names.only(numbers[::10])
    assert not newer.has_unused(300) and names.has_unused(300)
    again = newer.add(id_column(["z", "0000", "y"]))
    assert again[1] == numbers[0] and len({*again.tolist(), *numbers[::10].tolist()}) == 302
    assert newer.python(again) == ["z", "0000", "y"]
    assert names.python(numbers) == [f"{k:04}" for k in range(3000)]
    assert newer.python(numbers[::10]) == [f"{k:04}" for k in range(0, 3000, 10)]
    assert newer.python(newer.find(id_column(["0010"]))) == ["0010"] and newer.find(id_column(["0001"])).tolist() == [
        -1
    ]


def test_whole_numbers_take_no_memory_and_strings_little() -> None:
    plain, named = Names(), Names()
    plain.add(id_column(np.arange(10_000)))
    named.add(id_column([f"subscription-{k:07}" for k in range(10_000)]))
    assert plain.nbytes == 0
    assert named.nbytes / 10_000 <= 60, "with 20 bytes of the id itself"


def test_uuids_are_written_as_texts_where_a_format_has_none(tmp_path: Path) -> None:
    table = nc.build_index(subscriptions(UUIDS)).match(messages(UUIDS[:1]))
    for name in ("matches.csv", "matches.jsonl", "matches.parquet"):
        write_table(table, tmp_path / name)
    assert pq.read_table(tmp_path / "matches.parquet").equals(table)
    for name in ("matches.csv", "matches.jsonl"):
        assert (tmp_path / name).read_text().count(str(UUIDS[0])) == 4


def test_ranked_matches_keep_their_scores_when_ids_are_sorted_again() -> None:
    columns: dict[str, Any] = {"kind": ["rank"], "threshold": [0.0], "alpha": [0.5]}
    index = nc.build_index({"id": ["b"], "tokens": [["a"]], **{k: [v] for k, v in HERE.items()}, **columns})
    index.insert({"id": ["a"], "tokens": [["a", "q"]], **{k: [v] for k, v in HERE.items()}, **columns})
    found = index.match(messages(["m"])).to_pylist()
    assert [each["subscription"] for each in found] == ["a", "b"]
    assert found[0]["score"] < found[1]["score"]


def test_messages_without_ids_are_numbered_with_a_warning() -> None:
    index = nc.build_index(subscriptions(["b", "a"]))
    table = messages(["m", "n"]).drop_columns(["id"])
    with pytest.warns(nc.MadeIds, match=r"the messages have no column 'id' \(there are text, x, y\); row numbers"):
        found = index.match(table)
    assert found["message"].to_pylist() == [0, 0, 1, 1]
    for call in (nc.Moving().publish, nc.TopK(window=3).publish):
        with pytest.raises(InvalidInput, match="'id'"):
            call(table)
    for call in (index.insert, nc.build_index):
        with pytest.raises(InvalidInput, match="looks like a messages table"):
            call(table)
