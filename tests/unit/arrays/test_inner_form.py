"""Kernels that only other kernels call are compiled to bitcode, without machine code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nearcast.arrays.jit import JIT_DISABLED

pytestmark = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")

KERNELS = """
import numpy as np
from nearcast.arrays.jit import kernel

@kernel
def doubled(values):
    return values * 2 if values.sum() > 3 else values

@kernel
def total(values):
    return doubled(values).sum()

@kernel
def larger(values):
    return doubled(values).max()
"""

COMPILE_BOTH = """
import numpy as np, kernels
assert kernels.total(np.arange(4)) == 12
assert kernels.larger(np.arange(4)) == 6
form, = kernels.doubled.overloads.values()
print(type(form.library).__name__, kernels.doubled._cache_hits.total(), len(kernels.doubled.signatures))
"""

CALL_FROM_PYTHON = """
import numpy as np, kernels
assert kernels.total(np.arange(4)) == 12  # contains the inner form
assert kernels.doubled(np.arange(4)).tolist() == [0, 2, 4, 6]  # needs the outer form
form, = kernels.doubled.overloads.values()
print(type(form.library).__name__, *kernels.doubled._inner)
"""

ONE_MORE_CALLER = """
import numpy as np, kernels
from nearcast.arrays.jit import kernel

@kernel
def smallest(values):
    return kernels_doubled(values).min()

kernels_doubled = kernels.doubled
kernels.doubled._compiler.compile = None  # must come from the cache
assert smallest(np.arange(1, 4)) == 2
form, = kernels.doubled.overloads.values()
print(type(form.library).__name__)
"""


def run(program: str, folder: Path) -> str:
    (folder / "kernels.py").write_text(KERNELS)
    script = folder / "script.py"
    script.write_text(program)
    environment = os.environ | {"NEARCAST_COMPILE": "now", "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_kernel_that_only_kernels_call_has_no_machine_code(tmp_path: Path) -> None:
    assert run(COMPILE_BOTH, tmp_path) == "InnerLibrary 0 1"


def test_the_inner_form_is_loaded_from_the_cache_for_another_caller(tmp_path: Path) -> None:
    run(COMPILE_BOTH, tmp_path)
    assert run(ONE_MORE_CALLER, tmp_path) == "InnerLibrary"


def test_a_kernel_that_python_calls_too_gets_the_outer_form(tmp_path: Path) -> None:
    run(COMPILE_BOTH, tmp_path)
    assert run(CALL_FROM_PYTHON, tmp_path) == "JITCodeLibrary"
