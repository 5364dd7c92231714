"""Ingest and build die in mid-step, `kill -9`: nothing half-written is seen, and a rerun comes to the right end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import NearcastError
from nearcast.spark.build import build_sharded
from nearcast.spark.failures import plain_failures
from nearcast.spark.ingest import ingest
from nearcast.spark.one_process import OneProcess
from nearcast.spark.sharded import open_sharded
from nearcast.spark.worker import match_everything
from spark import deadly_step
from spark.deadly_tasks import Deaths, ingest_part
from spark.nasty_tables import nasty_messages
from spark.ranked_tables import ranked_subscriptions

POINTS = [
    ("nearcast.spark.build", "counted_weights", 1),
    ("nearcast.spark.build", "build_shard", 2),  # one shard is written, another is not
    ("nearcast.spark.build", "_manifest", 1),  # all are
    ("nearcast.spark.sharded", "write_whole", 1),  # of publishing: before the manifest,
    ("nearcast.spark.sharded", "write_whole", 2),  # and when the version has its name but is not yet current
]


@pytest.mark.parametrize("point", POINTS, ids=[f"{name}-{nth}" for _, name, nth in POINTS])
def test_a_build_that_is_killed_leaves_the_old_version_current(tmp_path: Path, point: tuple[str, str, int]) -> None:
    old, new = ranked_subscriptions(1, 40), ranked_subscriptions(2, 60)
    messages = nasty_messages(3, 80)
    table, index = tmp_path / "subscriptions.parquet", str(tmp_path / "index")
    pq.write_table(old, table)
    before = build_sharded(OneProcess(), str(table), index, shards=2, method="brute")
    pq.write_table(new, table)
    assert killed_in_a_child(point, lambda: build_sharded(OneProcess(), str(table), index, shards=3, method="brute"))
    assert open_sharded(index) == before
    assert match_everything(before, messages).equals(nc.build_index(old, "brute").match(messages))
    after = build_sharded(OneProcess(), str(table), index, shards=3, method="brute")
    assert match_everything(after, messages).equals(nc.build_index(new, "brute").match(messages))
    assert open_sharded(index) == after and not list((tmp_path / "index" / "versions").glob("unfinished-*"))


def killed_in_a_child(point: tuple[str, str, int], work: Any) -> bool:
    child = os.fork()
    if child == 0:
        try:
            deadly_step.die_at(*point)
            work()
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


RECORDS = [{"id": k % 45, "text": f"word{k}", "x": k, "y": 0 if k % 7 else 200} for k in range(50)]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return tmp_path


def ingested(spark: Any, folder: Path) -> dict[str, Any]:
    paths = [str(folder / name) for name in ("messages", "rejects")]
    with plain_failures():
        return ingest(spark, [str(folder / "raw.jsonl")], "messages", {}, *paths)


def check(spark: Any, folder: Path) -> None:
    """A rerun: every record is in one of the tables, and of what was killed nothing is left."""
    counts = ingested(spark, folder)
    rows = [pq.read_table(folder / name).num_rows for name in ("messages", "rejects")]
    assert counts["read"] == 50 == sum(rows) and [counts["accepted"], counts["rejected"]] == rows
    good = [record["id"] for record in RECORDS[:45] if record["y"] == 0]
    assert sorted(pq.read_table(folder / "messages")["id"].to_pylist()) == good
    assert not [path.name for path in folder.iterdir() if path.name.startswith((".messages", ".rejects"))]


def test_an_ingest_whose_worker_is_killed_leaves_nothing_and_can_be_run_again(
    spark: Any, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("nearcast.spark.ingest.ingest_part", partial(ingest_part, Deaths(str(raw), "worker", 1)))
        with pytest.raises(NearcastError):
            ingested(spark, raw)
    assert (raw / "worker").exists() and not (raw / "messages").exists() and not (raw / "rejects").exists()
    check(spark, raw)


@pytest.mark.skipif(JIT_DISABLED, reason="what is killed does not depend on how kernels run")
def test_an_ingest_that_is_killed_between_its_two_tables_can_be_run_again(spark: Any, raw: Path) -> None:
    """The worst moment: the rejects are in place, the clean table is not, though it is whole."""
    ingested(spark, raw)
    old = sorted(pq.read_table(raw / "messages")["id"].to_pylist())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NEARCAST_DRIVER_MEMORY": "512m"}
    command = [sys.executable, deadly_step.__file__, str(raw), "nearcast.spark.folders", "NewFolder.publish", "2"]
    assert subprocess.run(command, env=environment, capture_output=True).returncode == -signal.SIGKILL
    assert sorted(pq.read_table(raw / "messages")["id"].to_pylist()) == old
    assert list(raw.glob(".messages.*")), "it died with its work beside its place"
    check(spark, raw)
