"""Processes that compile side by side: each takes the next part when it is done with one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
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
"""By seconds in an empty cache, 150 to 20, but for what others need, which comes first. The rest takes 17 or less."""


class WarmUpFailed(NearcastError):
    """A part could not be compiled, or a process that compiled ended early."""


def number_of_processes(asked: int | None) -> int:
    """As asked, else the cores that this process may use; one where processes cannot take turns at a kernel."""
    from nearcast.arrays.compile_turns import can_take_turns

    if not can_take_turns():
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return asked or cores or 1


def longest_first(parts: Sequence[str]) -> list[str]:
    """The order for several processes: none should begin a long part when the others are done. `auto` tries the
    others, and comes last: by then they are compiled.
    """
    place = {part: k for k, part in enumerate(LONGEST)}
    return sorted(parts, key=lambda part: (part == "auto", place.get(part, len(place))))


def warm_here(parts: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Part by part in this process: its name and how many seconds it took."""
    for part in parts:
        yield part, _warm(part)


def warm_in_processes(parts: Sequence[str], processes: int) -> Generator[tuple[str, float], None, None]:
    """The same, in so many processes, in the order in which parts are done. They end with the iteration."""
    waiting = deque(parts)
    team: list[_Worker] = []
    try:
        team += (_Worker() for _ in range(min(processes, len(parts))))
        busy: dict[Any, _Worker] = {worker.pipe: worker for worker in team if worker.take(waiting)}
        while busy:
            for pipe in wait(list(busy)):
                worker = busy.pop(pipe)
                yield worker.part, worker.result()
                if worker.take(waiting):
                    busy[worker.pipe] = worker
    finally:
        for worker in team:
            worker.end()


class _Worker:
    def __init__(self) -> None:
        start = multiprocessing.get_context("spawn")  # threads of Arrow and Numba do not survive a fork
        self.part = ""
        self.pipe, theirs = start.Pipe()
        self._process = start.Process(target=_work, args=(theirs,), daemon=True)
        with _interrupts_later():
            self._process.start()
        theirs.close()  # so that its end is seen here

    def take(self, waiting: deque[str]) -> bool:
        """Begin the next part, if there is one."""
        if not waiting:
            return False
        self.part = waiting.popleft()
        with suppress(OSError):  # it has ended: `result` tells
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
        """At once: what is half compiled is not in the cache."""
        self._process.terminate()
        self._process.join()
        self.pipe.close()


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C waits until the end of the block here, and for ever in a process that is started in it: it reaches all
    processes of a terminal, and whoever started the others ends them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(orders: Connection) -> None:
    """What a process does until there is nobody to ask any more."""
    from nearcast.arrays.compile_turns import take_turns

    take_turns()
    while True:
        try:
            part = orders.recv()
        except EOFError:
            return
        try:
            orders.send((_warm(part), None))
        except Exception as error:
            orders.send((0.0, f"{type(error).__name__}: {error}"))


def _warm(part: str) -> float:
    from nearcast.engine.warm_up import warm_part
    from nearcast.spark.batch.warm_up import PART, warm_up_pipeline

    start = time.perf_counter()
    if part == PART:
        warm_up_pipeline()
    else:
        warm_part(part)
    return time.perf_counter() - start
