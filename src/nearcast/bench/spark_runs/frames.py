"""CPU time of a message through DataFrames, through the file path and in the library, in turns in one run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast import spark as ncs
from nearcast.arrays.jit.mode import compile_now
from nearcast.bench.spark_runs.processes import cpu_seconds
from nearcast.bench.spark_runs.rates import SPACE, Data, in_turns, median_of
from nearcast.engine.index import Index, build_index
from nearcast.errors import NearcastError
from nearcast.spark.batch.match import match_batch
from nearcast.spark.runtime.failures import failure_reason
from nearcast.spark.runtime.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 65_536
_ROW_GROUP = 65_536
_FEW, _MANY = 20, 220  # null tasks
TEXTS, WARM_UP = "text.parquet", "warm-up.parquet"
_WARM_UP_MESSAGES = 500_000
_OUT, _FILES_OUT, _LIBRARY_OUT = "frames-out", "frames-files", "library-out.parquet"
Job = Callable[[], Any]


def against_frames(session: SparkSession, data: Data, rounds: int) -> dict[str, Any]:
    """Microseconds of CPU over all processes for a message, by path, and what a session of others costs."""
    write_texts(data)
    index = build_index(data.subscriptions, space=SPACE)

    def jobs(texts: str) -> dict[str, Job]:
        found = library_jobs(index, data, texts) | file_jobs(session, data, texts)
        return found | frame_jobs(session, data.path("index"), data.path(texts))

    warm_up(jobs(WARM_UP))
    measured: dict[str, Any] = {"classic": cpu_of_each(jobs(TEXTS), data.n_messages, rounds)}
    require_same_pairs(session, data)
    for mode in ("classic", "connect"):
        measured[f"foreign {mode}"] = _in_own_process(mode, data, rounds)
    about = {"subscriptions": data.n_subscriptions, "messages": data.n_messages, "rounds": rounds}
    return {**about, **measured, "ratios": _ratios(measured)}


def _ratios(measured: dict[str, Any]) -> dict[str, float]:
    """The figures that the goals are about: CPU of a path over that of the library; the file path is the inverse."""
    ours = measured["classic"]
    found = {"library / file path, Parquet to Parquet": ours["library, to Parquet"] / ours["file path"]}
    sessions = {mode: measured[f"foreign {mode}"] for mode in ("classic", "connect")}
    foreign = {mode: each["cpu_us_per_message"] for mode, each in sessions.items() if "failed" not in each}
    for mode, figures in {"own": ours, **foreign}.items():
        for path in ("frames, noop", "SQL, noop"):
            for library in ("library, memory", "library, from Parquet"):
                found[f"{mode} session, {path} / {library}"] = figures[path] / ours[library]
    return found


def write_texts(data: Data) -> None:
    """The messages with a text in place of the list of tokens, and the first of them to warm up."""
    table = pq.read_table(data.messages)
    texts = pc.binary_join(table["tokens"].combine_chunks(), " ").cast(pa.string())
    table = table.drop_columns(["tokens"]).append_column("text", texts)
    pq.write_table(table, data.path(TEXTS), row_group_size=_ROW_GROUP)
    pq.write_table(table.slice(0, _WARM_UP_MESSAGES), data.path(WARM_UP), row_group_size=_ROW_GROUP)


def warm_up(jobs: dict[str, Job]) -> None:
    """Two turns of all jobs: before, Java interprets and compiles. All messages would take minutes without need."""
    for job in [*jobs.values()] * 2:
        job()


def cpu_of_each(jobs: dict[str, Job], n_messages: int, rounds: int) -> dict[str, float]:
    """Median microseconds of CPU for a message, by job. The jobs take turns."""
    found = {name: median_of(times).cpu for name, times in in_turns(jobs, rounds).items()}
    if None in found.values():
        raise NearcastError("CPU times of processes are read from /proc, which is not here")
    return {name: 1e6 * cpu / n_messages for name, cpu in found.items() if cpu is not None}


# -- the paths


def frame_jobs(session: SparkSession, index: str, messages: str) -> dict[str, Job]:
    """The DataFrame paths, each from Parquet."""
    handle, frame = ncs.open_index(index), session.read.parquet(messages)
    matches = ncs.match(frame, handle)
    frame.createOrReplaceTempView("bench_messages")
    ncs.register(session, handle, "bench_match")
    by_sql = session.sql("SELECT * FROM bench_match(TABLE(bench_messages))")
    out = str(Path(messages).with_name(_OUT))
    return {
        "frames, scan only": lambda: _into_nothing(frame),
        "frames, noop": lambda: _into_nothing(matches),
        "frames, noop, metrics": lambda: _into_nothing(ncs.match(frame, handle, metrics="bench")),
        "frames, Parquet": lambda: matches.write.mode("overwrite").parquet(out),
        "SQL, noop": lambda: _into_nothing(by_sql),
    }


def _into_nothing(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def file_jobs(session: SparkSession, data: Data, texts: str) -> dict[str, Job]:
    index, out = data.path("index"), data.path(_FILES_OUT)
    return {"file path": lambda: match_batch(session, index, data.path(texts), out, layout="replicated")}


def library_jobs(index: Index, data: Data, texts: str) -> dict[str, Job]:
    """One table of matches at a time is in memory."""
    path = data.path(texts)
    in_memory = [pa.Table.from_batches([batch]) for batch in pq.read_table(path).to_batches(_BATCH)]

    def match(tables: Iterable[pa.Table]) -> None:
        for table in tables:
            index.match(table)

    def write() -> None:
        schema = index.match(in_memory[0].slice(0, 0)).schema
        with pq.ParquetWriter(data.path(_LIBRARY_OUT), schema) as writer:
            for table in _tables(path):
                writer.write_table(index.match(table))

    return {
        "library, memory": lambda: match(in_memory),
        "library, from Parquet": lambda: match(_tables(path)),
        "library, to Parquet": write,
    }


def _tables(path: str) -> Iterator[pa.Table]:
    for batch in pq.ParquetFile(path).iter_batches(_BATCH):
        yield pa.Table.from_batches([batch])


def require_same_pairs(session: SparkSession, data: Data) -> int:
    """The number of pairs that each path wrote; NearcastError if the numbers differ."""
    names = (_OUT, _FILES_OUT, _LIBRARY_OUT)
    found = [session.read.parquet(data.path(name)).count() for name in names]
    if len(set(found)) > 1:
        raise NearcastError(f"the paths found different numbers of pairs: {dict(zip(names, found, strict=True))}")
    return int(found[0])


# -- a session that nearcast did not start


def _in_own_process(mode: str, data: Data, rounds: int) -> dict[str, Any]:
    """The figures of a session of others; if it fails, the reason: the other figures took minutes."""
    paths = [data.path(name) for name in ("index", TEXTS, WARM_UP)]
    command = [sys.executable, "-m", __name__, mode, *paths, str(rounds)]
    settings = {"JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **settings, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": failure_reason(RuntimeError(done.stderr))}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_foreign_session(mode: str, index: str, messages: str, few: str, rounds: int) -> dict[str, Any]:
    """Seconds of the first job, CPU of a null task, and CPU of a message, with Spark's own settings and daemon."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
    session = (builder.remote("local[2]") if mode == "connect" else builder.master("local[2]")).getOrCreate()
    some = session.read.parquet(few).limit(100)
    some.collect()  # Java is ready, Python is not
    first = in_turns({"first": lambda: ncs.match(some, ncs.open_index(index)).collect()}, 1)["first"][0]
    warm_up(_without_metrics(frame_jobs(session, index, few)))
    n = session.read.parquet(messages).count()
    cpu = cpu_of_each(_without_metrics(frame_jobs(session, index, messages)), n, rounds)
    found: dict[str, Any] = {"first_job_seconds": first.seconds, "first_job_cpu_seconds": first.cpu}
    found |= {"null_task_cpu_ms": _null_task_ms(session), "cpu_us_per_message": cpu}
    session.stop()
    return found


def _without_metrics(jobs: dict[str, Job]) -> dict[str, Job]:
    return {name: job for name, job in jobs.items() if "metrics" not in name}


def _null_task_ms(session: SparkSession) -> float:
    """Milliseconds of CPU over all processes for a Python task with one row, after tasks that matched."""

    def tasks(n: int) -> float:
        before = cpu_seconds() or 0.0
        _into_nothing(session.range(0, n, 1, n).mapInArrow(_same, "id long"))
        return (cpu_seconds() or 0.0) - before

    tasks(_FEW)
    few, many = (statistics.median(tasks(n) for _ in range(3)) for n in (_FEW, _MANY))
    return 1e3 * (many - few) / (_MANY - _FEW)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    compile_now()
    _, mode, index, messages, few, rounds = sys.argv
    found_here = measure_foreign_session(mode, index, messages, few, int(rounds))
    sys.stdout.write(json.dumps(found_here) + "\n")
