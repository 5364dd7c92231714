"""Numba without needless work compiles the same code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearcast.arrays.jit import JIT_DISABLED

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

COMPILE = """
import sys
import numba, numpy as np
from numba.core import event
from nearcast.arrays.jit.lean_numba import make_lean

if sys.argv[1] == "lean":
    make_lean()

@numba.njit
def total(values, pairs):
    out = 0.0
    for k, (low, high) in enumerate(pairs):
        if low <= values[k] < high or not values.any():
            out += np.sqrt(values[k:].sum())
    return out

with event.install_recorder("numba:llvm_lock") as recorder:
    total(np.arange(3.0), ((0.0, 1.0), (1.0, 9.0), (2.0, 2.0)))
assert (len(recorder.buffer) == 0) == (sys.argv[1] == "lean")
(code,) = total.inspect_asm().values()
print(code)
"""


def test_lean_numba_compiles_the_same_code(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(COMPILE)
    plain, lean = (_output(program, way, tmp_path) for way in ("plain", "lean"))
    assert "total" in plain
    assert plain == lean


def _output(program: Path, way: str, folder: Path) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(program), way]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
