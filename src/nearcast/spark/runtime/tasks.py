"""Runs numbered tasks on Spark. Each task reports Python values to the driver, or sends payloads to tasks that do."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from nearcast.sharding.payloads import ArrowPayload, pack_payload, payloads_by_shard
from nearcast.spark.runtime.session import DataFrame, SparkSession

REPORT_SQL = "report binary"
PAYLOAD_SQL = "partition int, shard int, content binary, note binary"


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


def _work(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for task in task_numbers(batches):
        yield from map(as_report, work(task))


def _send(send: Send, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for task in task_numbers(batches):
        for payload in send(task):
            yield from pack_payload(payload)


def _work_on_shards(work: ShardWork, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for shard, payloads in payloads_by_shard(batches).items():
        yield from map(as_report, work(shard, payloads))
