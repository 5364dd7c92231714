"""The stream against the library: pair by pair, with live changes, replays, and whatever lies in the folders."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.demo.demo_subscriptions import changes_table, sample_messages, subscriptions_table
from nearcast.errors import InvalidInput, NearcastError
from nearcast.sharding.live.stream_output import read_stream_rejects
from nearcast.spark.batch.build import build_sharded
from nearcast.spark.streaming.stream import run_stream
from stream_scene import Scene
from stream_world import COLUMNS, IN_ORDER, World, delivered, put, scored, weights_of


@pytest.mark.parametrize("shards", [1, 2, 7, 32])
def test_the_stream_equals_the_library_while_subscriptions_change(spark: Any, tmp_path: Path, shards: int) -> None:
    scene = Scene(spark, tmp_path, World(shards, 150), shards)
    scene.say(60)
    scene.say(1, "a name with %20 and a blank.parquet")
    assert scene.run()["messages"] == 61
    scene.change(20, "1.parquet")
    scene.change(20, "2.parquet")
    scene.say(60)
    totals = scene.run()
    assert (totals["batches"], totals["messages"], totals["changes"], totals["rejected"]) == (1, 60, 40, 0)
    scene.check()


def test_the_stream_equals_the_library_on_the_shipped_messages(spark: Any, tmp_path: Path) -> None:
    messages = sample_messages().slice(0, 60 if JIT_DISABLED else 3_000)
    before = subscriptions_table(messages, 40 if JIT_DISABLED else 2_000)
    put(before, tmp_path / "subscriptions")
    build_sharded(spark, str(tmp_path / "subscriptions"), str(tmp_path / "index"), shards=7)
    half = messages.num_rows // 2
    paths = [str(tmp_path / name) for name in ("index", "incoming", "matches", "checkpoint")]
    put(messages.slice(0, half), tmp_path / "incoming")
    run_stream(spark, *paths, changes=str(tmp_path / "changes"), once=True)
    put(changes_table(), tmp_path / "changes")
    put(messages.slice(half), tmp_path / "incoming")
    run_stream(spark, *paths, changes=str(tmp_path / "changes"), once=True)
    index = nc.build_index(before, method="pyramid", extra=["name"])
    wanted = [index.match(messages.slice(0, half))]
    changes = changes_table()
    index.remove(changes["id"].to_pylist())
    index.insert(changes.filter(pc.equal(changes["op"], "insert")), extra=["op"])
    wanted.append(index.match(messages.slice(half)))
    assert delivered(tmp_path / "matches").equals(scored(pa.concat_tables(wanted).sort_by(IN_ORDER)))


def test_changes_pile_up_and_are_built_into_a_new_base(spark: Any, tmp_path: Path) -> None:
    world = World(5, 60)
    bad = {"id": 1_000, "tokens": ["a"], "xmin": 5.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
    put(pa.Table.from_pylist([bad], COLUMNS), tmp_path / "subscriptions")
    scene = Scene(spark, tmp_path, world, 2)
    for k in range(5):
        scene.change(12, f"{k}.parquet")
        scene.say(40)
        totals = scene.run(compact_least=15, compact_share=0.0, subscriptions=scene.path("subscriptions"))
        assert "compaction_failed" not in totals
    scene.check()
    manifests = [json.loads((tmp_path / f"matches/batch={k}/_manifest.json").read_bytes()) for k in range(5)]
    assert len({manifest["base"] for manifest in manifests}) > 1, "no compaction took place"
    kept = {path.name for path in (tmp_path / "checkpoint/index/versions").iterdir()}
    assert manifests[0]["base"] not in kept, "a version that no plan names stays"


def test_a_batch_that_is_played_again_gives_the_same_pairs(spark: Any, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, World(6, 80))
    scene.change(20, "1.parquet")
    scene.say(50)
    scene.run()
    forget_batch(tmp_path, 0)
    # What came later, and what is gone, must not matter to the batch that was planned before.
    put(pa.table({"op": ["remove"] * 80, "id": range(80)}), tmp_path / "changes", "2.parquet")
    (tmp_path / "changes/1.parquet").unlink()
    put(World(7, 80).table(), tmp_path / "others")
    build_sharded(spark, scene.path("others"), scene.path("index"), shards=1)
    shutil.rmtree(tmp_path / "index/versions" / sorted(p.name for p in (tmp_path / "index/versions").iterdir())[0])
    assert scene.run()["batches"] == 1
    scene.check()


def forget_batch(root: Path, batch: int) -> None:
    """As if the driver had died before anything of this batch was seen."""
    (root / f"checkpoint/spark/commits/{batch}").unlink()
    shutil.rmtree(root / f"matches/batch={batch}")


def test_a_sink_gets_a_batch_again_and_the_table_does_not(spark: Any, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, World(8, 80))
    scene.say(50)
    seen: list[tuple[int, list[Any]]] = []

    def note(matches: Any, batch: int) -> None:
        seen.append((batch, sorted(tuple(row) for row in matches.select("message", "subscription").collect())))

    scene.run(sink=note)
    (tmp_path / "checkpoint/spark/commits/0").unlink()  # died between the sink and the end of the batch
    scene.run(sink=note)
    assert len(seen) == 2 and seen[0] == seen[1] and seen[0][1]
    scene.check()


def test_bad_messages_and_bad_files_are_rejected_with_reasons(spark: Any, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, World(9, 50))
    scene.say(30)
    incoming = tmp_path / "incoming"
    put(pa.table({"id": [900, None], "text": ["a", "a"], "x": [float("nan"), 1.0], "y": [1.0, 1.0]}), incoming)
    put(pa.table({"id": [901], "x": [1.0], "y": [1.0]}), incoming, "no text.parquet")
    (incoming / "broken.parquet").write_bytes(b"PAR1 this is not it")
    (incoming / "empty.jsonl").touch()
    (incoming / "ok.csv").write_text("id,tokens,x,y\n950,nothing,1,1\n")
    scene.world.expected.append(nc.build_index(scene.world.table()).match(incoming / "ok.csv"))
    (incoming / "notes.txt").write_text("not for us")
    put(pa.table({"op": ["insert"], "id": [1]}), tmp_path / "changes")
    totals = scene.run()
    rejects = read_stream_rejects(tmp_path / "matches")
    assert totals["rejected"] + totals["changes_rejected"] == rejects.num_rows
    by_file = {Path(reject["source"]).name: reject["reason"] for reject in rejects.to_pylist()}
    assert "broken.parquet" in by_file and "no text.parquet" in by_file and totals["changes_rejected"] == 1
    assert totals["messages"] == 31 and rejects.num_rows == 5 and rejects["record"].null_count == 2
    scene.check()


def test_the_stream_runs_until_it_is_stopped(spark: Any, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, World(10, 50))
    scene.say(20)
    until = threading.Event()
    n_seen: list[int] = []

    def on_batch(manifest: dict[str, Any]) -> None:
        n_seen.append(manifest["messages"])
        if len(n_seen) < 3:
            scene.say(10 + len(n_seen))
        else:
            until.set()

    totals = scene.run(once=False, until=until, on_batch=on_batch)
    assert totals["batches"] == 3 and n_seen == [20, 11, 12]
    scene.check()


def test_a_stopped_stream_leaves_the_rest_for_the_next_run(spark: Any, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, World(13, 50))
    for k in range(6):
        scene.say(10, f"{k}.parquet")
    until = threading.Event()
    totals = scene.run(once=False, until=until, on_batch=lambda manifest: until.set(), max_files=1)
    assert 1 <= totals["batches"] < 6
    assert totals["messages"] + scene.run()["messages"] == 60
    scene.check()


def test_without_changes_the_stream_follows_the_current_version(spark: Any, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, World(11, 50))
    scene.say(20)
    scene.run(changes=None)
    scene.world.change(30)
    put(scene.world.table(), tmp_path / "newer")
    scene.world.weights = weights_of(scene.world.table())
    build_sharded(spark, scene.path("newer"), scene.path("index"), shards=2)
    scene.say(20)
    scene.run(changes=None)
    scene.check()


def test_folders_of_others_are_refused(spark: Any, tmp_path: Path) -> None:
    scene = Scene(spark, tmp_path, World(12, 20))
    scene.say(5)
    scene.run()
    paths = [scene.path(name) for name in ("index", "incoming")]
    with pytest.raises(InvalidInput, match="another checkpoint"):
        run_stream(spark, *paths, scene.path("matches"), scene.path("checkpoint2"), once=True)
    with pytest.raises(InvalidInput, match="not empty"):
        run_stream(spark, *paths, scene.path("subscriptions"), scene.path("checkpoint3"), once=True)
    with pytest.raises(InvalidInput, match="no checkpoint"):
        run_stream(spark, *paths, scene.path("matches3"), scene.path("subscriptions"), once=True)
    with pytest.raises(InvalidInput, match="no option"):
        scene.run(twice=True)
    with pytest.raises(InvalidInput, match="no folder"):
        run_stream(spark, paths[0], scene.path("nowhere"), scene.path("m4"), scene.path("c4"), once=True)
    with pytest.raises(NearcastError, match="Kafka needs the option 'kafka.bootstrap"):
        run_stream(spark, *paths, scene.path("m5"), scene.path("c5"), once=True, source="kafka")
    with pytest.raises(InvalidInput, match="no source"):
        run_stream(spark, *paths, scene.path("m6"), scene.path("c6"), once=True, source="pigeons")
