"""Lists the processes of this machine, for tests that kill some of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    pid: int
    parent: int
    session: int
    command: str


def processes() -> Iterator[Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue  # it has just ended
        yield Process(int(folder.name), int(fields[1]), int(fields[3]), command)


def python_workers(own: list[Process]) -> list[Process]:
    """The workers that Spark's daemon forked."""
    daemons = {each.pid for each in own if "nearcast.spark.runtime.daemon" in each.command}
    return [each for each in own if each.parent in daemons]


def descendants(pid: int) -> list[Process]:
    every = list(processes())
    found: list[Process] = []
    parents = {pid}
    while parents:
        children = [each for each in every if each.parent in parents]
        found += children
        parents = {each.pid for each in children}
    return found
