"""kill -9 of Python workers, executors and the driver in mid-stream: what is delivered is right, exactly once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stream_driver
from live_processes import Process, descendants, processes, python_workers
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.streaming.stream import run_stream
from stream_world import IN_ORDER, World, delivered, expected, put, weights_of

MASTER = "local-cluster[2,1,1024]"
SECONDS_WITHOUT_A_BATCH = 240


class Driver:
    """One run of the stream, in a session of processes of its own."""

    def __init__(self, root: Path, has_frames: bool) -> None:
        environment = os.environ | {
            "NEARCAST_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
            "NEARCAST_DRIVER_MEMORY": "512m",
        }
        with open(root / "driver.log", "ab") as log:
            command = [sys.executable, stream_driver.__file__, str(root), MASTER, *(["frames"] if has_frames else [])]
            self.process = subprocess.Popen(command, start_new_session=True, stderr=log, env=environment)

    def own(self) -> list[Process]:
        return [each for each in processes() if each.session == self.process.pid]

    def kill(self, target: str, choose: random.Random) -> bool:
        """Kill one of these; whether there was one. Executors of a driver that is gone are left to notice."""
        own = self.own()
        found = {
            "worker": python_workers(own),
            "executor": [each for each in own if "CoarseGrainedExecutorBackend" in each.command],
            "driver": [each for each in own if each.pid == self.process.pid or "SparkSubmit" in each.command],
        }[target]
        chosen = found if target == "driver" else found and [choose.choice(found)]
        try:
            for each in chosen:
                os.kill(each.pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended by itself since it was found
            return False
        return bool(chosen)

    def end(self) -> None:
        for each in self.own():
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(each.pid, signal.SIGKILL)
        self.process.wait()


def run_with_kills(root: Path, world: World, kills: list[str], seed: int, has_frames: bool = False) -> int:
    """Stream to the end; every few batches a process dies and a change file comes. How many drivers it took."""
    choose = random.Random(seed)
    left = list(kills)
    n_drivers, n_changes, seen = 0, 0, 0
    while True:
        n_drivers += 1
        assert n_drivers <= 3 + 2 * len(kills), (root / "driver.log").read_text()[-2000:]
        driver = Driver(root, has_frames)
        try:
            since = time.monotonic()
            while driver.process.poll() is None:
                time.sleep(choose.uniform(0.02, 0.2))
                n_batches = len(list((root / "matches").glob("batch=*")))
                assert time.monotonic() - since < SECONDS_WITHOUT_A_BATCH, (root / "driver.log").read_text()[-2000:]
                if n_batches == seen:
                    continue
                seen, since = n_batches, time.monotonic()
                if seen % 2:
                    put(in_order(world.change(8), n_changes), root / "changes", f"{n_changes:04d}.parquet")
                    n_changes += 1
                time.sleep(choose.uniform(0.0, 1.0))  # anywhere in the batches that follow
                if left and driver.kill(left[0], choose):
                    left.pop(0)
            if driver.process.returncode == 0:
                assert not left, f"the stream ended before these were killed: {left}"
                return n_drivers
        finally:
            driver.end()


def in_order(changes: pa.Table, number: int) -> pa.Table:
    """Changes that say their order: Spark reads the files of a batch in an order of its own."""
    return changes.append_column("order", pa.array(range(1_000 * number, 1_000 * number + changes.num_rows)))


def check(root: Path, base: pa.Table, has_frames: bool = False) -> None:
    """Each batch against the library, with the messages and the change files that are on record for it."""
    files = files_of_batches(root, 0)
    changes = files_of_batches(root, 1) if has_frames else {}
    names = [name for batch in files.values() for name in batch]
    assert sorted(names) == sorted(path.name for path in (root / "incoming").glob("*.parquet")), "each file once"
    live = {row["id"]: row for row in base.to_pylist()}
    found, weights = [], weights_of(base)
    for batch in sorted(files):
        manifest = json.loads((root / f"matches/batch={batch}/_manifest.json").read_bytes())
        for name in sorted(changes[batch]) if has_frames else manifest["change_files"]:
            for row in pq.read_table(root / "changes" / name).to_pylist():
                live.pop(row["id"], None)
                if row.pop("op") == "insert":
                    live[row["id"]] = row
        now = pa.Table.from_pylist(list(live.values()), base.schema)
        found += [expected(now, weights, root / "incoming" / name) for name in files[batch]]
    wanted = pa.concat_tables(found).sort_by(IN_ORDER)
    assert wanted.num_rows and delivered(root / "matches").equals(wanted)


def files_of_batches(root: Path, source: int) -> dict[int, list[str]]:
    """What Spark put into each batch, by its own logs: the source numbers its files by entries, a batch ends at one.
    After a crash between the two logs a batch holds several entries.
    """
    spark_logs = root / "checkpoint/spark"
    found: dict[str, int] = {}
    for log in (spark_logs / f"sources/{source}").glob("[0-9]*"):
        for line in log.read_text().splitlines():
            if line.startswith("{"):
                entry = json.loads(line)
                found[entry["path"].rpartition("/")[2]] = entry["batchId"]
    lines = {int(log.name): log.read_text().splitlines()[2 + source] for log in (spark_logs / "offsets").glob("[0-9]*")}
    ends = {batch: -1 if line == "-" else json.loads(line)["logOffset"] for batch, line in lines.items()}
    batches: dict[int, list[str]] = {batch: [] for batch in ends}
    for name, entry in found.items():
        batches[min(batch for batch, end in ends.items() if end >= entry)].append(name)
    return batches


def prepared(spark: Any, root: Path, n_files: int) -> tuple[World, pa.Table]:
    world = World(30, 60)
    base = world.table()
    put(base, root / "subscriptions")
    for k in range(n_files):
        put(world.messages(30), root / "incoming", f"{k:04d}.parquet")
    (root / "changes").mkdir()
    build_sharded(spark, str(root / "subscriptions"), str(root / "index"), shards=2)
    return world, base


@pytest.mark.skipif(JIT_DISABLED, reason="what is killed does not depend on how kernels run")
def test_a_worker_an_executor_and_the_driver_are_killed(spark: Any, tmp_path: Path) -> None:
    world, base = prepared(spark, tmp_path, 14)
    assert run_with_kills(tmp_path, world, ["worker", "executor", "driver"], 1) > 1
    check(tmp_path, base)


def test_a_local_stream_goes_on_when_its_workers_are_killed(spark: Any, tmp_path: Path) -> None:
    """Spark repeats no task with a local master: the stream does."""
    _, base = prepared(spark, tmp_path, 6)
    paths = [str(tmp_path / name) for name in ("index", "incoming", "matches", "checkpoint")]
    killed: list[int] = []

    def kill_one(_: Any) -> None:
        for worker in python_workers(descendants(os.getpid()))[: 2 - len(killed)]:
            os.kill(worker.pid, signal.SIGKILL)
            killed.append(worker.pid)

    threading.Timer(1.5, kill_one, [None]).start()  # in some batch, or between two
    totals = run_stream(spark, *paths, changes=str(tmp_path / "changes"), once=True, max_files=1, on_batch=kill_one)
    assert killed and totals["batches"] == 6
    check(tmp_path, base)


@pytest.mark.skipif(JIT_DISABLED, reason="what is killed does not depend on how kernels run")
def test_a_stream_of_frames_survives_a_worker_and_its_driver(spark: Any, tmp_path: Path) -> None:
    world, base = prepared(spark, tmp_path, 10)
    assert run_with_kills(tmp_path, world, ["worker", "driver"], 4, has_frames=True) > 1
    check(tmp_path, base, has_frames=True)


@pytest.mark.slow
@pytest.mark.parametrize("has_frames", [False, True])
@pytest.mark.parametrize("target", ["worker", "executor", "driver"])
def test_fifty_kills(spark: Any, tmp_path: Path, target: str, has_frames: bool) -> None:
    world, base = prepared(spark, tmp_path, 90)  # Spark keeps its logs of 100 batches: `check` reads them
    run_with_kills(tmp_path, world, [target] * 50, 3, has_frames)
    check(tmp_path, base, has_frames)
