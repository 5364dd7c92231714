"""Steps that are not done again, pipeline files, and failures in one line: all without Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nearcast.errors import InvalidInput, NearcastError
from nearcast.ingest.pipeline.pipeline_file import Raw, read_pipeline
from nearcast.ingest.pipeline.steps import Done, Step, files_of, record_of, run_step
from nearcast.spark.pipeline import stages
from nearcast.spark.runtime.failures import failure_reason, plain_failures


class Copy:
    """A step that counts how often it works."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.runs = 0
        self.out = folder / "out"
        self.step = Step("copy", (str(folder / "in"),), (str(self.out),), options)

    def work(self) -> dict[str, Any]:
        self.runs += 1
        self.out.mkdir(exist_ok=True)
        (self.out / "part.parquet").write_text("made")
        return {"rows": 3, "at": Path("x")}

    def run(self, force: bool = False) -> Done:
        return run_step(self.step, self.work, force)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1")
    return Copy(tmp_path)


def test_a_finished_step_is_not_done_again(copy: Copy) -> None:
    assert copy.run() == Done({"rows": 3, "at": "x"}, False)
    assert copy.run() == Done({"rows": 3, "at": "x"}, True) and copy.runs == 1


def test_force_does_it_again(copy: Copy) -> None:
    copy.run()
    assert not copy.run(force=True).was_done and copy.runs == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda copy, folder: (folder / "in" / "a.csv").write_text("12"),
        lambda copy, folder: os.utime(folder / "in" / "a.csv", (1, 1)),
        lambda copy, folder: (folder / "in" / "b.csv").write_text("2"),
        lambda copy, folder: (folder / "out" / "part.parquet").write_text("spoilt"),
        lambda copy, folder: (folder / "out" / "part.parquet").unlink(),
        lambda copy, folder: record_of(copy.out).remove(),
        lambda copy, folder: record_of(copy.out).write(b"{"),
        lambda copy, folder: record_of(copy.out).write(b"[]"),
        lambda copy, folder: setattr(copy, "step", copy.step._replace(options={"shards": 2})),
    ],
)
def test_whatever_changed_is_noticed(copy: Copy, tmp_path: Path, change: Any) -> None:
    copy.run()
    change(copy, tmp_path)
    assert not copy.run().was_done and copy.runs == 2
    assert copy.run().was_done


def test_files_that_are_no_tables_do_not_count(copy: Copy, tmp_path: Path) -> None:
    copy.run()
    (tmp_path / "in" / "_SUCCESS").write_text("")
    (tmp_path / "in" / ".a.csv.crc").write_text("")
    assert copy.run().was_done


def test_a_step_that_fails_is_not_done(copy: Copy) -> None:
    copy.run()

    def fail() -> dict[str, Any]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_step(copy.step, fail, force=True)
    assert not copy.run().was_done


def test_a_missing_input_is_named(copy: Copy, tmp_path: Path) -> None:
    for missing in ("nowhere", "*.nothing"):
        with pytest.raises(InvalidInput, match="no such file"):
            run_step(copy.step._replace(inputs=(str(tmp_path / missing),)), copy.work)


def test_globs_and_odd_names_are_found(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c[1].csv"):
        (tmp_path / name).write_text("")
    assert [Path(file).name for file in files_of(str(tmp_path / "?.csv"))] == ["a.csv", "b.csv"]
    assert files_of(str(tmp_path / "c[1].csv")) == [str(tmp_path / "c[1].csv")]


# -- pipeline files

WHOLE = """
out = "made"
[messages]
sources = ["raw/*.csv.gz"]
map = { text = "body", x = "lon", y = "lat" }
[subscriptions]
sources = ["subscriptions.parquet"]
[build]
shards = 4
space = [0, 0, 10, 10]
[match]
layout = "sharded"
[stream]
files = 3
changes = "changes"
"""


def test_a_pipeline_file_is_read_relative_to_itself(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(WHOLE)
    pipeline = read_pipeline(file)
    assert pipeline.out == tmp_path / "made" and pipeline.changes == str(tmp_path / "changes")
    assert pipeline.messages == Raw((str(tmp_path / "raw/*.csv.gz"),), {"text": "body", "x": "lon", "y": "lat"})
    assert (pipeline.shards, pipeline.layout, pipeline.stream_files, pipeline.method) == (4, "sharded", 3, "auto")
    assert pipeline.space == (0.0, 0.0, 10.0, 10.0)
    assert read_pipeline(file, tmp_path / "other").out == tmp_path / "other"
    names = [stage.step.name for stage in stages(pipeline)]
    assert names == ["ingest messages", "ingest subscriptions", "vocabulary", "statistics", "build", "match"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("out =", "ouch =", "unknown 'ouch'"),
        ("shards = 4", "shards = 0", "at least 1"),
        ("shards = 4", "shards = true", "is a int"),
        ("shards", "shard", r"unknown 'shard' in \[build\]"),
        ('"sharded"', '"scattered"', "one of auto, replicated, sharded"),
        ("[0, 0, 10, 10]", "[0, 0, 10]", "four numbers"),
        ('["raw/*.csv.gz"]', "[]", "list of files"),
        ("[messages]", "[messages", "cannot be read as TOML"),
        ('[match]\nlayout = "sharded"', "", "never raised"),
    ],
)
def test_a_bad_pipeline_file_is_refused_in_one_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    file = tmp_path / "p.toml"
    assert old in WHOLE
    file.write_text(WHOLE.replace(old, new, 1))
    if reason == "never raised":
        assert read_pipeline(file).layout == "auto"
        return
    with pytest.raises(InvalidInput, match=reason):
        read_pipeline(file)


# -- failures

WORKER = """An error occurred while calling o42.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times: org.apache
  File "pyspark/worker.py", line 1, in main
{}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1)
Caused by: java.io.EOFException: gone
"""


class SparkLike(Exception):
    __module__ = "pyspark.errors"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WORKER.format("nearcast.errors.InvalidInput: row 3, column 'x': not finite"), "row 3, column 'x': not finite"),
        (
            WORKER.format("Traceback (most recent call last):\nValueError: odd"),
            "a worker of Spark failed: ValueError: odd",
        ),
        (WORKER.format(""), "Spark failed: EOFException: gone"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x\nJVM stacktrace:\n at org", "Spark failed: [PATH_NOT_FOUND]"),
        ("", "Spark failed: SparkLike"),
    ],
)
def test_spark_s_failures_become_one_line(text: str, reason: str) -> None:
    with pytest.raises(NearcastError) as raised, plain_failures():
        raise SparkLike(text)
    assert str(raised.value).startswith(reason) and "\n" not in failure_reason(SparkLike(text))


def test_other_failures_pass(tmp_path: Path) -> None:
    with pytest.raises(KeyError), plain_failures():
        raise KeyError
    with pytest.raises(InvalidInput), plain_failures():
        raise InvalidInput("ours")


def test_a_record_is_plain_json(copy: Copy) -> None:
    copy.run()
    record = json.loads(record_of(copy.out).read())
    assert record["from"]["step"] == "copy" and record["result"]["rows"] == 3
    assert record_of(copy.out).name.startswith("."), "hidden: no reader takes it for a table"
