"""The kernel object: runs compiled code, loads it from the cache, compiles it, or interprets the function meanwhile.

When a kernel is called with types for which this process has no compiled code, Numba calls `_compile_for_args` and then
calls whatever that returns. If it returns the plain function, this one call is interpreted.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import dispatcher, sigutils
from numba.core import types as numba_types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from nearcast.arrays.jit.background import BACKGROUND, State
from nearcast.arrays.jit.cache_files import KernelCache
from nearcast.arrays.jit.inner_form import KernelFlags, KernelPipeline, register, set_environments
from nearcast.arrays.jit.mode import Mode, compile_mode, noting_waits
from nearcast.arrays.jit.turns import turn

LARGE = 200_000
"""Elements in all arrays of a call. Interpreting takes microseconds for each; larger calls wait for the compiler."""

_nested = 0
"""Kernels that are being compiled: above 0, the next kernel is compiled for another one. Numba's lock guards it."""
_thread = threading.local()


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as plain Python. Kernels that it calls are plain too, and unsigned arithmetic wraps quietly."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        if _is_interpreting():
            return function(*args)
        _thread.interprets = True
        try:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                return _as_compiled(function(*args))
        finally:
            _thread.interprets = False

    return run


def _as_compiled(result: Any) -> Any:
    """Numbers as compiled code returns them: Python's, not NumPy's."""
    if isinstance(result, np.generic):
        return result.item()
    if isinstance(result, tuple):
        parts = map(_as_compiled, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result


def _is_interpreting() -> bool:
    return getattr(_thread, "interprets", False)


class Kernel(CPUDispatcher):
    """A function that is compiled for each combination of argument types.

    A kernel has two compiled forms. The outer form can be called from Python. The inner form is for other kernels: it
    lacks the code that takes Python's arguments apart, which is longer than most kernels, and machine code.

    Attributes:
        plain: does the same in plain Python.
    """

    def __init__(
        self, py_func: Any, locals: Any = None, targetoptions: Any = None, pipeline_class: Any = KernelPipeline
    ) -> None:
        super().__init__(py_func, locals, targetoptions, pipeline_class)
        self._compiler = _KernelCompiler(py_func, self.targetdescr, self.targetoptions, self.locals, pipeline_class)
        self._cache = KernelCache(py_func)
        self.plain = interpreted(py_func)
        self._inner: set[Any] = set()  # argument types of the overloads in the inner form
        self._absent: set[Any] = set()  # argument types that were not in the cache, each with the round

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        """What Numba calls next, for a call without compiled code in this process."""
        if _is_interpreting() or self._is_better_interpreted(args):
            return self.plain
        with noting_waits():
            return super()._compile_for_args(*args, **kws)

    def _is_better_interpreted(self, args: tuple[Any, ...]) -> bool:
        mode = compile_mode() if BACKGROUND.collected is None else Mode.BACKGROUND
        if mode is Mode.NOW:
            return False
        types = tuple(self.typeof_pyval(arg) for arg in args)
        if (BACKGROUND.round, types) not in self._absent:
            if self._load(types, inner=False):
                return False
            self._absent.add((BACKGROUND.round, types))
        if mode is Mode.NEVER:
            return True
        is_small = size(args) <= LARGE or BACKGROUND.collected is not None
        return is_small and BACKGROUND.state(self, types) is State.WAITING

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The type of a call in another kernel. Constant arguments do not get compiled forms of their own."""
        return super().get_call_template([numba_types.unliteral(arg) for arg in args], kws)

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        """Compile or load the form that is needed; return the function that Python calls.

        Numba's lock comes before any file lock: a thread with a file lock must not wait for another thread.
        """
        global _nested
        types, inner = tuple(sigutils.normalize_signature(sig)[0]), _nested > 0
        if not inner and types in self._inner:
            self._inner.remove(types)
            del self.overloads[types]
        if types in self.overloads or self._load(types, inner):
            return self.overloads[types].entry_point
        with turn(self.py_func, Path(self._cache.cache_path)):
            self._set_form(inner)
            _nested += 1
            try:
                return super().compile(sig)  # first looks again into the cache: another process may have been quicker
            finally:
                _nested -= 1

    @global_compiler_lock
    def _load(self, types: tuple[Any, ...], inner: bool) -> bool:
        """Load a form from the cache; return whether there was one. The outer form does for other kernels as well."""
        for form in (True, False) if inner else (False,):
            self._set_form(form)
            if (found := self._cache.load_overload(types, self.targetctx)) is not None:
                self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
                self.add_overload(found)
                return True
        return False

    def _set_form(self, inner: bool) -> None:
        self._cache.inner = self._compiler.inner = inner

    def add_overload(self, compiled: Any) -> None:
        """Take a compiled form. Numba must not call the inner form from Python: it has no entry."""
        if not self._compiler.inner:
            super().add_overload(compiled)
            return
        types = tuple(compiled.signature.args)
        self.overloads[types] = compiled
        self._inner.add(types)


class _KernelCompiler(dispatcher._FunctionCompiler):
    inner = False

    def _customize_flags(self, flags: Any) -> Any:
        flags = KernelFlags(flags)
        flags.no_cfunc_wrapper = True  # for calls from C: nobody makes them
        flags.no_cpython_wrapper = flags.no_compile = self.inner
        return flags

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        compiled = super()._compile_core(args, return_type)
        if self.inner:
            return register(compiled, self.targetdescr.target_context)
        set_environments(compiled)
        return compiled


def size(value: Any) -> int:
    """The number of elements of all arrays in an argument, or in nested tuples of arguments."""
    if isinstance(value, np.ndarray):
        return value.size
    return sum(map(size, value)) if isinstance(value, tuple) else 0
