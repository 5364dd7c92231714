"""A process that compiles kernels while this process goes on, and how to ask for a kernel.

Requests go to its standard input as pickles, each after its length. It answers each with a line on its standard output:
the number of the request, and the error if there was one. It ends when its standard input closes, so it never outlives
the process that started it, however that ends. Numba writes the files of the cache atomically, so a kernel that was
half compiled is not in the cache.
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
from contextlib import suppress
from enum import Enum
from importlib import import_module
from typing import Any

from nearcast.arrays.jit.mode import VARIABLE, Mode

_LENGTH = 8  # bytes
_NICE = 10  # the process that answers users goes first


class State(Enum):
    WAITING = 1
    DONE = 2  # in the cache
    FAILED = 3  # this process must compile the kernel itself


class BackgroundCompiler:
    """Compiles kernels in another process, one after another, in the order of the requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._states: list[State] = []
        self._numbers: dict[Any, int] = {}
        self._unread = b""

    def state(self, kernel: Any, types: tuple[Any, ...]) -> State:
        """The state of a kernel for argument types; the first call requests it."""
        with self._lock:
            number = self._numbers.setdefault((kernel, types), len(self._states))
            if number == len(self._states):
                self._states.append(State.WAITING)
                self._request(number, kernel.py_func, types)
            self._read_answers()
            return self._states[number]

    def _request(self, number: int, function: Any, types: tuple[Any, ...]) -> None:
        try:
            data = pickle.dumps((number, function.__module__, function.__qualname__, types))
            self._send(len(data).to_bytes(_LENGTH, "big") + data)
        except Exception as error:  # types that cannot be pickled, no further process, a process that ended
            self._fail(number, str(error))

    def _send(self, data: bytes) -> None:
        if self._process is None:
            self._process = _start()
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _read_answers(self) -> None:
        """Take note of all answers that have come. Never waits."""
        if self._process is None or self._process.stdout is None:
            return
        with suppress(BlockingIOError):  # nothing to read
            while data := os.read(self._process.stdout.fileno(), 1 << 16):
                *lines, self._unread = (self._unread + data).split(b"\n")
                for line in lines:
                    self._note(line.decode())
            self._fail_all()  # the pipe is closed

    def _note(self, line: str) -> None:
        number, _, error = line.partition(" ")
        self._states[int(number)] = State.DONE
        if error:
            self._fail(int(number), error)

    def _fail(self, number: int, error: str) -> None:
        self._states[number] = State.FAILED
        logging.getLogger("nearcast").info("a kernel was not compiled in the background: %s", error)

    def _fail_all(self) -> None:
        for number, state in enumerate(self._states):
            if state is State.WAITING:
                self._fail(number, "the process ended")

    def end(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """In a forked process: leave the compiling process to the process that started it."""
        process = self._process
        if process is not None:
            for pipe in (process.stdin, process.stdout):  # left open, they would hide the end of the other process
                if pipe is not None:
                    pipe.close()
            process.returncode = 0  # not a child of this process
        BackgroundCompiler.__init__(self)


def _start() -> subprocess.Popen[bytes]:
    """Start the process that compiles, with the same modules as this one."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import work; work()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {VARIABLE: Mode.NOW, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        start_new_session=True,  # Ctrl-C is for the process that started this one
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return process


BACKGROUND = BackgroundCompiler()
atexit.register(BACKGROUND.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BACKGROUND.forget)


def work() -> None:
    """The loop of the background process."""
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    while True:
        number, module, name, types = pickle.loads(requests.get())
        error = ""
        try:
            getattr(import_module(module), name).compile(types)
        except Exception as failure:
            error = f" {type(failure).__name__}"
        sys.stdout.write(f"{number}{error}\n")
        sys.stdout.flush()


def _receive(requests: queue.SimpleQueue[bytes]) -> None:
    """Put all requests into the queue. End this process when the pipe closes, also in the middle of compiling."""
    while length := sys.stdin.buffer.read(_LENGTH):
        requests.put(sys.stdin.buffer.read(int.from_bytes(length, "big")))
    os._exit(0)
