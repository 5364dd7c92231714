"""Ids that are strings or UUIDs: Spark finds what the library finds, with ids of the same type."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from nearcast.ingest.stream_batch import dialect_of, pairs_of
from nearcast.sharding.live.changes import read_changes
from nearcast.sharding.live.delta import NO_DELTA, apply_changes, delta_since, load_delta, save_delta
from nearcast.sharding.match_shards import match_all_shards, match_one_shard, route_table
from nearcast.sharding.normalise import normalise_messages
from nearcast.sharding.sharded_index import ShardedIndex
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.ingest import IngestOptions, check_ingest, ingest
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.one_process import OneProcess
from spark.named_tables import ID_TYPES, name_of, named
from spark.nasty_tables import nasty_messages, nasty_subscriptions
from spark.ranked_tables import ranked_subscriptions

SIZES = (60, 90) if JIT_DISABLED else (200, 300)
ORDER = [("message", "ascending"), ("subscription", "ascending")]


@functools.cache
def tables(kind: str) -> tuple[pa.Table, pa.Table]:
    draw = ranked_subscriptions if kind == "rank" else nasty_subscriptions
    return draw(5, SIZES[0]), nasty_messages(6, SIZES[1])


def build(folder: Path, subscriptions: pa.Table, messages: pa.Table | None, shards: int) -> ShardedIndex:
    pq.write_table(subscriptions, folder / "subscriptions.parquet", row_group_size=32)
    return build_sharded(
        OneProcess(),
        str(folder / "subscriptions.parquet"),
        str(folder / "index"),
        shards=shards,
        messages=messages,
        method="brute",
    )


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    """The rows by their ids: Arrow does not sort UUIDs."""
    return sorted(table.to_pylist(), key=lambda row: (row["message"], row["subscription"]))


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("ids", [("string", "string"), ("uuid", "int64"), ("bytes16", "string"), ("int64", "uuid")])
@pytest.mark.parametrize("kind", ["match", "rank"])
def test_both_layouts_find_what_the_library_finds(tmp_path: Path, kind: str, ids: tuple[str, str], shards: int) -> None:
    subscriptions, messages = (named(table, of) for table, of in zip(tables(kind), ids, strict=True))
    index = build(tmp_path, subscriptions, messages, shards)
    wanted = nc.build_index(subscriptions, "brute").match(messages)
    everywhere = match_all_shards(index, messages)
    assert everywhere.equals(wanted) and wanted.num_rows > 50, "sorted by the ids too"
    routed, rejects = route_table(index, messages)
    parts = [match_one_shard(index, shard, table) for shard, table in routed.items()]
    assert not len(rejects) and in_order(pa.concat_tables(parts)) == wanted.to_pylist()
    assert all(part.schema.equals(wanted.schema) for part in parts)


@pytest.mark.parametrize("layout", ["replicated", "sharded"])
@pytest.mark.parametrize("of", ["string", "large_string", "uuid"])
@pytest.mark.parametrize("most_here", [10_000, 40])
def test_tables_keep_the_type_and_repeated_ids_are_rejected(
    tmp_path: Path, monkeypatch: Any, of: str, layout: Any, most_here: int
) -> None:
    monkeypatch.setattr("nearcast.spark.batch.duplicate_ids.MOST_IDS_HERE", most_here)
    subscriptions, messages = (named(table, of) for table in tables("match"))
    nameless = named(pa.table({"id": pa.array([None], pa.int64())}), of)
    again = pa.concat_tables([messages, messages.slice(3, 5), nameless], promote_options="permissive")
    build(tmp_path, pa.concat_tables([subscriptions, subscriptions.slice(7, 2)]), None, 3)
    pq.write_table(again, tmp_path / "messages.parquet", row_group_size=50)
    paths = [str(tmp_path / name) for name in ("index", "messages.parquet", "out")]
    counts = match_batch(OneProcess(), *paths, layout=layout, rows_per_task=50)
    library = nc.build_index(subscriptions, "brute")
    wanted = library.match(again, on_bad="skip")
    found = pq.read_table(paths[2])
    assert found.schema.types == [ID_TYPES[of.removeprefix("large_")]] * 2
    assert in_order(found) == wanted.to_pylist() and wanted.num_rows
    assert counts["rejected"] == 6 and counts["tasks"] > 1
    reasons = pq.read_table(tmp_path / "out/_rejects.parquet").select(["row", "column", "reason"])
    assert library.rejects is not None and reasons.equals(library.rejects.select(["row", "column", "reason"]))
    rejects = nc.spark.open_index(paths[0]).rejects()
    names = [repr(name_of(number, of)) for number in tables("match")[0]["id"][7:9].to_pylist()]
    assert all(name in text for name, text in zip(names, rejects["reason"].to_pylist(), strict=True))


def test_an_index_without_subscriptions_matches_nothing_with_ids_of_its_type(tmp_path: Path) -> None:
    index = build(tmp_path, named(tables("match")[0], "string").slice(0, 0), None, 2)
    found = match_all_shards(index, named(tables("match")[1], "uuid"))
    assert found.schema.types == [pa.uuid(), pa.string()] and not found.num_rows


def test_files_with_ids_of_two_types_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "subscriptions").mkdir()
    for name, of in (("a", "int64"), ("b", "string")):
        pq.write_table(named(tables("match")[0], of), tmp_path / f"subscriptions/{name}.parquet")
    with pytest.raises(InvalidInput, match=r"b\.parquet: its ids are strings, those of .*a\.parquet are whole numbers"):
        build_sharded(OneProcess(), str(tmp_path / "subscriptions"), str(tmp_path / "index"), shards=2)


# -- raw files


def test_ingest_keeps_texts_as_ids_and_finds_those_that_come_again(spark: Any, tmp_path: Path) -> None:
    lines = ["id,text,lon,lat", "b-1,pizza,1,2", " 007 ,deal,1,2", "b-1,again,1,2", ",none,1,2", "7.0,x,1,999"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    (tmp_path / "b.jsonl").write_text('{"id": 12, "text": "c", "lon": 0, "lat": 0}\n{"id": "007", "text": "d"}\n')
    places = [str(tmp_path / name) for name in ("out", "rejects")]
    sources = [str(tmp_path / name) for name in ("a.csv", "b.jsonl")]
    counts = ingest(spark, sources, "messages", {}, *places, options=IngestOptions(id_type="string"))
    assert sorted(pq.read_table(places[0])["id"].to_pylist()) == ["007", "12", "b-1"]
    assert pq.read_table(places[0]).schema.field("id").type == pa.string()
    rejects = pq.read_table(places[1]).to_pylist()
    reasons = sorted(row["reason"].partition(";")[0] for row in rejects)
    assert counts["rejected"] == len(reasons) == 4 and "id 'b-1' is already in this table" in reasons


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"id_type": "uuid"}, "'int64' or 'string'"), ({"id_type": "string", "make_ids": True}, "leave out")],
)
def test_ids_that_ingest_does_not_know_are_refused(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    (tmp_path / "a.csv").write_text("id,text,lon,lat\n")
    places = [str(tmp_path / name) for name in ("out", "rejects")]
    with pytest.raises(InvalidInput, match=reason):
        check_ingest([str(tmp_path / "a.csv")], "messages", {}, *places, IngestOptions(**options))


# -- live changes


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("kind", ["match", "rank"])
def test_base_and_changes_find_what_the_library_finds(tmp_path: Path, kind: str, shards: int) -> None:
    subscriptions, messages = (named(table, "string") for table in tables(kind))
    first_rows = subscriptions.slice(0, SIZES[0] - 40)
    base = build(tmp_path, first_rows, None, shards)
    library = nc.build_index(first_rows, "brute")
    delta, dialect = NO_DELTA, dialect_of(base)
    for first in (SIZES[0] - 40, SIZES[0] - 20):  # new ones, older ones again, and removals
        inserts = pa.concat_tables([subscriptions.slice(first, 20), subscriptions.slice(0, 3)])
        removed = subscriptions["id"].slice(first - 8, 9)
        rows = inserts.append_column("op", pa.array(["insert"] * inserts.num_rows))
        log = [rows, pa.table({"op": ["remove"] * len(removed), "id": removed})]
        changes = read_changes(pa.concat_tables(log, promote_options="default"), "log", dialect)
        assert not len(changes.rejects)
        delta = apply_changes(delta, changes, ())
        library.insert(inserts)
        library.remove(removed)
    path = tmp_path / save_delta(delta, changes.rejects, tmp_path)
    assert load_delta(path).touched.equals(delta.touched) and load_delta(path).live.equals(delta.live)
    wanted = library.match(messages)
    normal, rejects = normalise_messages(messages, dialect)
    found = pairs_of(base, str(path), normal)
    assert not len(rejects) and wanted.num_rows > 50
    assert found.select(wanted.column_names).equals(wanted)
    later = delta_since(delta, 1)
    assert 0 < len(later.touched) < len(delta.touched)


@pytest.mark.parametrize(("of", "ids"), [("string", ["1", "2"]), ("int64", [1, 2])])
def test_digits_of_a_change_file_are_ids_of_the_type_of_the_index(tmp_path: Path, of: str, ids: list[Any]) -> None:
    """A CSV or JSON file with ids 1, 2 has whole numbers, whatever the ids of the index are."""
    log = pa.table({"op": ["insert", "remove"], "id": [1, 2], "expression": ["a", None], "region": ["world", None]})
    changes = read_changes(log, "log", dialect_of(build(tmp_path, named(tables("match")[0], of), None, 1)))
    assert changes.ids.to_pylist() == ids and not len(changes.rejects)


def test_a_stream_refuses_uuids_in_one_line(tmp_path: Path) -> None:
    base = build(tmp_path, named(tables("match")[0], "uuid"), None, 1)
    with pytest.raises(InvalidInput, match="its ids are UUIDs; a stream takes whole numbers or strings"):
        dialect_of(base)


# -- DataFrames


@pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")
@pytest.mark.parametrize("shards", [0, 1, 2, 7])
def test_frames_have_ids_of_the_same_type(spark: Any, tmp_path: Path, shards: int) -> None:
    from pyspark.sql import Observation

    from nearcast import spark as ncs

    subscriptions, messages = (named(table, "string") for table in tables("rank"))
    wanted = nc.build_index(subscriptions, "brute").match(messages)
    if shards:
        made = ncs.build_index(spark.createDataFrame(subscriptions), tmp_path / "index", shards=shards, method="brute")
    else:
        nc.build_index(subscriptions, "brute").save(tmp_path / "index")
        made = ncs.open_index(tmp_path / "index")
    frame = spark.createDataFrame(messages).repartition(2)
    for layout in ("replicated", "sharded"):
        counts = Observation()
        found = ncs.match(frame, made, layout=layout, metrics=counts).toArrow().sort_by(ORDER)
        assert found.cast(wanted.schema).equals(wanted)
        assert counts.get["matches"] == wanted.num_rows and counts.get["messages"] == SIZES[1]
    if hasattr(functions, "arrow_udtf"):
        ncs.register(spark, made, "named_match", id_type="string")
        frame.createOrReplaceTempView("named_messages")
        found = spark.sql("SELECT * FROM named_match(TABLE(named_messages))").toArrow().sort_by(ORDER)
        assert found.cast(wanted.schema).equals(wanted)


@pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")
def test_uuids_of_subscriptions_are_texts_in_a_frame(spark: Any, tmp_path: Path) -> None:
    from nearcast import spark as ncs

    subscriptions, messages = named(tables("match")[0], "uuid"), tables("match")[1]
    build(tmp_path, subscriptions, None, 2)
    wanted = nc.build_index(subscriptions, "brute").match(messages)
    rows = ncs.match(spark.createDataFrame(messages), str(tmp_path / "index")).collect()
    found = {(row.message, row.subscription) for row in rows}
    texts = {(row["message"], str(row["subscription"])) for row in wanted.to_pylist()}
    assert len(rows) == wanted.num_rows and found == texts


@pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")
def test_a_stream_with_changes_has_string_ids(spark: Any, tmp_path: Path) -> None:
    from nearcast import spark as ncs

    subscriptions, messages = (named(table, "string") for table in tables("match"))
    base, later, removed = subscriptions.slice(20), subscriptions.slice(0, 20), subscriptions["id"].slice(30, 15)
    build(tmp_path, base, None, 2)
    log = [later.append_column("op", pa.array(["insert"] * 20)), pa.table({"op": ["remove"] * 15, "id": removed})]
    written = {"messages": messages, "changes": pa.concat_tables(log, promote_options="default")}
    streams = {}
    for name, table in written.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "0.parquet")
        schema = spark.read.parquet(str(tmp_path / name)).schema
        streams[name] = spark.readStream.schema(schema).parquet(str(tmp_path / name))
    places = {"index": tmp_path / "index", "out": tmp_path / "out"}
    query = ncs.stream(streams["messages"], changes=streams["changes"], compact_least=5, once=True, **places)
    assert query.awaitTermination(200)
    library = nc.build_index(subscriptions, "brute")
    library.remove(removed)
    wanted = library.match(messages)
    found = pa.concat_tables([pq.read_table(file) for file in (tmp_path / "out").glob("batch=*/part-*.parquet")])
    assert wanted.num_rows > 50 and found.sort_by(ORDER).select(wanted.column_names).equals(wanted)
    assert query.counts["changes"] == 35 and (tmp_path / "out-checkpoint/compacted.json").exists()
