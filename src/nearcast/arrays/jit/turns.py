"""File locks for processes that compile into one cache: one process compiles a kernel, and the others load it.

Numba writes each file of a kernel atomically. But two processes that add a signature to the index of one kernel at the
same time may lose an entry or use the same file twice, and both would compile the same kernel. A process keeps the lock
of a kernel while it waits for the lock of a kernel that it calls. No kernel is recursive, so there is no deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_mine: set[Path] = set()
"""The lock files that this process has locked."""


def can_take_turns() -> bool:
    """Whether file locks are available. They are not on Windows."""
    return find_spec("fcntl") is not None


@contextmanager
def turn(function: Callable[..., Any], folder: Path) -> Iterator[None]:
    """Lock one kernel in a folder of the cache. No lock is taken if this process has it already."""
    code = function.__code__
    file = folder / f"{code.co_name}-{code.co_firstlineno}.turn"
    if file in _mine or not can_take_turns():
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
