"""A program: one step of a pipeline whose process dies, `kill -9`, when it is about to do a certain thing.

    deadly_step.py FOLDER MODULE ATTRIBUTE NTH    e.g. nearcast.ingest.output_folder NewFolder.publish 2

FOLDER holds `raw.jsonl`, which is ingested on Spark. `killed_in_a_child` needs no Spark to have a step killed.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def die_at(module: str, attribute: str, nth: int) -> None:
    """From now on, the nth call of this function is the last thing that this process does."""
    *path, name = attribute.split(".")
    holder = functools.reduce(getattr, path, importlib.import_module(module))
    real, calls = getattr(holder, name), iter(range(1, 1_000_000))

    def deadly(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    setattr(holder, name, deadly)


def killed_in_a_child(point: tuple[str, str, int], work: Callable[[], Any]) -> bool:
    """Whether a fork of this process died there."""
    child = os.fork()
    if child == 0:
        try:
            die_at(*point)
            work()
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


class NoSpark:
    """As much of a session as an ingest that numbers its records asks for: its tasks run in this process."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(defaultParallelism=1, parallelize=lambda items, n: _Items(items))


class _Items(list[Any]):
    def map(self, work: Callable[[Any], Any]) -> _Items:
        return _Items(work(item) for item in self)

    def collect(self) -> list[Any]:
        return self


def main(folder: Path, *point: str) -> None:
    from nearcast.spark.batch.ingest import ingest
    from nearcast.spark.runtime.session import open_session

    session = open_session("local[1]")
    die_at(point[0], point[1], int(point[2]))
    ingest(session, [str(folder / "raw.jsonl")], "messages", {}, str(folder / "messages"), str(folder / "rejects"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
