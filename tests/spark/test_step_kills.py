"""Ingest and build die in mid-step, `kill -9`: nothing half-written is seen, and a rerun comes to the right end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.errors import NearcastError
from nearcast.sharding.match_shards import match_all_shards
from nearcast.sharding.sharded_index import ShardedIndex, open_sharded
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.batch.ingest import IngestOptions, ingest
from nearcast.spark.batch.one_process import OneProcess
from nearcast.spark.runtime.failures import plain_failures
from spark import deadly_step
from spark.deadly_step import NoSpark
from spark.deadly_tasks import Deaths, ingest_part
from spark.nasty_tables import nasty_messages
from spark.ranked_tables import ranked_subscriptions

POINTS = [
    ("nearcast.spark.batch.build", "_counted_weights", 1),
    ("nearcast.spark.batch.build", "build_shard", 2),  # one shard is written, another is not
    ("nearcast.sharding.shard_assembly", "_manifest", 1),  # all are
    ("nearcast.spark.batch.build", "publish", 1),  # before the manifest
    ("nearcast.sharding.sharded_index", "_make_current", 1),  # the version has its name but is not yet current
]


class Scene(NamedTuple):
    """An index that is there before anything is killed, and what the library finds."""

    index: Path
    new: pa.Table  # the subscriptions of the next build
    messages: pa.Table
    found_before: pa.Table
    found_after: pa.Table


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Built once: a build makes hundreds of files durable, which takes seconds where disks are busy."""
    folder = tmp_path_factory.mktemp("before")
    old, new, messages = ranked_subscriptions(1, 30), ranked_subscriptions(2, 40), nasty_messages(3, 60)
    pq.write_table(old, folder / "old.parquet")
    build_sharded(OneProcess(), str(folder / "old.parquet"), str(folder / "index"), shards=1, method="brute")
    wanted = [nc.build_index(table, "brute").match(messages) for table in (old, new)]
    return Scene(folder / "index", new, messages, *wanted)


@pytest.mark.parametrize("point", POINTS, ids=[f"{name}-{nth}" for _, name, nth in POINTS])
def test_a_build_that_is_killed_leaves_the_old_version_current(
    tmp_path: Path, scene: Scene, point: tuple[str, str, int]
) -> None:
    table, index = str(tmp_path / "subscriptions.parquet"), str(tmp_path / "index")
    shutil.copytree(scene.index, index)
    before = open_sharded(index)
    pq.write_table(scene.new, table)

    def build() -> ShardedIndex:
        return build_sharded(OneProcess(), table, index, shards=2, method="brute")

    assert deadly_step.killed_in_a_child(point, build)
    assert open_sharded(index) == before
    assert match_all_shards(before, scene.messages).equals(scene.found_before)
    after = build()
    assert match_all_shards(after, scene.messages).equals(scene.found_after)
    assert open_sharded(index) == after and not list((tmp_path / "index" / "versions").glob("unfinished-*"))


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
        patch.setattr("nearcast.spark.batch.ingest.ingest_part", partial(ingest_part, Deaths(str(raw), "worker", 1)))
        with pytest.raises(NearcastError):
            ingested(spark, raw)
    assert (raw / "worker").exists() and not (raw / "messages").exists() and not (raw / "rejects").exists()
    check(spark, raw)


def killed_driver(folder: Path) -> bool:
    """A driver with a Spark of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "NEARCAST_DRIVER_MEMORY": "512m"}
    command = [sys.executable, deadly_step.__file__, str(folder), *map(str, BETWEEN)]
    return subprocess.run(command, env=environment, capture_output=True).returncode == -signal.SIGKILL


def killed_child(folder: Path) -> bool:
    """A process without Spark, which has done its part by then."""
    paths = [str(folder / name) for name in ("messages", "rejects")]
    options = IngestOptions(make_ids=True)
    return deadly_step.killed_in_a_child(
        BETWEEN, lambda: ingest(NoSpark(), [str(folder / "raw.jsonl")], "messages", {}, *paths, options=options)
    )


BETWEEN = ("nearcast.ingest.output_folder", "NewFolder.publish", 2)


@pytest.mark.parametrize("killed", [killed_child, pytest.param(killed_driver, marks=pytest.mark.slow)])
def test_an_ingest_that_is_killed_between_its_two_tables_can_be_run_again(spark: Any, raw: Path, killed: Any) -> None:
    """The worst moment: the rejects are in place, the clean table is not, though it is whole."""
    for name in ("messages", "rejects"):
        (raw / name).mkdir()
        pq.write_table(pa.table({"id": [7]}), raw / name / "old.parquet")
    assert killed(raw)
    assert pq.read_table(raw / "messages")["id"].to_pylist() == [7]
    assert pq.read_table(raw / "rejects").column_names != ["id"], "they are the new ones"
    assert list(raw.glob(".messages.*")), "it died with its work beside its place"
    check(spark, raw)
