"""The kernel decorators. This package has the only imports of Numba.

A kernel is compiled when it is first called and cached on disk. Every kernel also runs as plain Python, without NumPy's
warnings about unsigned arithmetic that wraps on purpose: while it is not compiled yet, and with NUMBA_DISABLE_JIT=1.

dispatcher.py     the kernel object: compiled, loaded or interpreted;  mode.py  NEARCAST_COMPILE and the user's choice
background.py     the process that compiles for this process
cache_folder.py   where a compiled kernel is kept;  cache_files.py  its files, with checksums;  turns.py  file locks
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

from nearcast.arrays.jit.dispatcher import Kernel, interpreted

__all__ = ["JIT_DISABLED", "carray", "inline_kernel", "intrinsic", "ir", "kernel", "lean_kernel", "types"]

JIT_DISABLED = bool(numba.config.DISABLE_JIT)

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F | None = None, *, plain: Callable[..., Any] | None = None) -> Any:
    """Compile `function` with the flags of this project.

    nogil: batches run on threads. error_model numpy: division gives inf and NaN, as it does for arrays in plain Python,
    and needs no branch. fastmath stays off: geometry relies on NaN and inf.

    Args:
        plain: does the same in plain Python, for a function that plain Python cannot run.
    """
    if function is None:
        return functools.partial(_compiled, plain=plain)
    return _compiled(function)


def inline_kernel(function: F) -> F:
    """A kernel that LLVM always inlines into its callers: for predicates of a few operations in a hot loop.

    Numba's own inlining compiled the function again at each call: 35 s instead of 27 for the kernels of texts.
    """
    return _compiled(function, forceinline=True)


def lean_kernel(function: F) -> F:
    """A kernel without reference counting. It must not create or return an array, nor call a kernel that does.

    Counting takes an atomic operation for each array of each tuple: some 100 a message in `pyramid`, a quarter of its
    time in cache. The caller would release a returned array that was never counted. In plain Python every call checks
    that no array is returned.
    """
    return _compiled(function, plain=_without_arrays(function), _nrt=False)


def _compiled(function: F, plain: Callable[..., Any] | None = None, **more: Any) -> F:
    run = interpreted(plain or function)
    if JIT_DISABLED:
        return cast(F, run)
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "boundscheck": None, **more}
    compiled = Kernel(function, targetoptions=options)
    compiled.plain = run
    return cast(F, compiled)


def _without_arrays(function: F) -> F:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        result = function(*args)
        parts = result if isinstance(result, tuple) else (result,)
        assert not any(isinstance(part, np.ndarray | tuple) for part in parts), f"{function.__name__} returns an array"
        return result

    return cast(F, run)
