"""Processes that compile kernels, and the one that compiles while this process goes on.

Requests go to the standard input of such a process as pickles, each after its length. The process answers each with a
line on its standard output: number, seconds, and the error if there was one. It ends when its standard input closes,
so it never outlives the process that started it, however that ends. Numba writes the files of the cache atomically, so
a kernel that was half compiled is not in the cache.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from importlib import import_module
from typing import Any, NamedTuple

from nearcast.arrays.jit.mode import VARIABLE, Mode

_LENGTH = 8  # bytes
_NICE = 10  # the process that answers users goes first
IDLE = 60.0  # seconds without a request, after which the background process gives its memory back


class Request(NamedTuple):
    """A kernel, by module and name, and the types of its arguments."""

    module: str
    name: str
    types: tuple[Any, ...]


class Answer(NamedTuple):
    number: int
    seconds: float
    error: str  # empty if the kernel is in the cache now


class CompilingProcess:
    """A process that compiles kernels into the cache, one after another, in the order of the requests.

    Args:
        idle: the process ends after so many seconds without a request; None: it does not.
    """

    def __init__(self, idle: float | None = None) -> None:
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # the same modules as here
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import work; work({idle})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {VARIABLE: Mode.NOW, "PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C is for the process that started this one
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        os.set_blocking(self._answers.fileno(), False)
        self._unread = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        """Readable when there are answers, or when the process has ended."""
        return self._answers.fileno()

    def send(self, number: int, request: Request) -> None:
        data = pickle.dumps((number, request))
        self._requests.write(len(data).to_bytes(_LENGTH, "big") + data)
        self._requests.flush()

    def answers(self) -> Iterator[Answer]:
        """The answers that have come. Never waits; raises EOFError if the process has ended."""
        try:
            while data := os.read(self._answers.fileno(), 1 << 16):
                *lines, self._unread = (self._unread + data).split(b"\n")
                for line in lines:
                    number, seconds, error = line.decode().split(" ", 2)
                    yield Answer(int(number), float(seconds), error)
        except BlockingIOError:  # nothing more to read
            return
        raise EOFError(f"the compiling process ended with code {self._process.wait()}")

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Close this side of the pipes."""
        with suppress(OSError):  # the process has ended before it took everything
            self._requests.close()
        self._answers.close()

    def abandon(self) -> None:
        """In a forked process: leave the process to the process that started it."""
        self.close()  # left open, the pipes would hide the end of the other process
        self._process.returncode = 0  # not a child of this process


class State(Enum):
    WAITING = 1
    DONE = 2  # in the cache
    FAILED = 3  # this process must compile the kernel itself


class BackgroundCompiler:
    """Compiles the kernels that this process calls, in one other process that starts with the first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: CompilingProcess | None = None
        self._states: list[State] = []
        self._numbers: dict[Any, int] = {}
        self.collected: list[Request] | None = None
        self.round = 0  # kernels look into the cache once in each round

    def state(self, kernel: Any, types: tuple[Any, ...]) -> State:
        """The state of a kernel for argument types; the first call requests it."""
        with self._lock:
            self._read_answers()
            number = self._numbers.setdefault((kernel, types), len(self._states))
            if number == len(self._states):
                self._states.append(State.WAITING)
                self._request(number, Request(kernel.__module__, kernel.__qualname__, types))
            return self._states[number]

    def _request(self, number: int, request: Request) -> None:
        if self.collected is not None:
            self.collected.append(request)
            return
        try:
            self._process = self._process or CompilingProcess(IDLE)
            self._process.send(number, request)
        except Exception as error:  # types that cannot be pickled, no further process, a process that ended
            self._fail(number, str(error))

    def _read_answers(self) -> None:
        if self._process is None:
            return
        try:
            for answer in self._process.answers():
                self._states[answer.number] = State.DONE
                if answer.error:
                    self._fail(answer.number, answer.error)
        except EOFError as error:
            for number, state in enumerate(self._states):
                if state is State.WAITING:
                    self._fail(number, str(error))
            self.end()  # the next request starts another process

    def _fail(self, number: int, error: str) -> None:
        self._states[number] = State.FAILED
        logging.getLogger("nearcast").info("a kernel was not compiled in the background: %s", error)

    @contextmanager
    def collecting(self) -> Iterator[list[Request]]:
        """Interpret every kernel that is not compiled, whatever the mode and the size, and collect the requests."""
        self.collected = []
        try:
            yield self.collected
        finally:
            self.forget()

    def end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None

    def abandon(self) -> None:
        """In a forked process: start again without a compiling process."""
        if self._process is not None:
            self._process.abandon()
            self._process = None
        self.forget()

    def forget(self) -> None:
        """Forget all requests. What they asked for may be in the cache now."""
        self.round += 1
        self._lock = threading.Lock()
        self._states, self._numbers, self.collected = [], {}, None


BACKGROUND = BackgroundCompiler()
atexit.register(BACKGROUND.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BACKGROUND.abandon)


def work(idle: float | None) -> None:
    """The loop of a compiling process."""
    from nearcast.arrays.jit.lean_numba import make_lean

    make_lean()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    while True:
        try:
            number, request = pickle.loads(requests.get(timeout=idle))
        except queue.Empty:
            os._exit(0)
        start, error = time.perf_counter(), ""
        try:
            getattr(import_module(request.module), request.name).compile(request.types)
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}".replace("\n", " ")
        sys.stdout.write(f"{number} {time.perf_counter() - start:.3f} {error}\n")
        sys.stdout.flush()


def _receive(requests: queue.SimpleQueue[bytes]) -> None:
    """Put all requests into the queue. End this process when the pipe closes, also in the middle of compiling."""
    while length := sys.stdin.buffer.read(_LENGTH):
        requests.put(sys.stdin.buffer.read(int.from_bytes(length, "big")))
    os._exit(0)
