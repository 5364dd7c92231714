"""Build and match on Spark: what the library finds, pair by pair, in both layouts and any number of shards."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.demo.demo_subscriptions import sample_messages, subscriptions_table
from nearcast.sharding.match_shards import match_all_shards
from nearcast.sharding.sharded_index import open_sharded
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch
from spark import shared_pages
from spark.balance import read_real
from spark.drawn_tables import drawn
from spark.nasty_tables import nasty_messages, nasty_subscriptions
from spark.ranked_draws import real_tables
from spark.ranked_tables import ranked_subscriptions

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")


def sorted_matches(folder: Path) -> pa.Table:
    return pq.read_table(folder).sort_by([("message", "ascending"), ("subscription", "ascending")])


def assert_spark_equals_the_library(
    spark: Any, folder: Path, tables: tuple[pa.Table, pa.Table], n_shards: int, method: str = "pyramid"
) -> None:
    subscriptions, messages = tables
    for name, table in (("subscriptions", subscriptions), ("messages", messages)):
        (folder / name).mkdir()
        half = table.num_rows // 2
        pq.write_table(table.slice(0, half), folder / name / "a.parquet")
        pq.write_table(table.slice(half), folder / name / "b.parquet", row_group_size=1 + half // 3)
    paths = [str(folder / name) for name in ("subscriptions", "index", "messages")]
    build_sharded(spark, paths[0], paths[1], shards=n_shards, messages=paths[2], method=method)
    wanted = nc.build_index(subscriptions, method=method, extra=["name"]).match(messages)
    for layout in ("replicated", "sharded"):
        out = folder / layout
        counts = match_batch(spark, paths[1], paths[2], str(out), layout=layout, rows_per_task=messages.num_rows // 3)
        assert sorted_matches(out).equals(wanted), layout
        assert json.loads((out / "_counts.json").read_text()) == counts
        assert (counts["pairs"], counts["messages"]) == (wanted.num_rows, messages.num_rows)
        assert spark.read.parquet(str(out)).count() == wanted.num_rows, "Spark reads it as a table, too"


@pytest.mark.parametrize("n_shards", [1, 2, 7, 32])
def test_calgary_on_spark_equals_the_library(spark: Any, tmp_path: Path, n_shards: int) -> None:
    messages = sample_messages()
    tables = (subscriptions_table(messages, 2_000), messages)
    assert_spark_equals_the_library(spark, tmp_path, tables, n_shards, "auto" if n_shards == 1 else "pyramid")


@pytest.mark.parametrize("n_shards", [1, 2, 7, 32])
def test_nasty_tables_on_spark_equal_the_library(spark: Any, tmp_path: Path, n_shards: int) -> None:
    tables = (nasty_subscriptions(11, 500), nasty_messages(12, 900))
    assert_spark_equals_the_library(spark, tmp_path, tables, n_shards)


@pytest.mark.parametrize("n_shards", [2, 7])
def test_ranked_ones_on_spark_equal_the_library(spark: Any, tmp_path: Path, n_shards: int) -> None:
    tables = (ranked_subscriptions(n_shards, 300), nasty_messages(14, 500))
    assert_spark_equals_the_library(spark, tmp_path, tables, n_shards, "auto")


@pytest.mark.data
@pytest.mark.parametrize("n_shards", [1, 2, 7, 32])
@pytest.mark.parametrize("name", ["osm_notes", "geonames_cities500"])
def test_real_data_on_spark_equal_the_library(
    spark: Any, large_data: Path, tmp_path: Path, name: str, n_shards: int
) -> None:
    messages = read_real(large_data, name).slice(0, 20_000)
    assert_spark_equals_the_library(spark, tmp_path, (drawn(messages, 5_000, (0.01, 2.0)), messages), n_shards)


@pytest.mark.data
def test_ranked_ones_over_real_data_on_spark_equal_the_library(spark: Any, large_data: Path, tmp_path: Path) -> None:
    messages = read_real(large_data, "geonames_cities500").slice(0, 10_000)
    assert_spark_equals_the_library(spark, tmp_path, real_tables(messages, 3_000), 7, "auto")


@pytest.mark.parametrize("most_here", [1_000, 40])
def test_the_first_row_of_an_id_stands_and_the_others_are_rejected(
    spark: Any, tmp_path: Path, monkeypatch: Any, most_here: int
) -> None:
    """Also over tasks, and whether the driver or Spark compares the ids."""
    monkeypatch.setattr("nearcast.spark.batch.duplicate_ids.MOST_IDS_HERE", most_here)
    monkeypatch.setattr("nearcast.spark.batch.duplicate_ids._ROWS_PER_TASK", 16)
    table = nasty_subscriptions(5, 60)
    first = table.slice(0, 50)
    repeated = first.slice(0, 7).set_column(0, "id", first["id"].slice(40, 7))
    pq.write_table(pa.concat_tables([first, repeated, repeated]), tmp_path / "s.parquet", row_group_size=8)
    sharded = build_sharded(spark, str(tmp_path / "s.parquet"), str(tmp_path / "index"), shards=3)
    manifest = sharded.manifest
    assert manifest["subscriptions"] + manifest["never"] == 50 and manifest["rejected"] == 14
    rejects = pq.read_table(Path(sharded.path) / "rejects.parquet").to_pylist()
    ids = first["id"].to_pylist()
    assert [row["row"] for row in rejects] == [*range(51, 65)], "which rows of the table they are"
    assert rejects[0]["reason"] == f"id {ids[40]} is already in this table; ids must differ"
    messages = nasty_messages(6, 200)
    assert match_all_shards(sharded, messages).equals(nc.build_index(first, "brute").match(messages))
    assert not (Path(sharded.path) / "duplicates").exists()


def test_two_workers_share_one_copy_of_the_index(spark: Any, tmp_path: Path) -> None:
    messages = sample_messages()
    pq.write_table(subscriptions_table(messages, 20_000), tmp_path / "s.parquet")
    sharded = build_sharded(spark, str(tmp_path / "s.parquet"), str(tmp_path / "index"), shards=1, method="pyramid")
    assert sharded == open_sharded(tmp_path / "index")
    task = partial(
        shared_pages.report_pages, sharded, messages.slice(0, 50).select(["id", "text", "lon", "lat"]).to_pydict()
    )
    pages = {}
    for n_workers in (1, 2):
        rows = spark.range(0, n_workers, 1, n_workers).mapInArrow(task, shared_pages.SCHEMA, barrier=True).collect()
        assert len({row.process for row in rows}) == n_workers
        pages[n_workers] = [(row.resident, row.proportional) for row in rows]
    for resident, proportional in pages[2]:
        assert resident > sharded.nbytes / 2, "the index is in use"
        assert proportional < 0.6 * resident, "and half of it is the other's"
