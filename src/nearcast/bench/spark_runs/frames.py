"""CPU time of a message through DataFrames, through the file path and in the library, in turns in one run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast import spark as ncs
from nearcast.arrays.jit.mode import compile_now
from nearcast.bench.spark_runs.processes import cpu_seconds
from nearcast.bench.spark_runs.rates import SPACE, Data, seconds_of
from nearcast.engine.index import build_index
from nearcast.errors import NearcastError
from nearcast.spark.batch.match import match_batch
from nearcast.spark.runtime.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH = 65_536
_ROW_GROUP = 65_536
_FEW, _MANY = 20, 220  # null tasks
_TEXT, _OUT, _LIBRARY_OUT = "text.parquet", "frames-out", "library-out.parquet"
Job = Callable[[], Any]


def against_frames(session: SparkSession, data: Data, rounds: int) -> dict[str, Any]:
    """Microseconds of CPU over all processes for a message, by path, and what a session of others costs."""
    write_texts(data)
    library = _library_jobs(data)
    frames = library | _file_jobs(session, data) | frame_jobs(session, data.path("index"), data.path(_TEXT))
    measured = {"classic": cpu_of_each(frames, data.n_messages, rounds)}
    _require_pairs(session, data)
    for mode in ("classic", "connect"):
        measured[f"foreign {mode}"] = _in_own_process(mode, data, rounds)
    return {"subscriptions": data.n_subscriptions, "messages": data.n_messages, "rounds": rounds, **measured}


def write_texts(data: Data) -> None:
    """The messages with a text in place of the list of tokens."""
    table = pq.read_table(data.messages)
    texts = pc.binary_join(table["tokens"].combine_chunks(), " ").cast(pa.string())
    table = table.drop_columns(["tokens"]).append_column("text", texts)
    pq.write_table(table, data.path(_TEXT), row_group_size=_ROW_GROUP)


def cpu_of_each(jobs: dict[str, Job], n_messages: int, rounds: int) -> dict[str, float]:
    """Median microseconds of CPU for a message, by job. The jobs take turns; the first two rounds do not count."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 2):
        for name, job in jobs.items():
            before = cpu_seconds()
            job()
            after = cpu_seconds()
            if before is None or after is None:
                raise NearcastError("CPU times of processes are read from /proc, which is not here")
            if turn > 1:
                found[name].append(1e6 * (after - before) / n_messages)
    return {name: statistics.median(values) for name, values in found.items()}


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


def _file_jobs(session: SparkSession, data: Data) -> dict[str, Job]:
    out = data.path("frames-files")
    return {"file path": lambda: match_batch(session, data.path("index"), data.path(_TEXT), out, layout="replicated")}


def _library_jobs(data: Data) -> dict[str, Job]:
    index = build_index(data.subscriptions, space=SPACE)
    in_memory = [pa.Table.from_batches([batch]) for batch in pq.read_table(data.path(_TEXT)).to_batches(_BATCH)]

    def write() -> None:
        schema = index.match(in_memory[0].slice(0, 0)).schema
        with pq.ParquetWriter(data.path(_LIBRARY_OUT), schema) as writer:
            for table in _tables(data.path(_TEXT)):
                writer.write_table(index.match(table))

    return {
        "library, memory": lambda: [index.match(table) for table in in_memory],
        "library, from Parquet": lambda: [index.match(table) for table in _tables(data.path(_TEXT))],
        "library, to Parquet": write,
    }


def _tables(path: str) -> Iterator[pa.Table]:
    for batch in pq.ParquetFile(path).iter_batches(_BATCH):
        yield pa.Table.from_batches([batch])


def _require_pairs(session: SparkSession, data: Data) -> None:
    """NearcastError if the paths wrote different numbers of pairs."""
    found = {name: session.read.parquet(data.path(name)).count() for name in (_OUT, "frames-files", _LIBRARY_OUT)}
    if len(set(found.values())) > 1:
        raise NearcastError(f"the paths found different numbers of pairs: {found}")


# -- a session that nearcast did not start


def _in_own_process(mode: str, data: Data, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, mode, data.path("index"), data.path(_TEXT), str(rounds)]
    settings = {"JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **settings, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or "no reason").splitlines()[-1]
        raise NearcastError(f"a {mode} session of its own failed: {reason}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure_foreign_session(mode: str, index: str, messages: str, rounds: int) -> dict[str, Any]:
    """Seconds of the first job, CPU of a null task, and CPU of a message, with Spark's own settings and daemon."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
    session = (builder.remote("local[2]") if mode == "connect" else builder.master("local[2]")).getOrCreate()
    session.range(0, 1000, 1, 4).write.format("noop").mode("overwrite").save()  # Java is ready, Python is not
    few = session.read.parquet(messages).limit(100)
    first = seconds_of(lambda: ncs.match(few, ncs.open_index(index)).collect())
    n = session.read.parquet(messages).count()
    jobs = {name: job for name, job in frame_jobs(session, index, messages).items() if "metrics" not in name}
    cpu = cpu_of_each(jobs, n, rounds)
    found = {"first_job_seconds": first, "null_task_cpu_ms": _null_task_ms(session), "cpu_us_per_message": cpu}
    session.stop()
    return found


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
    given = sys.argv[1:]
    found_here = measure_foreign_session(given[0], given[1], given[2], int(given[3]))
    sys.stdout.write(json.dumps(found_here) + "\n")
