"""The change log without Spark: what files come to, row by row, and what base and delta together mean."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import DataLoss
from nearcast.geo.space import LONLAT
from nearcast.sharding.live.change_folder import SECONDS_TO_WRITE, ChangeFolder, find_change_files
from nearcast.sharding.live.changes import join_changes, read_changes
from nearcast.sharding.live.delta import (
    NO_DELTA,
    apply_changes,
    delta_since,
    is_among,
    load_delta,
    open_delta,
    save_delta,
)
from nearcast.sharding.normalise import SUBSCRIPTIONS_SCHEMA
from nearcast.sharding.weights import Weights, given_weights
from nearcast.tables import Dialect
from nearcast.tables.ids import INT64
from nearcast.text.analyser import Analyser
from stream_world import World, put

DIALECT = Dialect(Analyser(), LONLAT, "skip", id_type=INT64)
BOX = {"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}


def insert(number: int, *tokens: str) -> dict[str, object]:
    return {"op": "insert", "id": number, "tokens": list(tokens), **BOX}


def remove(number: int) -> dict[str, object]:
    return {"op": "remove", "id": number}


def rows(*records: dict[str, object]) -> pa.Table:
    names = dict.fromkeys(name for record in records for name in record)
    return pa.table({name: [record.get(name) for record in records] for name in names})


def state(changes: object) -> dict[int, object]:
    found = {row["id"]: row["tokens"] for row in changes.inserted.to_pylist()}  # type: ignore[attr-defined]
    return found | dict.fromkeys(changes.removed.tolist(), "removed")  # type: ignore[attr-defined]


def test_the_last_good_row_of_an_id_counts() -> None:
    table = rows(insert(1, "a"), remove(1), insert(1, "b"), insert(2, "a"), remove(2), remove(3), insert(3, "c"))
    assert state(read_changes(table, "f", DIALECT)) == {1: ["b"], 2: "removed", 3: ["c"]}


def test_a_bad_row_leaves_the_good_one_before_it_in_effect() -> None:
    bad = insert(1, "b") | {"xmin": float("nan")}
    found = read_changes(rows(insert(1, "a"), bad, {"op": "upsert", "id": 4}), "f", DIALECT)
    assert state(found) == {1: ["a"]}
    rejects = found.rejects.to_pylist()
    assert [(reject["source"], reject["row"], reject["column"]) for reject in rejects] == [
        ("f", 2, "xmin"),
        ("f", 3, "op"),
    ]
    assert "upsert" in rejects[1]["reason"] and "upsert" in rejects[1]["record"]


def test_a_column_order_rules_over_the_position() -> None:
    table = rows(remove(1) | {"order": 2}, insert(1, "a") | {"order": 1}, insert(2, "x") | {"order": None})
    found = read_changes(table, "f", DIALECT)
    assert state(found) == {1: "removed"}
    assert found.rejects["column"].to_pylist() == ["order"]


def test_what_is_wrong_with_a_column_rejects_only_the_rows_that_need_it() -> None:
    placeless = pa.table({"op": ["insert", "remove"], "id": [1, 2], "tokens": [["a"], None]})
    found = read_changes(placeless, "f", DIALECT)
    assert state(found) == {2: "removed"} and found.rejects["row"].to_pylist() == [1]
    for table in (pa.table({"id": [1]}), pa.table({"op": ["remove"]}), pa.table({"op": [1], "id": [1]})):
        found = read_changes(table, "f", DIALECT)
        assert state(found) == {} and found.rejects["row"].to_pylist() == [None]


def test_ids_that_are_no_whole_numbers_are_rejected() -> None:
    table = pa.table({"op": ["remove"] * 4, "id": [1.5, 2.0, None, float("nan")]})
    found = read_changes(table, "f", DIALECT)
    assert state(found) == {2: "removed"} and found.rejects["row"].to_pylist() == [1, 3, 4]


def test_kinds_that_the_stream_does_not_serve_are_rejected() -> None:
    found = read_changes(rows(insert(1, "a") | {"kind": "top"}, insert(2, "a") | {"kind": None}), "f", DIALECT)
    assert state(found) == {2: ["a"]} and found.rejects["column"].to_pylist() == ["kind"]


def test_odd_arrow_types_become_the_one_schema() -> None:
    tokens = pa.array([["a", "b"], []], pa.large_list(pa.large_string()))
    table = pa.table(
        {
            "op": pa.array(["insert", "insert"]).dictionary_encode(),
            "id": pa.array([1, 2], pa.uint16()),
            "tokens": tokens,
            "x": pa.array([1, 2], pa.float32()),
            "y": pa.array([1, 2], pa.int8()),
            "expires": pa.array(["2026-01-31T12:00:00Z", None]),
            "k": pa.nulls(2),
        }
    ).slice(1)
    made = read_changes(table, "f", DIALECT).inserted
    assert made.schema == SUBSCRIPTIONS_SCHEMA
    assert made.select(["id", "tokens", "xmin", "ymax"]).to_pylist() == [{"id": 2, "tokens": [], "xmin": 2, "ymax": 2}]


_FILES = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", "c", None])), max_size=6), max_size=6
)


@given(_FILES, st.integers(0, 6))
def test_base_and_delta_are_the_log_applied_to_a_dict(files: list[list[tuple[int, str | None]]], cut: int) -> None:
    base = {number: ["base"] for number in range(3)}
    wanted, delta, early, at_cut = dict(base), NO_DELTA, dict(base), NO_DELTA
    for k, file in enumerate(files):
        for number, token in file:
            if token is None:
                wanted.pop(number, None)
            else:
                wanted[number] = [token]
        records = [remove(number) if token is None else insert(number, token) for number, token in file]
        delta = apply_changes(
            delta, join_changes([read_changes(rows(*records), "f", DIALECT)] if records else []), (str(k),)
        )
        if k + 1 == cut:
            early, at_cut = dict(wanted), delta
    assert _sum(base, delta) == wanted
    assert _sum(early, delta_since(delta, at_cut.number)) == wanted, "a new base that has the log up to the cut"


def _sum(base: dict[int, list[str]], delta: object) -> dict[int, list[str]]:
    touched = delta.touched  # type: ignore[attr-defined]
    kept = {number: tokens for number, tokens in base.items() if not is_among(pa.array([number]), touched)[0]}
    return kept | {row["id"]: row["tokens"] for row in delta.live.to_pylist()}  # type: ignore[attr-defined]


def test_files_together_are_files_one_after_the_other() -> None:
    world = World(1, 30)
    files = [read_changes(world.change(20), str(k), DIALECT) for k in range(4)]
    delta = NO_DELTA
    for file in files:
        delta = apply_changes(delta, file, ())
    at_once = apply_changes(NO_DELTA, join_changes(files), ())
    assert at_once.live.sort_by("id").equals(delta.live.sort_by("id"))
    assert at_once.touched.equals(delta.touched)


def test_a_saved_delta_comes_back(tmp_path: Path) -> None:
    changes = read_changes(rows(insert(1, "a"), insert(2, "b"), remove(7)), "f", DIALECT)
    delta = apply_changes(NO_DELTA, changes, ("f",))
    path = tmp_path / save_delta(delta, changes.rejects, tmp_path)
    again = load_delta(path)
    assert again.live.equals(delta.live) and again.touched.to_pylist() == [1, 2, 7] and again.files == ("f",)
    (index,), touched = open_delta(str(path), DIALECT, no_weights)
    assert index.match_one(["a"], 0.5, 0.5).tolist() == [1] and touched.to_pylist() == [1, 2, 7]
    only_removals = apply_changes(NO_DELTA, read_changes(rows(remove(7)), "f", DIALECT), ("f",))
    path = tmp_path / save_delta(only_removals, changes.rejects, tmp_path)
    indexes, touched = open_delta(str(path), DIALECT, no_weights)
    assert not indexes and touched.to_pylist() == [7]


def test_a_delta_ranks_by_the_weights_of_its_base(tmp_path: Path) -> None:
    ranked = insert(1, "a", "b", "new") | {"kind": "rank", "alpha": 0.0, "threshold": 0.1}
    changes = read_changes(rows(ranked, insert(2, "a")), "f", DIALECT)
    path = tmp_path / save_delta(apply_changes(NO_DELTA, changes, ()), changes.rejects, tmp_path)
    weights = given_weights({"token": ["a", "b", "c"], "weight": [1.0, 2.0, 5.0]})
    plain, by_score = open_delta(str(path), DIALECT, lambda: weights)[0]
    message = {"id": [9], "tokens": [["a", "b"]], "x": [50.0], "y": [50.0]}
    assert by_score.match(message).to_pylist() == [{"message": 9, "subscription": 1, "score": 3.0 / 8.0}]
    assert len(plain) == 1


def no_weights() -> Weights:
    raise AssertionError("nothing is ranked")


def test_files_are_found_by_name_and_hidden_ones_are_not(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.jsonl", "_c.parquet", ".d.parquet", "e.txt", "f/g.csv", "_h/i.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_change_files(tmp_path, {"b.parquet", "gone.parquet"}) == (["a.jsonl", "f/g.csv"], ["b.parquet"])
    assert find_change_files(tmp_path / "absent", ["x"]) == ([], ["x"])


def test_a_young_file_that_cannot_be_read_waits_and_so_do_those_after_it(tmp_path: Path) -> None:
    put(rows(insert(1, "a")), tmp_path, "1.parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 half of a")
    put(rows(remove(1)), tmp_path, "3.parquet")
    folder = ChangeFolder(tmp_path)
    found = folder.read((), DIALECT)
    assert found.files == ["1.parquet"] and state(found.changes) == {1: ["a"]}
    assert found.waiting == ["2.parquet", "3.parquet"] == folder.waiting(found.files)
    for age in (60, -3_600):  # a date in the future says nothing
        os.utime(tmp_path / "2.parquet", (time.time() - age,) * 2)
        found = ChangeFolder(tmp_path).read((), DIALECT)
        assert len(found.files) == 3 and state(found.changes) == {1: "removed"} and not found.waiting
        assert found.changes.rejects["source"].to_pylist() == ["2.parquet"]


def test_a_young_file_waits_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "1.parquet").write_bytes(b"PAR1 half of a")
    folder = ChangeFolder(tmp_path)
    assert folder.read((), DIALECT).waiting == ["1.parquet"]
    later = time.monotonic() + SECONDS_TO_WRITE
    monkeypatch.setattr(time, "monotonic", lambda: later)
    os.utime(tmp_path / "1.parquet", (time.time() + 1,) * 2)  # the clock of its writer is fast
    assert folder.read((), DIALECT).changes.rejects.num_rows == 1


def test_a_folder_that_vanished_is_no_empty_one(tmp_path: Path) -> None:
    folder = ChangeFolder(tmp_path / "later")
    assert not folder.read((), DIALECT).are_there
    (tmp_path / "there").mkdir()
    folder = ChangeFolder(tmp_path / "there")
    (tmp_path / "there").rmdir()
    with pytest.raises(DataLoss, match="is gone"):
        folder.read((), DIALECT)


def test_change_files_may_be_csv_or_json_lines(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("op,id,tokens,xmin,ymin,xmax,ymax\ninsert,1,a b,0,0,1,1\nremove,2,,,,,\n")
    (tmp_path / "2.JSONL").write_text('{"op": "insert", "id": 3, "expression": "a OR b", "x": 1, "y": 1}\n')
    changes = ChangeFolder(tmp_path).read((), DIALECT).changes
    assert state(changes) == {1: ["a", "b"], 2: "removed", 3: None} and not changes.rejects.num_rows
