"""DataFrames in, DataFrames out: what the library finds, pair by pair, whatever the columns and shards."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast import spark as ncs
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.sharding.index_handle import IndexHandle
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.runtime.one_process import OneProcess
from spark.nasty_tables import nasty_messages, nasty_subscriptions
from spark.ranked_tables import ranked_subscriptions

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")
LAYOUTS = [(n, "replicated") for n in (0, 1, 2, 7)] + [(2, "sharded"), (7, "sharded")]
N_SUBSCRIPTIONS, N_MESSAGES = 300, 500


@functools.cache
def tables(kind: str) -> tuple[pa.Table, pa.Table]:
    draw = ranked_subscriptions if kind == "rank" else nasty_subscriptions
    return draw(11, N_SUBSCRIPTIONS), nasty_messages(12, N_MESSAGES)


@functools.cache
def index_of(kind: str, n_shards: int) -> IndexHandle:
    """A saved index: of the library for 0 shards, else a sharded one."""
    folder = Path(tempfile.mkdtemp(prefix="nearcast-frames-"))
    subscriptions, messages = tables(kind)
    if not n_shards:
        nc.build_index(subscriptions, "brute").save(folder / "index")
    else:
        pq.write_table(subscriptions, folder / "subscriptions.parquet")
        pq.write_table(messages, folder / "messages.parquet")
        build_sharded(
            OneProcess(),
            str(folder / "subscriptions.parquet"),
            str(folder / "index"),
            shards=n_shards,
            messages=str(folder / "messages.parquet"),
            method="brute",
        )
    return ncs.open_index(folder / "index")


@functools.cache
def wanted(kind: str) -> pa.Table:
    subscriptions, messages = tables(kind)
    return nc.build_index(subscriptions, "brute").match(messages)


def in_order(frame: Any) -> pa.Table:
    """The rows of a DataFrame of matches, sorted."""
    found = frame.toArrow()
    found = found.cast(pa.schema([pa.field(each.name, each.type) for each in found.schema]))
    return found.sort_by([("message", "ascending"), ("subscription", "ascending")])


def as_frame(spark: Any, table: pa.Table, parts: int = 3) -> Any:
    return spark.createDataFrame(table).repartition(parts)


# -- the library's answer


@pytest.mark.parametrize(("n_shards", "layout"), LAYOUTS)
@pytest.mark.parametrize("kind", ["match", "rank"])
def test_frames_find_what_the_library_finds(spark: Any, kind: str, n_shards: int, layout: str) -> None:
    index = index_of(kind, n_shards)
    found = in_order(ncs.match(as_frame(spark, tables(kind)[1]), index, layout=layout))
    assert found.equals(wanted(kind))
    assert ("score" in found.column_names) == (kind == "rank")


@pytest.mark.parametrize(("n_shards", "layout"), [(0, "auto"), (7, "replicated"), (7, "sharded")])
def test_kept_columns_and_repeated_string_ids_belong_to_their_rows(spark: Any, n_shards: int, layout: str) -> None:
    from pyspark.sql import functions as F

    frame = as_frame(spark, tables("match")[1])
    doubled = frame.withColumn("copy", F.explode(F.array(F.lit(1), F.lit(2))))
    doubled = doubled.withColumn("name", F.concat(F.lit("m"), "id")).withColumn(
        "deep", F.struct(F.col("id").alias("id"), F.array("x", "y").alias("place"))
    )
    matches = ncs.match(
        doubled, index_of("match", n_shards), columns={"id": "name"}, keep=["copy", "deep"], layout=layout
    )
    rows = matches.toArrow().to_pylist()
    pairs = {(f"m{row['message']}", row["subscription"]) for row in wanted("match").to_pylist()}
    assert {(row["message"], row["subscription"]) for row in rows} == pairs
    assert len(rows) == 2 * len(pairs), "each row is a message of its own"
    assert {(row["message"], row["subscription"], row["copy"]) for row in rows} == {
        (*pair, copy) for pair in pairs for copy in (1, 2)
    }
    assert all(f"m{row['deep']['id']}" == row["message"] and len(row["deep"]["place"]) == 2 for row in rows)
