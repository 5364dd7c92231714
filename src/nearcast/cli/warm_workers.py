"""Worker processes that compile kernels in parallel: each takes the next part when it has finished one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from nearcast.errors import NearcastError

LONGEST = (
    "text and places",
    "pyramid",
    "rt++-tree",
    "lfilter",
    "ap-tree",
    "rt+-tree",
    "ir-tree",
    "iq-tree",
    "pipeline",
)
"""The parts that take 150 to 20 seconds with an empty cache, longest first; the part that others need is the first of
all. The other parts take 17 seconds or less."""


class WarmUpFailed(NearcastError):
    """A part could not be compiled, or a worker process ended early."""


def number_of_processes(wanted: int | None) -> int:
    """The wanted number, or one per usable core; 1 on systems where processes cannot take turns at a kernel."""
    from nearcast.arrays.jit.turns import can_take_turns

    if not can_take_turns():
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return wanted or cores or 1


def longest_first(parts: Sequence[str]) -> list[str]:
    """The order for several processes: no process should begin a long part when the others are done. `auto` uses the
    kernels of other methods and comes last, when those are compiled.
    """
    place = {part: k for k, part in enumerate(LONGEST)}
    return sorted(parts, key=lambda part: (part == "auto", place.get(part, len(place))))


def warm_here(parts: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Compile part by part in this process; yield (part, seconds)."""
    for part in parts:
        yield part, _warm(part)


def warm_in_processes(parts: Sequence[str], processes: int) -> Generator[tuple[str, float], None, None]:
    """Compile in several processes; yield (part, seconds) when a part is done. The processes end with the iteration."""
    waiting = deque(parts)
    workers: list[_Worker] = []
    try:
        workers += (_Worker() for _ in range(min(processes, len(parts))))
        busy: dict[Any, _Worker] = {worker.pipe: worker for worker in workers if worker.take(waiting)}
        while busy:
            for pipe in wait(list(busy)):
                worker = busy.pop(pipe)
                yield worker.part, worker.result()
                if worker.take(waiting):
                    busy[worker.pipe] = worker
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    def __init__(self) -> None:
        start = multiprocessing.get_context("spawn")  # threads of Arrow and Numba do not survive a fork
        self.part = ""
        self.pipe, theirs = start.Pipe()
        self._process = start.Process(target=_work, args=(theirs,), daemon=True)
        with _interrupts_blocked():
            self._process.start()
        theirs.close()  # so that the end of the process is noticed here

    def take(self, waiting: deque[str]) -> bool:
        """Begin the next waiting part; return whether there was one."""
        if not waiting:
            return False
        self.part = waiting.popleft()
        with suppress(OSError):  # the process has ended: `result` raises
            self.pipe.send(self.part)
        return True

    def result(self) -> float:
        """The seconds that the part took."""
        try:
            seconds, reason = self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            seconds, reason = 0.0, f"its process ended with code {self._process.exitcode}"
        if reason is not None:
            raise WarmUpFailed(f"compiling {self.part} failed: {reason}")
        return float(seconds)

    def end(self) -> None:
        """Terminate the process at once. A kernel that is half compiled is not in the cache."""
        self._process.terminate()
        self._process.join()
        self.pipe.close()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C until the end of the block, and for ever in a process that is started inside.

    A terminal sends Ctrl-C to all processes; the process that started the others ends them.
    """
    resource_tracker.ensure_running()  # or else the first process starts it, and that unblocks Ctrl-C again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(parts: Connection) -> None:
    """The loop of a worker process: compile each received part until the other end closes the pipe."""
    from nearcast.arrays.jit.mode import be_silent

    be_silent()  # the process that started this one shows the progress
    while True:
        try:
            part = parts.recv()
        except EOFError:
            return
        try:
            parts.send((_warm(part), None))
        except Exception as error:
            parts.send((0.0, f"{type(error).__name__}: {error}"))


def _warm(part: str) -> float:
    from nearcast.arrays.jit.mode import compile_now
    from nearcast.engine.warm_up import warm_part
    from nearcast.spark.batch.warm_up import PART, warm_up_pipeline

    compile_now()
    start = time.perf_counter()
    if part == PART:
        warm_up_pipeline()
    else:
        warm_part(part)
    return time.perf_counter() - start
