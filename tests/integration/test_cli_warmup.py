"""`nearcast warmup` in several processes: what it tells, and how it ends when something goes wrong."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from live_processes import descendants, is_deaf_to_interrupts, processes
from nearcast.arrays.jit import turns as compile_turns
from nearcast.cli.main import INTERRUPTED, app
from nearcast.cli.warm_workers import LONGEST, WarmUpFailed, longest_first, number_of_processes, warm_in_processes
from nearcast.engine.warm_up import COMMON, parts_of
from nearcast.spark.batch.warm_up import PART


def workers() -> list[int]:
    return [process.pid for process in multiprocessing.active_children() if process.pid is not None]


@pytest.mark.parametrize("count", ["1", "2"])
def test_it_tells_the_seconds_of_each_part(count: str) -> None:
    asked = ["warmup", "--methods", "keyword-first, brute, brute", "--processes", count, "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    seconds = json.loads(done.stdout)
    assert list(seconds) == [COMMON, "keyword-first", "brute"] and min(seconds.values()) > 0
    assert not workers()


def test_more_processes_than_parts_are_not_started() -> None:
    parts = warm_in_processes(["brute"], 50)
    name, seconds = next(parts)
    assert name == "brute" and seconds > 0 and len(workers()) == 1
    assert list(parts) == [] and not workers()


def test_a_part_that_fails_ends_all_and_is_named() -> None:
    with pytest.raises(WarmUpFailed, match="^compiling no such failed: UnknownMethod: no method 'no such'"):
        list(warm_in_processes(["no such", "brute", "keyword-first"], 2))
    assert not workers()


def test_a_process_that_dies_is_an_error_and_not_a_wait() -> None:
    parts = warm_in_processes(["brute", "keyword-first"], 1)
    next(parts)
    (worker,) = workers()
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(WarmUpFailed, match="^compiling keyword-first failed: its process ended with code -9$"):
        next(parts)
    assert not workers()


def test_whoever_leaves_early_ends_the_processes() -> None:
    parts = warm_in_processes(["brute", "keyword-first"], 2)
    next(parts)
    parts.close()
    assert not workers()


def test_interrupting_ends_the_processes_without_a_traceback() -> None:
    command = [sys.executable, "-c", "from nearcast.cli.main import main; main()", "warmup", "--processes", "2"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while len(found := {each.pid for each in descendants(started.pid)}) < 3:  # two, and one of Python's own
        assert started.poll() is None
        time.sleep(0.05)
    assert all(map(is_deaf_to_interrupts, found))  # from their first instruction on, so also while they import
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does
    _, errors = started.communicate(timeout=60)
    assert (started.returncode, errors) == (INTERRUPTED, "interrupted\n")
    while found & {each.pid for each in processes() if each.command}:  # the dead have none
        time.sleep(0.05)


def test_a_number_of_processes_below_one_is_refused() -> None:
    assert CliRunner().invoke(app, ["warmup", "--processes", "0"]).exit_code == 2
    assert number_of_processes(None) >= 1 and number_of_processes(3) == 3


def test_where_processes_cannot_take_turns_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_turns, "can_take_turns", lambda: False)
    assert number_of_processes(None) == number_of_processes(3) == 1


def test_long_parts_come_first_and_auto_which_tries_the_others_last() -> None:
    parts = [*parts_of(), PART]
    ordered = longest_first(parts)
    assert sorted(ordered) == sorted(parts) and ordered[-1] == "auto"
    assert set(LONGEST) <= set(parts) and tuple(ordered[: len(LONGEST)]) == LONGEST
