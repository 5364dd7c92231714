"""Processes die in mid-batch, `kill -9`: what comes out is the oracle's, each pair once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.demo.demo_subscriptions import sample_messages, subscriptions_table
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.match import match_batch

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="a cluster of plain Python takes minutes")

PROGRAM = Path(__file__).with_name("deadly_run.py")


@pytest.fixture(scope="module")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """A folder with `index` (three shards) and `messages.parquet`, and the matches that are right."""
    folder = tmp_path_factory.mktemp("kills")
    messages = sample_messages()
    subscriptions = subscriptions_table(messages, 2_000)
    pq.write_table(messages, folder / "messages.parquet", row_group_size=800)
    pq.write_table(subscriptions, folder / "subscriptions.parquet")
    build_sharded(spark, str(folder / "subscriptions.parquet"), str(folder / "index"), shards=3, method="pyramid")
    return folder, nc.build_index(subscriptions, method="pyramid", extra=["name"]).match(messages)


def run(folder: Path, *batches: str) -> subprocess.CompletedProcess[str]:
    tests = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([tests, *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), *batches],
        capture_output=True,
        text=True,
        timeout=1_800,
        env={**os.environ, "PYTHONPATH": path, "NEARCAST_DRIVER_MEMORY": "512m"},
    )


def matches(folder: Path) -> pa.Table:
    return pq.read_table(folder).sort_by([("message", "ascending"), ("subscription", "ascending")])


def n_deaths(folder: Path) -> int:
    return len(list(folder.glob("deaths-*/*")))


def test_a_batch_survives_a_worker_and_an_executor_and_a_rerun_the_driver(
    spark: Any, world: tuple[Path, pa.Table]
) -> None:
    folder, wanted = world
    done = run(folder, "replicated:worker:1", "sharded:executor:1", "replicated:driver:1")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert n_deaths(folder) == 3
    assert matches(folder / "out-0").equals(wanted) and matches(folder / "out-1").equals(wanted)
    assert not (folder / "out-2").exists(), "nothing of a batch whose driver died is to be seen"
    match_batch(spark, str(folder / "index"), str(folder / "messages.parquet"), str(folder / "out-2"))
    assert matches(folder / "out-2").equals(wanted)
    assert not list(folder.glob(".out*")), "the rerun removed what the dead driver left"


@pytest.mark.slow
def test_fifty_kills_leave_no_trace(spark: Any, world: tuple[Path, pa.Table], tmp_path: Path) -> None:
    folder, wanted = world
    for name in ("index", "messages.parquet"):
        (tmp_path / name).symlink_to(folder / name)
    batches = ["replicated:worker:5", "sharded:worker:5", "replicated:executor:2", "sharded:executor:2"] * 3
    done = run(tmp_path, *batches, "sharded:worker:3")
    assert done.returncode == 0, done.stderr
    for number in range(len(batches) + 1):
        assert matches(tmp_path / f"out-{number}").equals(wanted), number
    for k in range(5):
        again = tmp_path / f"driver-{k}"
        again.mkdir()
        for name in ("index", "messages.parquet"):
            (again / name).symlink_to(folder / name)
        assert run(again, ("sharded", "replicated")[k % 2] + ":driver:1").returncode == -signal.SIGKILL
        match_batch(spark, str(again / "index"), str(again / "messages.parquet"), str(again / "out-0"))
        assert matches(again / "out-0").equals(wanted)
    assert n_deaths(tmp_path) + sum(n_deaths(tmp_path / f"driver-{k}") for k in range(5)) == 50
