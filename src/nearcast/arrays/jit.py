"""The only import of Numba, and the house's flags.

`@kernel` compiles on first call and caches on disk. Every kernel also runs as plain Python (NUMBA_DISABLE_JIT=1), where
unsigned arithmetic that is meant to wrap would warn: there it runs with that warning off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from nearcast.arrays.kernel_cache import settle_cache

CACHE = settle_cache(Path(__file__).parents[1])

import numba  # noqa: E402  it reads its settings when it is imported
import numpy as np  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba import carray, types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

__all__ = ["CACHE", "JIT_DISABLED", "carray", "inline_kernel", "intrinsic", "ir", "kernel", "types"]

JIT_DISABLED = bool(numba.config.DISABLE_JIT)

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` with the house's flags.

    nogil: batches run on threads. error_model numpy: division gives inf and NaN, as the same line does in plain
    Python on arrays, and needs no branch. fastmath stays off: geometry leans on NaN and inf.
    """
    if JIT_DISABLED:
        return _plain(function)
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def inline_kernel(function: F) -> F:
    """A kernel that is pasted into its callers: for predicates of a few operations in a hot loop."""
    if JIT_DISABLED:
        return _plain(function)
    return numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function)  # type: ignore[no-any-return]


def _plain(function: F) -> F:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(*args)

    return run  # type: ignore[return-value]
