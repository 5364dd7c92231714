"""File locks for processes that compile into one cache: one process compiles a kernel, and the others load it.

Numba writes each file of a kernel atomically. But two processes that add a signature to the index of one kernel at the
same time may lose an entry or use the same file twice, and both would compile the same kernel. A process keeps the lock
of a kernel while it waits for the lock of a kernel that it calls. No kernel is recursive, so there is no deadlock.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.kernel_cache import cache_folder

_compiling = threading.RLock()
"""Taken before any file lock: a thread with a file lock must never wait for a thread that has Numba's own lock."""
_mine: set[Path] = set()
"""The lock files that this process has locked."""


def can_take_turns() -> bool:
    """Whether file locks are available. They are not on Windows."""
    return find_spec("fcntl") is not None


def take_turns() -> None:
    """Lock each kernel while this process compiles it, against all processes that called this and share the cache."""
    if JIT_DISABLED:
        return
    compiled: Any = type(kernel(_nothing))
    alone = compiled.compile

    @functools.wraps(alone)
    def compile_in_turn(dispatcher: Any, signature: Any) -> Any:
        with _compiling, _turn(dispatcher):
            return alone(dispatcher, signature)

    compiled.compile = compile_in_turn


def _nothing() -> None:
    """A function to make a kernel of, for the class of all kernels."""


@contextmanager
def _turn(dispatcher: Any) -> Iterator[None]:
    """Lock one kernel. No lock is taken for functions of others, or if this process has it already."""
    folder = dispatcher.stats.cache_path
    if folder is None or Path(folder).parent != cache_folder():
        yield
        return
    code = dispatcher.py_func.__code__
    file = Path(folder) / f"{code.co_name}-{code.co_firstlineno}.turn"
    if file in _mine:
        yield
        return
    with _locked(file):
        _mine.add(file)
        try:
            yield
        finally:
            _mine.remove(file)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Lock a file until the end of the block. No lock is taken where the cache cannot be written."""
    import fcntl

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = file.open("a")
    except OSError:
        yield
        return
    with opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
