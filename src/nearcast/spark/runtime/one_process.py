"""A substitute for a Spark session that runs the tasks one after another in this process.

Partitions, their numbers and their order are the same as with Spark, and hundreds of small runs cost as much as one
Spark job. `nearcast warmup` and tests use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Frame:
    def __init__(self, partitions: list[list[pa.RecordBatch]]) -> None:
        self.partitions = partitions

    def mapInArrow(self, task: Task, schema: str) -> Frame:
        return Frame([list(task(iter(batches))) for batches in self.partitions])

    def __getitem__(self, name: str) -> str:
        return name

    def repartitionById(self, n: int, column: str) -> Frame:
        parts: list[list[pa.RecordBatch]] = [[] for _ in range(n)]
        for batch in (batch for batches in self.partitions for batch in batches):
            for k in range(batch.num_rows):
                parts[batch.column(column)[k].as_py() % n].append(batch.slice(k, 1))
        return Frame(parts)

    def collect(self) -> list[dict[str, Any]]:
        return [row for batches in self.partitions for batch in batches for row in batch.to_pylist()]


class OneProcess:
    """Takes the place of a SparkSession in `build_sharded` and `match_batch`."""

    sparkContext = SimpleNamespace(defaultParallelism=2)

    def range(self, first: int, stop: int, step: int, n_partitions: int) -> Frame:
        return Frame([[pa.record_batch({"id": pa.array([k])})] for k in range(first, stop)])
