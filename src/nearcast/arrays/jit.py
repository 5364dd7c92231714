"""The kernel decorators, and the only import of Numba.

A kernel is compiled at its first call and cached on disk. Every kernel also runs as plain Python (NUMBA_DISABLE_JIT=1),
without NumPy's warnings about unsigned arithmetic that wraps on purpose.
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
    """Compile `function` with the flags of this project.

    nogil: batches run on threads. error_model numpy: division gives inf and NaN, as it does for arrays in plain Python,
    and needs no branch. fastmath stays off: geometry relies on NaN and inf.
    """
    if JIT_DISABLED:
        return _plain(function)
    return _compiled(function)


def inline_kernel(function: F) -> F:
    """A kernel that is inlined into its callers: for predicates of a few operations in a hot loop."""
    if JIT_DISABLED:
        return _plain(function)
    return _compiled(function, inline="always")


def lean_kernel(function: F) -> F:
    """A kernel without reference counting. It must not create or return an array, nor call a kernel that does.

    Counting takes an atomic operation for each array of each tuple: some 100 a message in `pyramid`, a quarter of its
    time in cache. The caller would release a returned array that was never counted. In plain Python every call checks
    that no array is returned.
    """
    if JIT_DISABLED:
        return _plain(_without_arrays(function))
    return _compiled(function, _nrt=False)


def _compiled(function: F, inline: str = "never", **more: Any) -> F:
    """Numba reads the setting of the cache location here, once; the user's own functions keep theirs."""
    previous = numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_LOCATOR_CLASSES = f"{KernelLocator.__module__}.{KernelLocator.__qualname__}"
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy", inline=inline, **more)(function)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = previous


def _without_arrays(function: F) -> F:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        result = function(*args)
        parts = result if isinstance(result, tuple) else (result,)
        assert not any(isinstance(part, np.ndarray | tuple) for part in parts), f"{function.__name__} returns an array"
        return result

    return cast(F, run)


def _plain(function: F) -> F:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return function(*args)

    return cast(F, run)
