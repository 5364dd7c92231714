"""The overheads of Spark: the time of a task that does nothing, and of a micro-batch of a few messages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.bench.spark_runs.rates import Data, empty_folder, seconds_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEW, _MANY = 4, 44  # tasks per core
_MICRO_BATCHES = 12
_MESSAGES = 50  # in each micro-batch: so few that matching them takes no time


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The smallest Python task. Workers import this module, so the function stays loaded between tasks."""
    yield from batches


def task_overhead_ms(session: SparkSession) -> float:
    """Milliseconds of one core for a Python task with one row: the slope between few tasks and many."""
    from nearcast.spark.runtime.session import cores_of

    cores = cores_of(session)

    def job(n_tasks: int) -> None:
        rows = session.range(0, n_tasks, 1, n_tasks).mapInArrow(identity, "id long")
        rows.write.format("noop").mode("overwrite").save()

    job(cores)
    few, many = (min(seconds_of(partial(job, n * cores)) for _ in range(3)) for n in (_FEW, _MANY))
    return 1e3 * (many - few) / (_MANY - _FEW)


def micro_batch_overhead_ms(session: SparkSession, data: Data) -> dict[str, Any]:
    """Milliseconds of a micro-batch of one small file: the slope between few files and many."""
    few, many = (_stream_seconds(session, data, n) for n in (2, 2 + _MICRO_BATCHES))
    return {"messages": _MESSAGES, "first_seconds": few, "ms": 1e3 * (many - few) / _MICRO_BATCHES}


def _stream_seconds(session: SparkSession, data: Data, n_files: int) -> float:
    from nearcast.spark.streaming.stream import run_stream

    folder = empty_folder(data.folder / f"micro-{n_files}")
    _write_files(data, folder / "incoming", n_files)
    paths = [str(folder / name) for name in ("incoming", "matches", "checkpoint")]
    return seconds_of(lambda: run_stream(session, data.path("index"), *paths, once=True, max_files=1))


def _write_files(data: Data, folder: Path, n_files: int) -> None:
    folder.mkdir()
    table = pa.Table.from_batches([next(pq.ParquetFile(data.messages).iter_batches(n_files * _MESSAGES))])
    for k in range(n_files):
        pq.write_table(table.slice(k * _MESSAGES, _MESSAGES), folder / f"{k:03d}.parquet")
