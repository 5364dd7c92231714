"""Kernels are interpreted until another process has compiled them. Every test runs real processes on an empty cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from live_processes import processes
from nearcast.arrays.jit import JIT_DISABLED

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

KERNELS = """
import numpy as np
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import lowest_bit

@kernel
def double(values):
    total = np.uint64(1) << np.uint64(63)
    for value in values:
        total = total * np.uint64(2) + np.uint64(value)  # wraps
    return total

@kernel
def outer(values):
    return double(values) + np.uint64(lowest_bit(8))
"""

START = """
import os, sys, time
import numpy as np
import kernels
from nearcast.arrays.jit.background import BACKGROUND

values = np.arange(5)
compiled = lambda: sum(sum(each.stats.cache_misses.values()) for each in (kernels.double, kernels.outer))
"""

WAIT = """
while not kernels.outer.signatures:
    assert kernels.outer(values) == 29
    time.sleep(0.01)
assert kernels.outer(values) == 29
print(compiled(), len(kernels.double.signatures))
"""


def environment(folder: Path, mode: str) -> dict[str, str]:
    (folder / "kernels.py").write_text(KERNELS)
    paths = os.pathsep.join([str(folder), *sys.path])
    return os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": paths, "NEARCAST_COMPILE": mode}


def run(folder: Path, code: str, mode: str = "background") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", START + code]
    return subprocess.run(command, capture_output=True, text=True, env=environment(folder, mode), timeout=120)


def output(folder: Path, code: str, mode: str = "background") -> str:
    done = run(folder, code, mode)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.strip()


def is_alive(pid: int) -> bool:
    return any(each.pid == pid and each.command for each in processes())


def test_calls_are_interpreted_until_the_other_process_has_compiled_the_kernel(tmp_path: Path) -> None:
    assert output(tmp_path, WAIT) == "0 0"  # nothing was compiled here, and the inner kernel has no entry of its own
    assert (
        output(tmp_path, "assert kernels.outer(values) == 29; print(BACKGROUND._process)") == "None"
    )  # from the cache


def test_never_means_plain_python_and_no_other_process(tmp_path: Path) -> None:
    code = "assert kernels.outer(values) == 29; print(compiled(), len(kernels.outer.signatures), BACKGROUND._process)"
    assert output(tmp_path, code, "never") == "0 0 None"
    assert not list(tmp_path.glob("cache/kernels*/*.nbc"))


def test_never_uses_what_is_in_the_cache(tmp_path: Path) -> None:
    code = "assert kernels.outer(values) == 29; print(compiled(), len(kernels.outer.signatures))"
    assert output(tmp_path, code, "now") == "2 1"
    assert output(tmp_path, code, "never") == "0 1"


def test_a_large_call_waits_for_the_compiler(tmp_path: Path) -> None:
    assert output(tmp_path, "kernels.outer(np.zeros(300_000, np.int64)); print(compiled())") == "2"


def test_a_long_wait_is_explained_once_where_logging_wants_it(tmp_path: Path) -> None:
    code = (
        "import logging; logging.basicConfig(level=logging.INFO, format='%(name)s: %(message)s')\n"
        "from nearcast.arrays.jit import mode; mode.PATIENCE = 0.01\n"
        "for dtype in ('int64', 'int32'): kernels.outer(np.zeros(300_000, dtype))"
    )
    done = run(tmp_path, code)
    assert done.stderr.count("nearcast: compiling") == 1 and "the first time" in done.stderr, done.stderr


def test_an_inner_kernel_gets_its_entry_when_python_calls_it(tmp_path: Path) -> None:
    code = (
        "kernels.outer(values); assert kernels.double(values) == 26; print(compiled(), len(kernels.double.signatures))"
    )
    assert output(tmp_path, code, "now") == "3 1"
    assert output(tmp_path, code, "now") == "0 1"


def test_a_mode_that_does_not_exist_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    done = run(tmp_path, "", "later")
    assert "NEARCAST_COMPILE is 'later'; use now, background or never" in done.stderr


@pytest.mark.parametrize("how", ["", "os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 15)", "raise SystemExit(3)"])
def test_the_other_process_ends_with_this_one(tmp_path: Path, how: str) -> None:
    done = run(tmp_path, f"kernels.outer(values); print(BACKGROUND._process.pid, flush=True); {how}")
    assert done.stderr == ""
    while is_alive(int(done.stdout)):  # only a process that was killed leaves it a moment to notice
        assert not how == "" and not how.startswith("raise")
        time.sleep(0.05)
    assert output(tmp_path, WAIT) == "0 0"  # the cache is whole


def test_interrupting_ends_both_without_a_second_traceback(tmp_path: Path) -> None:
    code = START + "kernels.outer(values); print(BACKGROUND._process.pid, flush=True); time.sleep(60)"
    started = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(tmp_path, "background"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdout is not None
    pid = int(started.stdout.readline())
    os.killpg(started.pid, signal.SIGINT)
    errors = started.communicate(timeout=60)[1]
    assert errors.count("Traceback") == 1 and errors.endswith("KeyboardInterrupt\n") and not is_alive(pid)


def test_a_process_that_dies_leaves_the_kernels_to_this_one(tmp_path: Path) -> None:
    code = "kernels.outer(values); BACKGROUND._process._process.kill(); " + WAIT
    assert output(tmp_path, code) == "2 1"


def test_a_process_without_work_ends_and_another_takes_the_next_kernel(tmp_path: Path) -> None:
    code = (
        "from nearcast.arrays.jit import background; background.IDLE = 0.1\n"
        + WAIT
        + "first = BACKGROUND._process; first._process.wait(); "
        "kernels.outer(values.astype(np.int32)); print(BACKGROUND._process not in (None, first))"
    )
    assert output(tmp_path, code) == "0 0\nTrue"


def test_a_forked_process_starts_its_own(tmp_path: Path) -> None:
    code = (
        "kernels.outer(values); first = BACKGROUND._process.pid; child = os.fork()\n"
        "if child == 0:\n    kernels.outer(values); os._exit(BACKGROUND._process.pid == first)\n"
        "print(os.waitpid(child, 0)[1], BACKGROUND._process._process.poll())"
    )
    assert output(tmp_path, code) == "0 None"


def damage(file: Path, how: str) -> None:
    data = file.read_bytes()
    at = len(data) // 2
    file.write_bytes(
        {"cut": data[:at], "flipped": data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "empty": b""}[how]
    )


@pytest.mark.parametrize("how", ["cut", "flipped", "empty"])
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_cache_is_discarded_and_written_again(tmp_path: Path, suffix: str, how: str) -> None:
    code = "assert kernels.outer(values) == 29; print(compiled())"
    output(tmp_path, code, "now")
    for file in tmp_path.glob(f"cache/kernels*/*outer*.{suffix}"):
        damage(file, how)
    again = run(tmp_path, code, "now")
    assert again.returncode == 0 and again.stdout.strip() == "1"
    assert again.stderr.count("is damaged and is compiled again") == 1
    assert output(tmp_path, code, "now") == "0"


def count_compilations(environment: dict[str, str], code: str) -> Any:
    counted = "\nimport gc\nfrom nearcast.arrays.jit.dispatcher import Kernel\n" + (
        "print(sum(sum(each.stats.cache_misses.values()) for each in gc.get_objects() if isinstance(each, Kernel)))"
    )
    done = subprocess.run([sys.executable, "-c", code + counted], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_the_readmes_ten_lines_compile_nothing_in_their_process(tmp_path: Path) -> None:
    readme = Path(__file__).parents[3] / "README.md"
    code = readme.read_text().split("```python\n")[1].split("```")[0]
    assert count_compilations(environment(tmp_path, "background"), code) == 0
