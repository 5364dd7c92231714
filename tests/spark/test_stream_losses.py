"""Nothing that a stream was given is lost in silence: it is read, or rejected by name, or the stream stops."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nearcast.errors import CorruptFile, DataLoss, ForeignVersion, InvalidInput
from nearcast.sharding.live.stream_output import StreamOutput, read_stream_rejects
from nearcast.spark.streaming import stream
from spark import deadly_tasks
from stream_scene import Scene
from stream_world import World, put

LATER = 130 * 365 * 24 * 3600  # seconds: after the year 2150


@pytest.fixture
def scene(spark: Any, tmp_path: Path) -> Scene:
    return Scene(spark, tmp_path, World(40, 60))


def date(file: Path, seconds_from_now: float) -> None:
    when = time.time() + seconds_from_now
    os.utime(file, (when, when))


def test_a_file_dated_in_the_future_hides_no_later_file(scene: Scene) -> None:
    scene.say(20, "future.parquet")
    date(scene.root / "incoming/future.parquet", LATER)
    assert scene.run()["messages"] == 20
    scene.say(10, "now.parquet")
    scene.say(10, "long ago.parquet")
    date(scene.root / "incoming/long ago.parquet", -50 * 365 * 24 * 3600)
    assert scene.run()["messages"] == 20
    scene.check()


def test_a_suffix_in_capitals_is_read_and_other_files_are_counted(scene: Scene) -> None:
    scene.say(20, "A.PARQUET")
    scene.say(5, "b.Parquet")
    (scene.root / "incoming/C.JSONL").write_text('{"id": 900, "text": "nothing", "x": 500, "y": 0}\n')
    (scene.root / "incoming/notes.txt").write_text("not for us")
    totals = scene.run()
    assert (totals["messages"], totals["rejected"], totals["files_ignored"]) == (25, 1, 1)
    scene.check()


@pytest.mark.parametrize(
    "gone", ["spark", "spark/offsets", "spark/sources", "spark/metadata", "spark/commits", "plans"]
)
def test_a_stream_stops_where_its_checkpoint_was_deleted(scene: Scene, gone: str) -> None:
    scene.say(20, "1.parquet")
    scene.run()
    path = scene.root / "checkpoint" / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    scene.say(200, "2.parquet")
    if gone == "spark/commits":  # Spark then repeats the newest batch, which is in the table already
        assert scene.run()["messages"] == 200
        scene.check()
        return
    with pytest.raises(DataLoss, match="checkpoint"):
        scene.run()
    assert scene.batches() == [0]


def test_a_file_that_was_overwritten_stops_the_next_start(scene: Scene) -> None:
    for k in range(3):
        scene.say(20, f"a name with %20 and a blank {k}.parquet")
    assert scene.run()["files_overwritten"] == 0
    file = scene.root / "incoming/a name with %20 and a blank 1.parquet"
    overwritten = put(pa.table({"id": [900], "text": ["a"], "x": [0.0], "y": [0.0]}), file.parent, file.name)
    date(overwritten, 60)
    scene.say(20, "later.parquet")
    with pytest.raises(DataLoss, match=r"blank 1\.parquet was changed .* reads no name twice; give new content"):
        scene.run()
    assert scene.batches() == [0]
    totals = scene.run(fail_on_data_loss=False)
    assert (totals["messages"], totals["files_overwritten"]) == (20, 1)
    file.rename(file.with_name("new name.parquet"))
    totals = scene.run()
    assert (totals["messages"], totals["files_overwritten"]) == (1, 0)


def test_an_index_of_another_version_stops_the_stream_between_two_batches(scene: Scene) -> None:
    manifest = next((scene.root / "index/versions").glob("*/manifest.json"))
    content = manifest.read_bytes()
    scene.say(20)

    def spoil(_: Any) -> None:
        manifest.write_text(json.dumps(json.loads(content) | {"format": ["nearcast-shards", 99]}))
        scene.say(20)

    with pytest.raises(ForeignVersion, match=r"has format \['nearcast-shards', 99\].*build it again") as caught:
        scene.run(changes=None, once=False, on_batch=spoil)
    assert "\n" not in str(caught.value) and scene.batches() == [0]
    manifest.write_bytes(b"{")
    with pytest.raises(CorruptFile, match="its manifest cannot be read"):
        scene.run(changes=None)
    assert scene.batches() == [0] and not list((scene.root / "matches/_staging").glob("*/*"))
    manifest.write_bytes(content)
    assert scene.run(changes=None)["messages"] == 20
    scene.check()


def test_an_unreadable_change_file_is_named_and_stalls_no_other(scene: Scene) -> None:
    broken = scene.root / "changes/0.parquet"
    broken.write_bytes(b"PAR1 this is not it")
    date(broken, LATER)
    scene.change(20, "1.parquet")
    scene.say(20)
    totals = scene.run()
    assert (totals["changes"], totals["changes_rejected"], totals["change_files_waiting"]) == (20, 1, 0)
    assert read_stream_rejects(scene.root / "matches")["source"].to_pylist() == ["0.parquet"]
    scene.check()


def test_a_change_file_that_waits_is_counted(scene: Scene) -> None:
    (scene.root / "changes/0.parquet").write_bytes(b"PAR1 not complete yet")
    put(pa.table({"op": ["remove"], "id": [1]}), scene.root / "changes", "1.parquet")
    scene.say(20)
    totals = scene.run()
    assert (totals["changes"], totals["change_files_waiting"]) == (0, 2)
    scene.check()


def test_a_file_that_kills_its_worker_is_set_aside_and_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "deliver_files", deadly_tasks.deliver_deadly_files)
    scene.say(20, "good.parquet")
    put(pa.table({"id": [1], "text": ["a"], "x": [0.0], "y": [0.0]}), scene.root / "incoming", "deadly.parquet")
    totals = scene.run(most_attempts=2)
    assert (totals["messages"], totals["rejected"]) == (20, 1)
    (reject,) = read_stream_rejects(scene.root / "matches").to_pylist()
    assert reject["source"].endswith("deadly.parquet") and "2 attempts" in reject["reason"]
    scene.check()
    assert not list((scene.root / "checkpoint/attempts").iterdir()), "marks of a committed batch stay"


def test_manifests_name_their_inputs(scene: Scene) -> None:
    scene.say(20, "1.parquet")
    scene.say(20, "2.parquet")
    scene.run()
    scene.say(20, "3.parquet")
    scene.run()
    named = [[Path(file).name for file in scene.manifest(batch)["inputs"]] for batch in (0, 1)]
    assert named == [["1.parquet", "2.parquet"], ["3.parquet"]]
    assert [each["messages"] for each in map(scene.manifest, (0, 1))] == [40, 20]


def test_a_batch_in_the_table_is_not_taken_for_another(scene: Scene) -> None:
    """As after a checkpoint was restored from a backup that is too old: the number is known, the files are others."""
    scene.say(20, "1.parquet")
    scene.run()
    shutil.copytree(scene.root / "checkpoint", scene.root / "backup")
    scene.say(20, "2.parquet")
    scene.run()
    shutil.rmtree(scene.root / "checkpoint")
    (scene.root / "backup").rename(scene.root / "checkpoint")
    scene.say(20, "3.parquet")
    with pytest.raises(DataLoss, match="batch 1"):
        scene.run()
    assert json.loads((scene.root / "matches/batch=1/_manifest.json").read_bytes())["messages"] == 20


def test_only_one_of_many_drivers_claims_an_output(tmp_path: Path) -> None:
    for k in range(40):
        place = tmp_path / str(k)
        with ThreadPoolExecutor(4) as threads:
            start = threading.Barrier(4)
            outputs = list(threads.map(partial(claim, start, place), range(4)))
        assert sum(output is not None for output in outputs) == 1
        assert json.loads((place / "_stream.json").read_bytes())["stream"].startswith("stream ")


def test_another_process_that_writes_to_an_output_is_refused(tmp_path: Path) -> None:
    first = StreamOutput(tmp_path / "out", "stream 1")
    command = [sys.executable, "-c", CLAIM, str(tmp_path / "out")]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "another stream uses the output" in refused.stderr and refused.returncode == 1
    first.close()
    assert subprocess.run(command, check=False).returncode == 0


CLAIM = """
import sys
from nearcast.sharding.live.stream_output import StreamOutput
StreamOutput(sys.argv[1], "stream 1")
"""


def claim(start: threading.Barrier, place: Path, number: int) -> StreamOutput | None:
    start.wait()
    try:
        return StreamOutput(place, f"stream {number}")
    except InvalidInput:
        return None
