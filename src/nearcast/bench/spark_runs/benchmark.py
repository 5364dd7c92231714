"""All measurements of `nearcast bench spark`, in one warm Spark session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.spark_runs.frames import against_frames
from nearcast.bench.spark_runs.processes import memory_of_workers
from nearcast.bench.spark_runs.rates import Data, against_join, against_library, build, seconds_of, warm_up, write_data
from nearcast.bench.workloads.workload import Workload
from nearcast.sharding.planning.capacity import default_shards
from nearcast.spark.pipeline import Working
from nearcast.spark.runtime.session import cores_of
from nearcast.spark.streaming.stream import run_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEW, _MANY = 4, 44  # tasks per core
_MICRO_BATCHES = 12
_MESSAGES = 50  # in each micro-batch: so few that matching them takes no time


class SparkBenchmark(NamedTuple):
    """What to measure, and where. `working` gives a context in which a named step runs, such as a progress bar."""

    session: SparkSession
    working: Working
    workload: Workload
    folder: Path
    shards: int | None  # None: by size and cores
    rounds: int

    def measure(self, parts: Sequence[str], join_sizes: Sequence[int], sizes: tuple[int, int]) -> dict[str, Any]:
        """The chosen parts. `sizes`: subscriptions and messages of the comparison with the library."""
        result: dict[str, Any] = {"format": "nearcast-bench-spark", "version": 1}
        result["workload"] = self.workload.parameters()
        with self.working("warming up"):
            warm_up(self.session, self.workload, self.folder / "warm-up", self.shards or 2)
        if "join" in parts:
            result["join"] = [self._join(size) for size in join_sizes]
        if set(parts) - {"join"}:
            data = self._data("library", *sizes)
            with self.working("against the library"):
                shards = self._shards_for(sizes[0])
                if "library" in parts:
                    result["library"] = against_library(self.session, data, shards, self.rounds)
                else:
                    build(self.session, data, shards)
            if "overheads" in parts:
                with self.working("overheads"):
                    result["task_ms"] = task_overhead_ms(self.session)
                    result["micro_batch"] = micro_batch_overhead_ms(self.session, data)
            if "frames" in parts:
                with self.working("through DataFrames"):
                    result["frames"] = against_frames(self.session, data, self.rounds)
            if "memory" in parts:
                with self.working("memory of workers"):
                    result["memory"] = self._memory(data)
        return result | {"surroundings": describe_environment() | {"pyspark": self.session.version}}

    def _shards_for(self, subscriptions: int) -> int:
        return self.shards or default_shards(subscriptions, cores_of(self.session))

    def _data(self, name: str, subscriptions: int, messages: int) -> Data:
        with self.working("drawing the workload"):
            return write_data(self.workload.but(subscriptions=subscriptions, messages=messages), self.folder / name)

    def _join(self, size: int) -> dict[str, Any]:
        data = self._data(f"join-{size}", size, size)
        with self.working(f"against the join, {size:,} x {size:,}"):
            return against_join(self.session, data, self._shards_for(size), self.rounds)

    def _memory(self, data: Data) -> list[dict[str, Any]]:
        counts = [n for n in (1, 2) if n <= cores_of(self.session)]
        return [memory_of_workers(self.session, data.path("index"), str(data.folder), n) for n in counts]


# -- overheads of Spark


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The smallest Python task. Workers import this module, so the function stays loaded between tasks."""
    yield from batches


def task_overhead_ms(session: SparkSession) -> float:
    """Milliseconds of one core for a Python task with one row: the slope between few tasks and many."""
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
    folder = data.folder / f"micro-{n_files}"
    shutil.rmtree(folder, ignore_errors=True)
    _write_files(data, folder / "incoming", n_files)
    paths = [str(folder / name) for name in ("incoming", "matches", "checkpoint")]
    return seconds_of(lambda: run_stream(session, data.path("index"), *paths, once=True, max_files=1))


def _write_files(data: Data, folder: Path, n_files: int) -> None:
    folder.mkdir(parents=True)
    table = pa.Table.from_batches([next(pq.ParquetFile(data.messages).iter_batches(n_files * _MESSAGES))])
    for k in range(n_files):
        pq.write_table(table.slice(k * _MESSAGES, _MESSAGES), folder / f"{k:03d}.parquet")
