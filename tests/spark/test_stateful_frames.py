"""Kinds whose results live on, as streaming DataFrames: after every micro-batch equal to brute force in one process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast import spark as ncs
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from unit.sharding.stateful_tables import by_subscription, messages_of, moving_tables, pieces, top_subscriptions

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="Spark's workers in plain Python take minutes")


def stream_of(spark: Any, folder: Path, batches: list[pa.Table]) -> Any:
    """A stream with one file for each micro-batch."""
    folder.mkdir()
    for k, batch in enumerate(batches):
        pq.write_table(batch, folder / f"{k}.parquet")
        (folder / f"{k}.parquet").touch()
        time.sleep(0.02)  # files are read in the order of their times
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run_batches(changes: Any, checkpoint: Path) -> list[pa.Table]:
    """The changes of each micro-batch, by `seq`."""
    found: dict[int, pa.Table] = {}

    def take(batch: Any, number: int) -> None:
        found[number] = batch.toArrow().sort_by("seq")

    writer = changes.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.foreachBatch(take).start().awaitTermination()
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("n_shards", [2, 7])
def test_a_stream_of_messages_changes_lists_as_topk_does(spark: Any, tmp_path: Path, n_shards: int) -> None:
    rng = np.random.default_rng(n_shards)
    subscriptions, batches = top_subscriptions(rng, 40), pieces(messages_of(rng, 90), 30)
    stream = stream_of(spark, tmp_path / "in", batches)
    changes = ncs.top(stream, subscriptions, window=20, state=tmp_path / "state", shards=n_shards)
    assert changes.isStreaming
    alone = nc.TopK(subscriptions, 20, method="brute")
    found = run_batches(changes, tmp_path / "checkpoint")
    assert len(found) == 3
    for each, batch in zip(found, batches, strict=True):
        assert by_subscription([each]) == by_subscription([alone.publish(batch)])


def test_a_query_that_starts_again_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    subscriptions, batches = top_subscriptions(rng, 20), pieces(messages_of(rng, 60), 20)
    alone = nc.TopK(subscriptions, 15, method="brute")
    wanted = [alone.publish(batch) for batch in batches]
    stream = stream_of(spark, tmp_path / "in", batches[:2])
    for k, batch in enumerate([None, batches[2]]):
        if batch is not None:
            pq.write_table(batch, tmp_path / "in" / "later.parquet")
        changes = ncs.top(stream, subscriptions, window=15, state=tmp_path / "state", shards=3)
        found = run_batches(changes, tmp_path / "checkpoint")
        assert by_subscription(found) == by_subscription(wanted[2:] if k else wanted[:2])


def test_messages_and_moves_of_a_micro_batch_are_one_step(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    subscriptions, messages = moving_tables(rng, 25), messages_of(rng, 40)
    moves = moving_tables(rng, 25).drop_columns(["expression"])
    moves = moves.append_column("time", messages["time"].slice(0, 25))
    places = stream_of(spark, tmp_path / "moves", [moves])
    stream = stream_of(spark, tmp_path / "in", [messages])
    changes = ncs.moving(stream, places, subscriptions, state=tmp_path / "state", shards=2)
    (found,) = run_batches(changes, tmp_path / "checkpoint")
    boxes = np.column_stack([moves[name].to_numpy() for name in ("xmin", "ymin", "xmax", "ymax")])
    now = max(messages["time"].to_pylist())
    wanted = nc.Moving(subscriptions, method="brute").step(now, messages, moves["id"].to_pylist(), boxes)
    assert by_subscription([found]) == by_subscription([wanted]) and wanted.num_rows


def test_bad_arguments_are_refused_before_anything_runs(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    subscriptions = top_subscriptions(rng, 5)
    messages = spark.createDataFrame(messages_of(rng, 5).to_pandas())
    for options, reason in [
        ({"window": 0}, "window is 0"),
        ({"window": 5, "shards": 0}, "shards=0 is a whole number"),
        ({"window": 5, "delay": 3}, "delay=3 is a timedelta"),
        ({"window": 5, "method": "best"}, "best"),
        ({"window": 5, "columns": {"body": "text"}}, "no 'body'"),
    ]:
        with pytest.raises(InvalidInput, match=reason):
            ncs.top(messages, subscriptions, state=tmp_path / "state", **options)
    with pytest.raises(InvalidInput, match="all streams, or all batch DataFrames"):
        stream = (
            spark.readStream.format("rate").load().selectExpr("value AS id", "0D AS x", "0D AS y", "timestamp AS time")
        )
        ncs.moving(messages, stream, moving_tables(rng, 3), state=tmp_path / "state")
    assert not list((tmp_path / "state").glob("shard-*"))
