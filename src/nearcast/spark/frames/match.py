"""Messages in a DataFrame -> their matches, or their rejects, in a DataFrame. Lazy, in batch and as a stream.

*replicated*: each task matches its rows against all shards, and nothing is shuffled. *sharded*: messages go to the
shards that they concern, many as one row (see runtime/tasks.py), and each task matches against the shards of its
partition.

Only DataFrame operations are used, so this works in any session, also through Spark Connect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import LONLAT
from nearcast.sharding.frame_match import (
    FRAME_REJECTS,
    FrameJob,
    count_rows,
    match_frames,
    match_routed,
    reject_frames,
    route_frames,
)
from nearcast.sharding.index_handle import IndexHandle, open_handle
from nearcast.sharding.layout import Layout, chosen_layout
from nearcast.sharding.match_shards import MESSAGE_COLUMNS
from nearcast.sharding.payloads import NO_SHARD, ArrowPayload, pack_payload, payloads_in
from nearcast.spark.frames.columns import MATCH_COLUMNS, Sent, select_columns
from nearcast.spark.runtime.daemon import freeze_once, prepare_worker
from nearcast.spark.runtime.session import DataFrame
from nearcast.spark.runtime.tasks import PAYLOAD_SQL
from nearcast.tables import Dialect, OnBad
from nearcast.tables.messages import read_message_columns
from nearcast.text.analyser import Analyser

Batches = Iterable[pa.RecordBatch]
DEFAULT_DIALECT = Dialect(Analyser(), LONLAT, "skip")
_ROWS_TO_ROUTE = 1 << 16  # at least, if a partition has so many: few rows would make small payloads for each shard


def match(
    messages: DataFrame,
    index: IndexHandle | str | os.PathLike[str],
    *,
    columns: Mapping[str, Any] | None = None,
    keep: Sequence[Any] = (),
    on_bad: OnBad = "skip",
    layout: Layout = "auto",
    metrics: Any = None,
) -> DataFrame:
    """All (message, subscription) pairs as a DataFrame, with `score` if the index has ranked subscriptions.

    The matches have the columns message, subscription, score, and those of `keep`. Every row is a message of its own:
    if an id occurs twice, in one batch or in two, the pairs of both rows are matches. Bad rows are skipped (`rejects`
    has them) or, with on_bad="raise", fail the job. `metrics` is a name or a pyspark.sql.Observation, under which Spark
    reports the numbers of good messages, rejects and matches, and the version of the index.
    """
    handle = as_handle(index)
    read = partial(read_message_columns, dialect=handle.dialect)
    sent = select_columns(messages, columns, keep, read, (*MESSAGE_COLUMNS, *handle.attributes))
    job = FrameJob(handle, sent.columns, check_on_bad(on_bad), metrics is not None)
    schema = matches_type(handle, sent.id_type(), sent.kept_fields())
    chosen = "replicated" if handle.n_shards == 1 else chosen_layout(handle.nbytes, layout)
    if chosen == "replicated":
        found = sent.frame.mapInArrow(Task("nearcast_match", partial(match_frames, job)), schema)
    else:
        found = _match_sharded(sent, job, schema)
    return found if metrics is None else _observed(found, handle, metrics)


def _observed(found: DataFrame, handle: IndexHandle, metrics: Any) -> DataFrame:
    """The matches without the rows of counts, which Spark sums up under the name `metrics`."""
    from pyspark.sql import functions as F

    is_match = F.col("message").isNotNull()
    count = F.when(~is_match, F.col("subscription")).cast("long")
    sums = {"messages": F.greatest(count, F.lit(0)), "rejects": F.greatest(-count, F.lit(0))}
    totals = [F.coalesce(F.sum(F.when(~is_match, n)), F.lit(0)).alias(name) for name, n in sums.items()]
    matches, version = F.count("message").alias("matches"), F.max(F.lit(handle.generation)).alias("index")
    return found.observe(metrics, *totals, matches, version).where(is_match)


def as_handle(index: Any) -> IndexHandle:
    if isinstance(index, IndexHandle):
        return index
    if isinstance(index, str | os.PathLike):
        return open_handle(index)
    given = type(index).__name__
    raise InvalidInput(f"Spark needs the path of an index, or what open_index returns, not {given}: index.save(path)")


def check_on_bad(on_bad: OnBad) -> OnBad:
    if on_bad not in ("raise", "skip"):
        raise InvalidInput(f"on_bad is 'raise' or 'skip', not {on_bad!r}")
    return on_bad


def matches_type(handle: IndexHandle, id_type: Any, kept: Sequence[Any]) -> Any:
    """The StructType of the matches."""
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    types = (id_type, StringType() if handle.has_names else LongType(), DoubleType())
    fields = [StructField(name, kind) for name, kind in zip(MATCH_COLUMNS, types, strict=True)]
    return StructType([*fields[: 3 if handle.is_scored else 2], *kept])


class Task:
    """Work on the batches of a task. Spark's plans show its name."""

    def __init__(self, name: str, work: Callable[[Batches], Iterator[pa.RecordBatch]]) -> None:
        self.__name__ = name
        self._work = work

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        try:
            yield from self._work(batches)
        finally:
            freeze_once()


# -- the sharded layout


def _match_sharded(sent: Sent, job: FrameJob, schema: Any) -> DataFrame:
    n_tasks = int(sent.frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    salts = max(1, n_tasks // job.handle.n_shards)  # partitions for each shard
    routed = sent.frame.mapInArrow(Task("nearcast_route", partial(_route, job, salts)), PAYLOAD_SQL)
    sent_on = _repartition(routed, job.handle.n_shards * salts)
    return sent_on.mapInArrow(Task("nearcast_match_shard", partial(_match_payloads, job)), schema)


def _repartition(routed: DataFrame, n_partitions: int) -> DataFrame:
    if hasattr(routed, "repartitionById"):
        return routed.repartitionById(n_partitions, "partition")
    return routed.repartition(n_partitions, "partition")  # PySpark 4.0: by hash, so some partitions get several shards


def _route(job: FrameJob, salts: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    first = 0 if context is None else context.partitionId()
    for k, batch in enumerate(_large_batches(batches)):
        by_shard, n_good = route_frames(job, batch)
        for shard, table in by_shard.items():
            partition = shard * salts + (first + k) % salts
            yield from pack_payload(ArrowPayload(partition, shard, table))
        if job.counts:
            counts = pa.Table.from_batches([count_rows(job, batch, n_good)])
            yield from pack_payload(ArrowPayload(0, NO_SHARD, counts))


def _large_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least _ROWS_TO_ROUTE rows, but for the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS_TO_ROUTE:
            yield from _joined(waiting)
            waiting = []
    yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """One batch, or more where a column has more than 2 GiB."""
    return pa.Table.from_batches(batches).combine_chunks().to_batches() if batches else []


def _match_payloads(job: FrameJob, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The matches of payloads, many at once of each shard."""
    waiting: dict[int, list[pa.Table]] = {}
    for payload in payloads_in(batches):
        if payload.shard == NO_SHARD:
            yield from payload.table.to_batches()
            continue
        tables = waiting.setdefault(payload.shard, [])
        tables.append(payload.table)
        if sum(table.num_rows for table in tables) >= _ROWS_TO_ROUTE:
            yield from match_routed(job, payload.shard, pa.concat_tables(waiting.pop(payload.shard)))
    for shard, tables in waiting.items():
        yield from match_routed(job, shard, pa.concat_tables(tables))


# -- bad rows


def rejects(
    messages: DataFrame,
    index: IndexHandle | str | os.PathLike[str] | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    keep: Sequence[Any] = (),
) -> DataFrame:
    """The rows that `match` skips: row (as JSON), column, value, reason, and the kept columns.

    `index` says how places and texts are read; without one, places are longitudes and latitudes.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    dialect = DEFAULT_DIALECT if index is None else as_handle(index).dialect
    sent = select_columns(messages, columns, keep, partial(read_message_columns, dialect=dialect))
    fields = [StructField(name, StringType()) for name in FRAME_REJECTS.names]
    work = partial(reject_frames, sent.columns, dialect)
    return sent.frame.mapInArrow(Task("nearcast_rejects", work), StructType([*fields, *sent.kept_fields()]))
