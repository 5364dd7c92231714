"""Throughput of the pipeline on Spark, compared with a plain SQL join and with the library.

The session is started and warmed up before the measurement. Everything from Parquet to Parquet is timed.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nearcast.bench.spark_runs.processes import cpu_seconds
from nearcast.bench.workloads.corpus import SyntheticCorpus
from nearcast.bench.workloads.tables import write_workload
from nearcast.bench.workloads.workload import Workload
from nearcast.engine.index import build_index
from nearcast.errors import NearcastError
from nearcast.geo.space import BOX_COLUMNS
from nearcast.sharding.layout import Layout
from nearcast.sharding.planning.capacity import Constants, us_per_message
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch
from nearcast.spark.runtime.session import cores_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP = "short-point"
LAYOUTS: tuple[Layout, ...] = ("replicated", "sharded")
_BATCH = 65_536  # messages per call of the library: as many as a task of Spark gets
_LIBRARY_MESSAGES = 500_000  # enough for a rate
_WARM_UP = 2_000
SPACE = (0.0, 0.0, 1.0, 1.0)
_PAIRS = pa.schema([("message", pa.int64()), ("subscription", pa.int64())])


class Data(NamedTuple):
    """A workload on disk, in a folder that also takes the outputs."""

    folder: Path
    subscriptions: str
    messages: str
    n_subscriptions: int
    n_messages: int

    def path(self, name: str) -> str:
        return os.fspath(self.folder / name)


def write_data(workload: Workload, folder: Path) -> Data:
    """Write the subscriptions and short point messages of a workload."""
    chosen = workload.but(groups=[GROUP])
    write_workload(SyntheticCorpus(chosen), chosen, folder)
    files = (folder / "subscriptions.parquet", folder / f"messages-{GROUP}.parquet")
    return Data(folder, str(files[0]), str(files[1]), chosen.subscriptions, chosen.messages)


def warm_up(session: SparkSession, workload: Workload, folder: Path, shards: int) -> None:
    """Run the join and the pipeline once on a small workload: Java compiles, workers start, kernels load."""
    small = write_data(workload.but(subscriptions=_WARM_UP, messages=_WARM_UP), folder)
    plain_join(session, small.subscriptions, small.messages, small.path("joined"))
    build(session, small, shards)
    for layout in LAYOUTS:
        match(session, small, layout)


def build(session: SparkSession, data: Data, shards: int) -> float:
    """Seconds to build the sharded index."""
    options: dict[str, Any] = {"shards": shards, "messages": data.messages, "space": SPACE}
    return seconds_of(lambda: build_sharded(session, data.subscriptions, data.path("index"), **options))


def match(session: SparkSession, data: Data, layout: Layout) -> float:
    """Seconds to match all messages."""
    out = data.path(f"matches-{layout}")
    return seconds_of(lambda: match_batch(session, data.path("index"), data.messages, out, layout=layout))


def against_join(session: SparkSession, data: Data, shards: int, rounds: int) -> dict[str, Any]:
    """Time of the pipeline (build and match) and of the join, in turns. Both must find the same pairs."""
    jobs: dict[str, Callable[[], Any]] = {
        "build": lambda: build(session, data, shards),
        "match": lambda: match(session, data, "auto"),
        "join": lambda: plain_join(session, data.subscriptions, data.messages, data.path("joined")),
    }
    spent = {name: median_of(times) for name, times in in_turns(jobs, rounds).items()}
    pairs = _require_same(data.path("matches-auto"), data.path("joined"))
    found: dict[str, Any] = {"subscriptions": data.n_subscriptions, "messages": data.n_messages, "pairs": pairs}
    for name, time_spent in spent.items():
        found |= {f"{name}_seconds": time_spent.seconds, f"{name}_cpu_seconds": time_spent.cpu}
    found["ratio"] = spent["join"].seconds / (spent["build"].seconds + spent["match"].seconds)
    found["cpu_ratio"] = _over(spent["join"].cpu, _sum(spent["build"].cpu, spent["match"].cpu))
    return found


def against_library(session: SparkSession, data: Data, shards: int, rounds: int) -> dict[str, Any]:
    """Messages per second and core, and CPU of a message, of the library in one thread and of Spark on all cores.

    Where other processes run on the cores, only the CPU times are to be compared.
    """
    cores = cores_of(session)
    build_seconds = build(session, data, shards)
    n_library = min(data.n_messages, _LIBRARY_MESSAGES)
    jobs: dict[str, Callable[[], Any]] = {"library": _library_job(data, n_library)}
    jobs |= {layout: partial(match, session, data, layout) for layout in LAYOUTS}
    spent = {name: median_of(times) for name, times in in_turns(jobs, rounds).items()}
    library, library_cpu = n_library / spent["library"].seconds, _us_each(spent["library"].cpu, n_library)
    measured: dict[str, Any] = {
        "subscriptions": data.n_subscriptions,
        "messages": data.n_messages,
        "cores": cores,
        "shards": shards,
        "build_seconds": build_seconds,
        "library_messages": n_library,
        "library_per_core_per_second": library,
        "library_cpu_us_per_message": library_cpu,
    }
    for layout in LAYOUTS:
        rate = data.n_messages / spent[layout].seconds / cores
        cpu = _us_each(spent[layout].cpu, data.n_messages)
        measured[f"{layout}_per_core_per_second"] = rate
        measured[f"{layout}_share_of_library"] = rate / library
        measured[f"{layout}_cpu_us_per_message"] = cpu
        measured[f"{layout}_cpu_share_of_library"] = _over(library_cpu, cpu)
        k = _n_pairs(data.path(f"matches-{layout}")) / data.n_messages
        measured[f"{layout}_model_us_per_message"] = us_per_message(
            data.n_subscriptions / shards, k, layout == "sharded", Constants()
        )
    return measured | {"matches_per_message": k}


def _us_each(seconds: float | None, n: int) -> float | None:
    return None if seconds is None else 1e6 * seconds / n


def _sum(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


def _over(above: float | None, below: float | None) -> float | None:
    """The quotient; None if a time is not known, or too short to be counted."""
    return above / below if above is not None and below else None


def _n_pairs(folder: str) -> int:
    return sum(pq.read_metadata(file).num_rows for file in Path(folder).glob("*.parquet"))


def _library_job(data: Data, n: int) -> Callable[[], None]:
    """Match the first n messages from Parquet to Parquet."""
    index = build_index(data.subscriptions, space=SPACE)

    def once() -> None:
        with pq.ParquetWriter(data.path("library.parquet"), _PAIRS) as writer:
            for table in _tables(data.messages, n):
                writer.write_table(index.match(table))

    return once


def _tables(path: str, n: int) -> Iterator[pa.Table]:
    for batch in pq.ParquetFile(path).iter_batches(_BATCH):
        if n <= 0:
            return
        yield pa.Table.from_batches([batch]).slice(0, n)
        n -= batch.num_rows


def _require_same(ours: str, theirs: str) -> int:
    """The number of pairs; NearcastError if the two folders contain different pairs."""
    order = [(name, "ascending") for name in _PAIRS.names]
    tables = [pq.read_table(path, columns=_PAIRS.names).sort_by(order) for path in (ours, theirs)]
    if not tables[0].equals(tables[1]):
        raise NearcastError(
            f"Spark's join and nearcast found different pairs: {tables[1].num_rows:,} and {tables[0].num_rows:,}"
        )
    return int(tables[0].num_rows)


def seconds_of(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


class Spent(NamedTuple):
    """The time that a job took."""

    seconds: float
    cpu: float | None  # seconds of all processes; None where it is not known


def in_turns(jobs: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[Spent]]:
    """What each job took, round by round. The jobs take turns, so that what else runs meets all of them."""
    found: dict[str, list[Spent]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            before = cpu_seconds()
            seconds = seconds_of(job)
            after = cpu_seconds()
            found[name].append(Spent(seconds, None if before is None or after is None else after - before))
    return found


def median_of(times: Sequence[Spent]) -> Spent:
    cpu = [each.cpu for each in times if each.cpu is not None]
    return Spent(statistics.median(each.seconds for each in times), statistics.median(cpu) if cpu else None)


# -- the competitor


def plain_join(session: SparkSession, subscriptions: str, messages: str, out: str) -> None:
    """The join that one would write in plain Spark SQL: subscriptions (tokens and a box), messages (tokens at a point).

    Subscriptions are keyed by their rarest token and messages are exploded into tokens. Both are joined on the token;
    the joined rows are filtered by box and by the other tokens.

    Messages are spread over the cores first: a file of less than 128 MB would be one task. A hint forces a sort-merge
    join: with Spark's own choice, a broadcast join, 150,000 x 150,000 took 98 s instead of 27.
    """
    wanted, sent = session.read.parquet(subscriptions), session.read.parquet(messages)
    sent = sent.repartition(2 * max(1, int(session.sparkContext.defaultParallelism)))
    _joined(_keyed_by_rarest(wanted, sent), sent).write.mode("overwrite").parquet(out)


def _keyed_by_rarest(subscriptions: DataFrame, messages: DataFrame) -> DataFrame:
    """The columns id, token (the one that the fewest messages contain), subscription (tokens and box)."""
    from pyspark.sql import functions as F

    counts = messages.select(F.explode("tokens").alias("token")).groupBy("token").count()
    exploded = subscriptions.select("id", "tokens", *BOX_COLUMNS, F.explode("tokens").alias("token"))
    counted = exploded.join(counts, "token", "left").withColumn("count", F.coalesce("count", F.lit(0)))
    rarest = F.min_by(F.struct("token", "tokens", *BOX_COLUMNS), "count").alias("subscription")
    return counted.groupBy("id").agg(rarest).withColumn("token", F.col("subscription.token"))


def _joined(subscriptions: DataFrame, messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    sent = messages.select(
        F.col("id").alias("message"), "x", "y", "tokens", F.explode(F.array_distinct("tokens")).alias("token")
    )
    s = "subscription"
    inside = F.col("x").between(F.col(f"{s}.xmin"), F.col(f"{s}.xmax"))
    inside &= F.col("y").between(F.col(f"{s}.ymin"), F.col(f"{s}.ymax"))
    rest = F.size(F.array_except(F.col(f"{s}.tokens"), F.col("tokens"))) == 0
    return sent.join(subscriptions.hint("merge"), "token").where(inside & rest).select("message", F.col("id").alias(s))
