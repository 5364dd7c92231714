"""Kernels that count no references: none may return an array. Plain Python sees that, so it is asked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

MATCHES = """
import nearcast.indexes
from nearcast.matching.checks.cases import answers, built
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
for largest in (0.0, 0.3):
    answers(built({method!r}, random_subscriptions(12, 200)), random_messages(13, 6, largest=largest))
"""
RETURNS_AN_ARRAY = """
import numpy as np
from nearcast.arrays.jit import lean_kernel
@lean_kernel
def first_half(values):
    return {result}
first_half(np.zeros(4))
"""


def run_plain(program: str) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(
        [sys.executable, "-c", program], env=surroundings, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("method", ["pyramid", "ap-tree", "lfilter"])
def test_a_kernel_that_counts_no_references_returns_no_array(method: str) -> None:
    done = run_plain(MATCHES.format(method=method))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("result", ["values[:2]", "(1, values[:2])"])
def test_one_that_does_is_named(result: str) -> None:
    assert "first_half returns an array" in run_plain(RETURNS_AN_ARRAY.format(result=result)).stderr
