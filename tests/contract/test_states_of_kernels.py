"""The shipped checks give the same verdict whether kernels are interpreted, compiled, or some of each.

Compiled kernels are what all other contract tests run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.engine.catalogue import methods

QUICK = ("brute", "pyramid")

CHECK = """
import sys, zlib
import nearcast.indexes
from nearcast.arrays.jit.dispatcher import Kernel
from nearcast.matching.checks import checks_of

name, remainder = sys.argv[1], int(sys.argv[2])
if remainder >= 0:  # half of the kernels are interpreted, the others are compiled
    chosen = lambda kernel, args: zlib.crc32(kernel.__qualname__.encode()) % 2 == remainder
    Kernel._is_better_interpreted = chosen
failures = {each.check: failure for each in checks_of(name) if each.known_gap is None and (failure := each.run())}
print(failures)
"""


def failures(name: str, state: str, folder: Path) -> str:
    environment = dict(os.environ)
    if state == "interpreted":
        environment |= {"NEARCAST_COMPILE": "never", "NUMBA_CACHE_DIR": str(folder)}
    remainder = {"interpreted": -1, "one half": 0, "the other half": 1}[state]
    command = [sys.executable, "-c", CHECK, name, str(remainder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert not list(folder.glob("*/*.nbc"))
    return done.stdout.strip()


def methods_to_check() -> list[object]:
    return [
        pytest.param(info.name, marks=() if info.name in QUICK else pytest.mark.slow)
        for info in methods()
        if info.name != "auto"
    ]


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
@pytest.mark.parametrize("state", ["interpreted", "one half", "the other half"])
@pytest.mark.parametrize("name", methods_to_check())
def test_the_checks_pass_in_every_state(name: str, state: str, tmp_path: Path) -> None:
    assert failures(name, state, tmp_path) == "{}"
