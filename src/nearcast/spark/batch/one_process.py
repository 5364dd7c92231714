"""The batch jobs in this process, without Spark: a substitute for its session, and `nearcast warmup` by means of it.

Partitions, their numbers and their order are the same as with Spark, and hundreds of small runs cost as much as one
Spark job. Warming up compiles the kernels that only the pipeline uses: routing, shard plans, and merging the results of
shards.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch

PART = "pipeline"
_N = 60
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


# -- warming up


def is_installed() -> bool:
    """Whether PySpark is installed, without which nobody needs these kernels."""
    return find_spec("pyspark") is not None


def warm_up_pipeline() -> None:
    """Build small indexes with and without ranked subscriptions, and match in both layouts, in this process."""
    session = cast("Any", OneProcess())
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: os.path.join(folder, name) for name in ("subscriptions", "messages", "index", "matches")}
        pq.write_table(_messages(), paths["messages"])
        for ranked in (False, True):
            pq.write_table(_subscriptions(ranked), paths["subscriptions"])
            sources = (paths["subscriptions"], paths["index"])
            build_sharded(session, *sources, shards=3, messages=paths["messages"], method="brute")
            for layout in ("replicated", "sharded"):
                match_batch(session, paths["index"], paths["messages"], str(Path(folder) / layout), layout=layout)


def _messages() -> pa.Table:
    """Messages, most of them at one spot, which is then divided by text."""
    x = np.where(np.arange(_N) % 4, 0.0, np.arange(_N))
    return pa.table({"id": np.arange(_N), "text": [f"w{k % 5} all" for k in range(_N)], "x": x, "y": x / 2})


def _subscriptions(ranked: bool) -> pa.Table:
    x = np.arange(_N) / 2.0
    boxes = {"xmin": -x, "ymin": -x, "xmax": x, "ymax": x}
    kinds = ["rank" if ranked and k % 2 else "match" for k in range(_N)]
    rank_columns = {"kind": kinds, "alpha": x / _N, "threshold": x / _N + 0.4}
    return pa.table(
        {"id": np.arange(_N), "tokens": [[f"w{k % 5}", "all"][: k % 3] for k in range(_N)], **boxes, **rank_columns}
    )
