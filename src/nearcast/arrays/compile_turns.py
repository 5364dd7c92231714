"""Processes that compile into one cache at the same time take turns at each kernel: one compiles it, others load it.

Numba writes a kernel's files whole, but two processes that add to the list of one kernel's signatures at once may lose
an entry, or give two of them the same file; and each would compile what the other does. A caller holds its own turn
while it waits for that of a kernel it calls: no kernel calls itself through others, so nobody waits in a circle.
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
"""Taken before any turn: a thread with a turn must never wait for Numba's own lock in the hands of another thread."""
_mine: set[Path] = set()


def can_take_turns() -> bool:
    """Not on Windows, which has other locks."""
    return find_spec("fcntl") is not None


def take_turns() -> None:
    """From now on, in this process: among all that have called this and share the cache's folder."""
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
    """What `kernel` makes of it is of the class of all kernels."""


@contextmanager
def _turn(dispatcher: Any) -> Iterator[None]:
    """The only one at this kernel; at once for functions that are not ours, and for whom has the turn already."""
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
    """Until the end of the block, or of the process. Where nothing can be written there is nothing to keep in order."""
    import fcntl

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        held = file.open("a")
    except OSError:
        yield
        return
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
