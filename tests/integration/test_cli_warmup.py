"""`nearcast warmup`: what it reports, and how it ends when something goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from live_processes import descendants, processes
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.arrays.jit.background import Request
from nearcast.cli import warm_workers
from nearcast.cli.main import INTERRUPTED, app
from nearcast.cli.warm_workers import LONGEST, WarmUpFailed, compile_parts, longest_first, number_of_processes
from nearcast.engine.warm_up import COMMON, parts_of
from nearcast.spark.batch.one_process import PART

RADIX = "nearcast.arrays.radix"


def workers() -> list[int]:
    return [each.pid for each in descendants(os.getpid()) if "background import work" in each.command]


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests of each part, instead of those that the part would make."""
    chosen: list[Request] = []
    monkeypatch.setattr(warm_workers, "requests_of", lambda part, n_rows: list(chosen))
    return chosen


@pytest.mark.parametrize("count", ["1", "2"])
def test_it_reports_the_seconds_of_each_part(count: str) -> None:
    asked = ["warmup", "--methods", "keyword-first, brute, brute", "--processes", count, "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    seconds = json.loads(done.stdout)
    assert list(seconds) == [COMMON, "keyword-first", "brute"] and min(seconds.values()) > 0
    assert not workers()


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_a_kernel_that_does_not_compile_ends_all_and_is_named(requests: list[Request]) -> None:
    import numba

    requests += [Request(RADIX, "sort_each", (numba.int64,))] * 3
    with pytest.raises(WarmUpFailed, match=f"^compiling {RADIX}.sort_each failed: TypeError: Signature mismatch"):
        list(compile_parts(["one", "two"], 2))
    assert not workers()


def test_a_kernel_that_does_not_exist_ends_all_and_is_named(requests: list[Request]) -> None:
    requests.append(Request(RADIX, "no_such", ()))
    with pytest.raises(WarmUpFailed, match=f"^compiling {RADIX}.no_such failed: AttributeError: module '{RADIX}' has"):
        list(compile_parts(["one"], 50))
    assert not workers()


def test_a_process_that_dies_is_an_error_and_not_a_wait(requests: list[Request]) -> None:
    requests.append(Request("time", "sleep", (100,)))
    steps = compile_parts(["one"], 3)
    assert next(steps).known == 1
    (worker,) = workers()  # no more processes than kernels
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(WarmUpFailed, match="^compiling time.sleep failed: the compiling process ended with code -9$"):
        next(steps)
    assert not workers()


def test_whoever_leaves_early_ends_the_processes(requests: list[Request]) -> None:
    requests += [Request("time", "sleep", (number,)) for number in range(5)]
    steps = compile_parts(["one"], 2)
    next(steps)
    assert len(workers()) == 2
    steps.close()
    assert not workers()


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_interrupting_ends_the_processes_without_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from nearcast.cli.main import main; main()", "warmup", "--processes", "2"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    while len(found := {each.pid for each in descendants(started.pid)}) < 2:
        assert started.poll() is None
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does
    _, errors = started.communicate(timeout=60)
    assert (started.returncode, errors) == (INTERRUPTED, "interrupted\n")
    while found & {each.pid for each in processes() if each.command}:  # the dead have none
        time.sleep(0.05)


def test_a_number_of_processes_below_one_is_refused() -> None:
    assert CliRunner().invoke(app, ["warmup", "--processes", "0"]).exit_code == 2
    assert number_of_processes(None) >= 1 and number_of_processes(3) == 3


def test_where_processes_cannot_take_turns_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_workers, "can_take_turns", lambda: False)
    assert number_of_processes(None) == number_of_processes(3) == 1


def test_the_part_that_others_need_comes_first_then_the_long_parts() -> None:
    parts = [*parts_of(), PART]
    ordered = longest_first(parts)
    assert sorted(ordered) == sorted(parts)
    assert set(LONGEST) <= set(parts) and tuple(ordered[: len(LONGEST)]) == LONGEST
