"""Runs numbered tasks on Spark. Each task reports Python values to the driver, or sends payloads to tasks that do.

An ArrowPayload moves a whole table through a shuffle as one row, one for each (batch, shard) instead of one for each
message. Nothing is converted to Spark's own rows and back, and column types that Spark lacks pass unchanged.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.ingest.brokers.values import as_arrow_stream
from nearcast.spark.runtime.session import DataFrame, SparkSession

NO_SHARD = -1
"""In place of a shard: the payload holds rejects and counts."""
REPORT_SQL = "report binary"
PAYLOAD_SQL = "partition int, shard int, content binary, note binary"
_PAYLOAD_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("shard", pa.int32()), ("content", pa.binary()), ("note", pa.binary())]
)
_MOST_BYTES = 8 << 20  # of one row: Spark keeps several rows in memory


class ArrowPayload(NamedTuple):
    """A table on its way to a partition, with a note. A table that is cut has its note on the first piece."""

    partition: int
    shard: int
    table: pa.Table
    note: bytes = b""


Send = Callable[[int], Iterable[ArrowPayload]]
Work = Callable[[int], Iterable[Any]]
ShardWork = Callable[[int, list[ArrowPayload]], Iterable[Any]]


def run_tasks(session: SparkSession, n_tasks: int, work: Work) -> list[Any]:
    """The reports of `work(task)` in each of `n_tasks` tasks."""
    return collect_reports(session.range(0, n_tasks, 1, n_tasks).mapInArrow(partial(_work, work), REPORT_SQL))


def map_on_spark(session: SparkSession, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The results of `work(item)`, each in a task of its own."""
    return session.sparkContext.parallelize(items, len(items)).map(work).collect() if items else []


def send_payloads(session: SparkSession, n_tasks: int, send: Send, n_partitions: int) -> DataFrame:
    """The payloads that `send(task)` gives in each of `n_tasks` tasks, shuffled to their partitions."""
    sent = session.range(0, n_tasks, 1, n_tasks).mapInArrow(partial(_send, send), PAYLOAD_SQL)
    return sent.repartitionById(n_partitions, sent["partition"])


def run_on_shards(sent: DataFrame, work: ShardWork) -> list[Any]:
    """The reports of `work(shard, payloads)` for each shard."""
    return collect_reports(sent.mapInArrow(partial(_work_on_shards, work), REPORT_SQL))


def collect_reports(reports: DataFrame) -> list[Any]:
    return [pickle.loads(row["report"]) for row in reports.collect()]


def as_report(value: Any) -> pa.RecordBatch:
    """A row of REPORT_SQL."""
    return pa.record_batch([pa.array([pickle.dumps(value)], pa.binary())], names=["report"])


def report_once(
    work: Callable[[Iterable[pa.RecordBatch]], Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The task of mapInArrow whose only row is the report of `work`."""
    yield as_report(work(batches))


def task_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The numbers of the tasks in a partition of `session.range`."""
    for batch in batches:
        yield from batch.column("id").to_pylist()


def join_tables(payloads: Sequence[ArrowPayload]) -> pa.Table:
    """The tables of some payloads as one; columns that a table lacks are null."""
    return pa.concat_tables([payload.table for payload in payloads], promote_options="permissive")


def _work(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for task in task_numbers(batches):
        yield from map(as_report, work(task))


def _send(send: Send, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for task in task_numbers(batches):
        for payload in send(task):
            yield from pack_payload(payload)


def _work_on_shards(work: ShardWork, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for shard, payloads in _payloads_by_shard(batches).items():
        yield from map(as_report, work(shard, payloads))


def pack_payload(payload: ArrowPayload) -> Iterator[pa.RecordBatch]:
    """A payload as batches of one row; a large table is cut into several rows."""
    n_pieces = max(1, -(-payload.table.nbytes // _MOST_BYTES))
    edges = np.linspace(0, payload.table.num_rows, n_pieces + 1).astype(int)
    for k in range(n_pieces):
        content = as_arrow_stream(payload.table.slice(edges[k], edges[k + 1] - edges[k]))
        values = (payload.partition, payload.shard, content, payload.note if k == 0 else b"")
        yield pa.record_batch([[value] for value in values], schema=_PAYLOAD_SCHEMA)


def payloads_in(batches: Iterable[pa.RecordBatch]) -> Iterator[ArrowPayload]:
    """The payloads in rows that `pack_payload` made."""
    for batch in batches:
        for k in range(batch.num_rows):
            partition, shard, content, note = (batch.column(name)[k] for name in _PAYLOAD_SCHEMA.names)
            with pa.ipc.open_stream(content.as_buffer()) as source:
                yield ArrowPayload(partition.as_py(), shard.as_py(), source.read_all(), note.as_py())


def _payloads_by_shard(batches: Iterable[pa.RecordBatch]) -> dict[int, list[ArrowPayload]]:
    """The payloads of each shard, ascending. A partition has one shard unless Spark merged partitions."""
    found: dict[int, list[ArrowPayload]] = {}
    for payload in payloads_in(batches):
        found.setdefault(payload.shard, []).append(payload)
    return dict(sorted(found.items()))
