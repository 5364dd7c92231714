"""Processes that compile at the same time: each kernel once, and nothing lost. All are real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearcast.arrays.jit import JIT_DISABLED

KERNELS = """
from nearcast.arrays.jit import kernel

@kernel
def inner(values):
    total = values[0]
    for value in values:
        total += value
    return total

@kernel
def outer(values):
    return inner(values) + 1
"""

# Waits until all have started, so that they compile at the same time; tells what it compiled itself.
USE = """
import sys, time
from pathlib import Path
import numpy as np
import kernels
folder, name, together = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
(folder / f"{name}.here").touch()
while len(list(folder.glob("*.here"))) < together:
    time.sleep(0.001)
for dtype in sys.argv[4:]:
    assert kernels.outer(np.arange(5).astype(dtype)) == 11
print(sum(sum(each.stats.cache_misses.values()) for each in (kernels.inner, kernels.outer)))
"""


def compiled_by(tmp_path: Path, *orders: list[str]) -> list[int]:
    """How many kernels each of these processes compiled; an order is the types that it calls with, one by one."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    for file in tmp_path.glob("*.here"):
        file.unlink()
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": paths,
        "NEARCAST_COMPILE": "now",
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-c", USE, str(tmp_path), str(number), str(len(orders)), *types],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, types in enumerate(orders)
    ]
    told = [process.communicate()[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    return [int(each) for each in told]


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_each_kernel_is_compiled_by_one_process_for_each_type_and_none_is_lost(tmp_path: Path) -> None:
    types = ["int64", "float32", "uint8"]
    assert sum(compiled_by(tmp_path, types, types[::-1], types)) == 2 * len(types)
    assert compiled_by(tmp_path, types) == [0]


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_a_complete_cache_that_cannot_be_written_to_is_read(tmp_path: Path) -> None:
    assert compiled_by(tmp_path, ["int64"]) == [2]
    for file in tmp_path.glob("cache/*/*.turn"):
        file.unlink()
        file.mkdir()  # cannot be opened, whoever we are
    assert compiled_by(tmp_path, ["int64"]) == [0]
