"""All measurements of `nearcast bench spark`, in one warm Spark session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.spark_runs.overheads import micro_batch_overhead_ms, task_overhead_ms
from nearcast.bench.spark_runs.rates import Data, against_join, against_library, warm_up, write_data
from nearcast.bench.spark_runs.worker_memory import memory_of_workers
from nearcast.bench.workloads.workload import Workload
from nearcast.spark.pipeline.stages import default_shards
from nearcast.spark.runtime.session import cores_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkBenchmark(NamedTuple):
    """What to measure, and where. `working` gives a context in which a named step runs, such as a progress bar."""

    session: SparkSession
    working: Callable[[str], AbstractContextManager[None]]
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
                result["library"] = against_library(self.session, data, shards, self.rounds)
            result |= self._overheads(data) if "overheads" in parts else {}
            result |= self._memory(data) if "memory" in parts else {}
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

    def _overheads(self, data: Data) -> dict[str, Any]:
        with self.working("overheads"):
            task_ms = task_overhead_ms(self.session)
            return {"task_ms": task_ms, "micro_batch": micro_batch_overhead_ms(self.session, data)}

    def _memory(self, data: Data) -> dict[str, Any]:
        counts = [n for n in (1, 2) if n <= cores_of(self.session)]
        with self.working("memory of workers"):
            index, folder = data.path("index"), str(data.folder)
            return {"memory": [memory_of_workers(self.session, index, folder, n) for n in counts]}
