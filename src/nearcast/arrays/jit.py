"""The only import of Numba, and the house's flags.

`@kernel` compiles on first call and caches on disk. Every kernel also runs as plain Python (NUMBA_DISABLE_JIT=1), where
unsigned arithmetic that is meant to wrap would warn: there it runs with that warning off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from nearcast.arrays.kernel_cache import KernelLocator

__all__ = ["JIT_DISABLED", "carray", "inline_kernel", "intrinsic", "ir", "kernel", "lean_kernel", "types"]

JIT_DISABLED = bool(numba.config.DISABLE_JIT)

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` with the house's flags.

    nogil: batches run on threads. error_model numpy: division gives inf and NaN, as the same line does in plain
    Python on arrays, and needs no branch. fastmath stays off: geometry leans on NaN and inf.
    """
    if JIT_DISABLED:
        return _plain(function)
    return _compiled(function)


def inline_kernel(function: F) -> F:
    """A kernel that is pasted into its callers: for predicates of a few operations in a hot loop."""
    if JIT_DISABLED:
        return _plain(function)
    return _compiled(function, inline="always")


def lean_kernel(function: F) -> F:
    """A kernel that makes and returns no array, nor calls one that does: it counts no references to those it is given.

    Counting is an atomic operation for each array of a tuple that is named: some 100 a message in `pyramid`, a quarter
    of its time in cache. What it returned would be counted down by its caller without ever having been counted up; as
    plain Python it is checked.
    """
    if JIT_DISABLED:
        return _plain(_without_arrays(function))
    return _compiled(function, _nrt=False)


def _compiled(function: F, inline: str = "never", **more: Any) -> F:
    """Numba takes the place of the cache from its settings, once, here: those of the user's own functions stay."""
    theirs = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = f"{KernelLocator.__module__}.{KernelLocator.__qualname__}"
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy", inline=inline, **more)(function)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = theirs


def _without_arrays(function: F) -> F:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        result = function(*args)
        given = result if isinstance(result, tuple) else (result,)
        assert not any(isinstance(each, np.ndarray | tuple) for each in given), f"{function.__name__} returns an array"
        return result

    return cast(F, run)


def _plain(function: F) -> F:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(*args)

    return cast(F, run)
