"""Runs numbered tasks on Spark. Each task reports rows to the driver, or sends payloads to tasks that do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nearcast.spark.runtime.arrow_payload import (
    PAYLOAD_SCHEMA,
    ArrowPayload,
    one_row,
    pack_payload,
    payloads_by_shard,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Send = Callable[[int], Iterable[ArrowPayload]]
Work = Callable[[int], Iterable[Sequence[Any]]]
ShardWork = Callable[[int, list[ArrowPayload]], Iterable[Sequence[Any]]]
_SQL_TYPES = {pa.int32(): "int", pa.int64(): "long", pa.string(): "string", pa.binary(): "binary"}


def run_tasks(session: SparkSession, n_tasks: int, work: Work, schema: pa.Schema) -> list[Any]:
    """The rows that `work(task)` reports in each of `n_tasks` tasks."""
    tasks = session.range(0, n_tasks, 1, n_tasks)
    reports: list[Any] = tasks.mapInArrow(partial(_work, work, schema), sql_schema(schema)).collect()
    return reports


def send_payloads(session: SparkSession, n_tasks: int, send: Send, n_partitions: int) -> DataFrame:
    """The payloads that `send(task)` gives in each of `n_tasks` tasks, shuffled to their partitions."""
    sent = session.range(0, n_tasks, 1, n_tasks).mapInArrow(partial(_send, send), sql_schema(PAYLOAD_SCHEMA))
    return sent.repartitionById(n_partitions, sent["partition"])


def run_on_shards(sent: DataFrame, work: ShardWork, schema: pa.Schema) -> list[Any]:
    """The rows that `work(shard, payloads)` reports for each shard."""
    reports: list[Any] = sent.mapInArrow(partial(_work_on_shards, work, schema), sql_schema(schema)).collect()
    return reports


def sql_schema(schema: pa.Schema) -> str:
    """An Arrow schema as `mapInArrow` takes it."""
    return ", ".join(f"{field.name} {_SQL_TYPES[field.type]}" for field in schema)


def task_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The numbers of the tasks in a partition of `session.range`."""
    for batch in batches:
        yield from batch.column("id").to_pylist()


def _work(work: Work, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for task in task_numbers(batches):
        for values in work(task):
            yield one_row(schema, values)


def _send(send: Send, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for task in task_numbers(batches):
        for payload in send(task):
            yield from pack_payload(payload)


def _work_on_shards(work: ShardWork, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for shard, payloads in payloads_by_shard(batches).items():
        for values in work(shard, payloads):
            yield one_row(schema, values)
