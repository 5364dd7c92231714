"""Streaming DataFrames: the same call on a stream, whatever the source, the sink and the size of the micro-batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, functions

import nearcast as nc
from nearcast import spark as ncs
from nearcast.arrays.jit import JIT_DISABLED
from spark.test_frames import LAYOUTS, in_order, index_of, needs_udtf, pizza_index, tables, wanted

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")

KINDS = ("match", "rank")


def streamed_messages(spark: Any, folder: Path, kind: str, n_files: int) -> Any:
    """A stream of files, one for each micro-batch."""
    folder.mkdir()
    messages = tables(kind)[1]
    size = -(-messages.num_rows // n_files)
    for k in range(n_files):
        pq.write_table(messages.slice(k * size, size), folder / f"{k}.parquet")
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run_to_end(matches: Any, checkpoint: Path, **sink: Any) -> Any:
    writer = matches.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    if "batch" in sink:
        query = writer.foreachBatch(sink["batch"]).start()
    elif "path" in sink:
        query = writer.format("parquet").start(sink["path"])
    else:
        query = writer.format("memory").queryName(sink["name"]).start()
    query.awaitTermination()
    return query


@pytest.mark.parametrize(
    ("kind", "n_shards", "layout", "n_files"),
    [("match", 0, "auto", 1), ("rank", 7, "sharded", 3), ("match", 2, "sharded", 2), ("rank", 1, "replicated", 2)],
)
def test_files_into_memory_and_parquet(
    spark: Any, tmp_path: Path, kind: str, n_shards: int, layout: str, n_files: int
) -> None:
    messages = streamed_messages(spark, tmp_path / "in", kind, n_files)
    matches = ncs.match(messages, index_of(kind, n_shards), layout=layout, metrics=f"found_{kind}")
    assert matches.isStreaming
    query = run_to_end(matches, tmp_path / "memory", name=f"frames_{kind}")
    assert in_order(spark.table(f"frames_{kind}")).equals(wanted(kind))
    observed = [each.observedMetrics[f"found_{kind}"] for each in query.recentProgress if each.observedMetrics]
    assert sum(row["messages"] for row in observed) == tables(kind)[1].num_rows
    assert sum(row["matches"] for row in observed) == wanted(kind).num_rows
    run_to_end(matches, tmp_path / "checkpoint", path=str(tmp_path / "out"))
    assert in_order(spark.read.parquet(str(tmp_path / "out"))).equals(wanted(kind))


def test_every_micro_batch_equals_the_engine_and_brute_force_in_every_layout(spark: Any, tmp_path: Path) -> None:
    """In foreachBatch, as someone would write it who wants the newest index for each batch."""
    messages = streamed_messages(spark, tmp_path / "in", "match", 2)
    engines = {kind: [nc.build_index(tables(kind)[0], method) for method in ("auto", "brute")] for kind in KINDS}
    n_pairs = []

    def match_batch(batch: Any, number: int) -> None:
        table = batch.toArrow().sort_by("id")
        for kind in KINDS:
            ours, brute = (index.match(table) for index in engines[kind])
            assert ours.equals(brute)
            for n_shards, layout in LAYOUTS:
                found = in_order(ncs.match(batch, index_of(kind, n_shards), layout=layout))
                assert found.equals(brute), (number, kind, n_shards, layout)
                n_pairs.append(found.num_rows)

    assert run_to_end(messages, tmp_path / "checkpoint", batch=match_batch).exception() is None
    assert len(n_pairs) == 2 * len(KINDS) * len(LAYOUTS) and min(n_pairs) > 0


def test_an_id_that_comes_again_is_matched_again(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    row = pa.table({"id": [5], "text": ["pizza deal"], "x": [1.0], "y": [2.0]})
    pq.write_table(pa.concat_tables([row, row]), folder / "a.parquet")
    pq.write_table(row, folder / "b.parquet")
    schema = spark.read.parquet(str(folder)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    run_to_end(ncs.match(stream, pizza_index()), tmp_path / "one", name="frames_repeats")
    rows = [tuple(row) for row in spark.table("frames_repeats").orderBy("subscription").collect()]
    assert rows == [(5, 1)] * 3 + [(5, 2)] * 3, "in one batch or in two: each row is a message of its own"
    once = ncs.match(stream.dropDuplicates(["id"]), pizza_index())
    run_to_end(once, tmp_path / "two", name="frames_once")
    assert sorted(tuple(row) for row in spark.table("frames_once").collect()) == [(5, 1), (5, 2)]


def test_a_stream_of_rates(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 7).load()
    place = [F.lit(1.0).alias("x"), F.lit(2.0).alias("y")]
    texts = F.when(F.col("value") % 2 == 0, F.lit("Pizza deal")).otherwise(F.lit("pasta"))
    messages = rates.select(F.col("value").alias("id"), texts.alias("text"), *place, "timestamp")
    matches = ncs.match(messages, pizza_index(), keep=["timestamp"])
    query = matches.writeStream.format("memory").queryName("frames_rates").start()
    try:
        while not query.lastProgress or query.lastProgress.batchId < 2:
            query.processAllAvailable() if query.exception() else query.awaitTermination(0.2)
    finally:
        query.stop()
    found = {(row.message, row.subscription) for row in spark.table("frames_rates").collect()}
    ids = range(1 + max(message for message, _ in found))
    assert len(ids) >= 14
    assert found == {(k, 2) for k in ids} | {(k, 1) for k in ids if k % 2 == 0}


def test_a_stream_from_memory(spark: Any, tmp_path: Path) -> None:
    source, add = stream_in_memory(spark)
    texts = source.select(functions.from_json("value", NOTE).alias("note")).select("note.*")
    matches = ncs.match(texts, pizza_index(), columns={"id": "key", "text": "body"}, keep=["city"])
    query = matches.writeStream.format("memory").queryName("frames_memory").start()
    try:
        wanted = set()
        for k, city in enumerate(("Rome", "Bonn")):
            add(f'{{"key": {k}, "body": "Pizza deal", "lon": 1, "lat": 2, "city": "{city}"}}')
            add(f'{{"key": {k + 10}, "body": null, "lon": 1, "lat": 2, "city": "{city}"}}', '{"key": null}')
            query.processAllAvailable()
            wanted |= {(k, 1, city), (k, 2, city), (k + 10, 2, city)}
            assert {tuple(row) for row in spark.table("frames_memory").collect()} == wanted
    finally:
        query.stop()


NOTE = "key long, body string, lon double, lat double, city string"


def stream_in_memory(spark: Any) -> tuple[Any, Callable[..., None]]:
    """(Spark's stream of strings for tests, a function that adds some): PySpark itself has no name for it."""
    jvm = spark._jvm
    package = jvm.org.apache.spark.sql.execution.streaming
    encoder = jvm.org.apache.spark.sql.Encoders.STRING()
    if version_info(spark.version) < (4, 1):
        stream = package.MemoryStream.apply(encoder, spark._jsparkSession.sqlContext())
    else:
        stream = package.runtime.MemoryStream.apply(encoder, spark._jsparkSession)
    return DataFrame(stream.toDF(), spark), lambda *texts: stream.addData(jvm.PythonUtils.toSeq(list(texts)))


def version_info(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


@needs_udtf
def test_sql_on_a_stream(spark: Any, tmp_path: Path) -> None:
    streamed_messages(spark, tmp_path / "in", "match", 2).createOrReplaceTempView("frames_stream")
    ncs.register(spark, index_of("match", 2), "frames_stream_match")
    matches = spark.sql("SELECT * FROM frames_stream_match(TABLE(frames_stream))")
    run_to_end(matches, tmp_path / "checkpoint", name="frames_sql_stream")
    assert in_order(spark.table("frames_sql_stream")).equals(wanted("match"))
