"""Compiles all kernels of the parts of nearcast, in several processes.

This process interprets each part on a few rows, which takes about a second, and notes which kernels are called with
which types. The compiling processes take these one by one. They wait for one another only where two kernels call a
third one. Processes that ran whole parts followed each other from kernel to kernel: 257 s by the clock for 259 s of
CPU time on two cores.
"""

from __future__ import annotations

import os
import select
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.arrays.jit.background import BACKGROUND, CompilingProcess, Request
from nearcast.arrays.jit.turns import can_take_turns
from nearcast.engine.warm_up import FEW, MANY, warm_part
from nearcast.errors import NearcastError

LONGEST = ("text and places", "pyramid", "rt++-tree", "lfilter", "ap-tree")
"""The part that the others need, then the parts with the longest kernels: no process should be left with one of them
when the others are done."""


class WarmUpFailed(NearcastError):
    """A kernel could not be compiled, or a process ended early."""


class Step(NamedTuple):
    """A part was interpreted, or one of its kernels was compiled."""

    part: str
    seconds: float
    done: int  # kernels
    known: int  # kernels that need compiling, so far


def number_of_processes(wanted: int | None) -> int:
    """The wanted number, or one per usable core; 1 on systems where processes cannot take turns at a kernel."""
    if not can_take_turns():
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return wanted or cores or 1


def longest_first(parts: Sequence[str]) -> list[str]:
    """The order in which to compile parts."""
    place = {part: k for k, part in enumerate(LONGEST)}
    return sorted(parts, key=lambda part: place.get(part, len(place)))


def compile_parts(parts: Sequence[str], processes: int) -> Iterator[Step]:
    """Compile the kernels of all parts. The processes end with the iteration."""
    pool = _Pool(processes)
    try:
        for part in parts:
            yield pool.add(part, FEW)
            yield from pool.finished(wait=0.0)
        again = deque(() if JIT_DISABLED else parts)  # with many rows, once the kernels for few rows are compiled
        while again or pool.is_busy:
            if again and not pool.unfinished[again[0]]:
                yield pool.add(again.popleft(), MANY)
            else:
                yield from pool.finished(wait=None)
    finally:
        pool.end()


def requests_of(part: str, n_rows: int) -> list[Request]:
    """The kernels of a part that are not in the cache."""
    from nearcast.spark.batch.one_process import PART, warm_up_pipeline

    with BACKGROUND.collecting() as requests:
        if part == PART:
            warm_up_pipeline()
        else:
            warm_part(part, n_rows)
    return requests


class _Pool:
    """Processes that share one queue of kernels."""

    def __init__(self, processes: int) -> None:
        self.requests: dict[Request, str] = {}  # the part of each
        self.done = 0
        self.unfinished: Counter[str] = Counter()  # requests by part
        self._most = processes
        self._waiting: deque[Request] = deque()
        self._idle: list[CompilingProcess] = []
        self._busy: dict[CompilingProcess, Request] = {}

    def add(self, part: str, n_rows: int) -> Step:
        """Interpret a part, take its requests, and start as many processes as are of use."""
        start = time.perf_counter()
        new = [request for request in dict.fromkeys(requests_of(part, n_rows)) if request not in self.requests]
        self.requests |= dict.fromkeys(new, part)
        self.unfinished[part] += len(new)
        self._waiting += new
        while len(self._idle) < len(self._waiting) and len(self._idle) + len(self._busy) < self._most:
            self._idle.append(CompilingProcess())
        self._give()
        return Step(part, time.perf_counter() - start, self.done, len(self.requests))

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    def _give(self) -> None:
        while self._idle and self._waiting:
            process, request = self._idle.pop(), self._waiting.popleft()
            self._busy[process] = request
            process.send(0, request)

    def finished(self, wait: float | None) -> Iterator[Step]:
        """Wait for at most so many seconds, and yield the kernels that are compiled."""
        for process in select.select(list(self._busy), [], [], wait)[0]:
            request = self._busy[process]
            seconds = _seconds(process, request)
            del self._busy[process]
            self._idle.append(process)
            self._give()
            self.done += 1
            self.unfinished[part := self.requests[request]] -= 1
            yield Step(part, seconds, self.done, len(self.requests))

    def end(self) -> None:
        for process in (*self._busy, *self._idle):
            process.end()


def _seconds(process: CompilingProcess, request: Request) -> float:
    """The seconds that a kernel took."""
    try:
        answer = next(process.answers())
    except EOFError as error:
        raise WarmUpFailed(f"compiling {request.module}.{request.name} failed: {error}") from None
    if answer.error:
        raise WarmUpFailed(f"compiling {request.module}.{request.name} failed: {answer.error}")
    return answer.seconds
