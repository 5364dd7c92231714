"""CPU time of Spark, and memory of workers that map the same index, read while all of them have it open."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.bench.runs.environment import resident_bytes
from nearcast.sharding.sharded_index import open_sharded, shard_index

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAIT_S = 60.0
_PROCESSES = Path("/proc")
_PARENT, _TIMES = 3, slice(13, 17)  # fields of /proc/PID/stat: user and system time, own and of ended children
_SCHEMA = "worker long, resident long, index_resident long, index_proportional long"


class Task(NamedTuple):
    """The task of each worker: open and read all shards, wait for the other workers, measure."""

    index_path: str
    meeting: str  # a folder where workers leave their process ids
    workers: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:  # one row for each worker
            shards = _read_shards(self.index_path)
            self._meet("ready")
            row = {"worker": os.getpid(), "resident": resident_bytes() or 0, **_maps_below(self.index_path)}
            self._meet("read")
            del shards
            yield pa.RecordBatch.from_pylist([row])

    def _meet(self, point: str) -> None:
        """Wait until all workers have come to this point."""
        folder = Path(self.meeting) / point
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(os.getpid())).touch()
        until = time.monotonic() + _WAIT_S
        while len(list(folder.iterdir())) < self.workers and time.monotonic() < until:
            time.sleep(0.02)


def memory_of_workers(session: SparkSession, index: str, folder: str, workers: int) -> dict[str, Any]:
    """Bytes of each of `workers` processes that map the index at the same time: a copy that no other process maps."""
    copy = os.path.join(folder, f"index-for-{workers}")
    shutil.copytree(index, copy)
    task = Task(copy, os.path.join(folder, f"meeting-{workers}"), workers)
    rows = session.range(0, workers, 1, workers).mapInArrow(task, _SCHEMA).collect()
    return {
        "workers": len({row.worker for row in rows}),
        "resident_bytes": [row.resident for row in rows],
        "index_resident_bytes": [row.index_resident for row in rows],
        "index_bytes_together": sum(row.index_proportional for row in rows),
    }


def _read_shards(index: str) -> list[Any]:
    """Every shard, opened as batch tasks open it, with every page of its arrays read once."""
    sharded = open_sharded(index)
    shards = []
    for shard in range(sharded.n_shards):
        shards.append(shard_index(sharded, shard))
        arrays, _ = shards[-1].matcher.state()
        for array in arrays.values():
            np.asarray(array).reshape(-1).view(np.uint8)[::4096].sum()
    return shards


def _maps_below(folder: str) -> dict[str, int]:
    """Memory of the mapped files below a folder. Proportional: a page that n processes share counts one nth in each."""
    found = {"index_resident": 0, "index_proportional": 0}
    names = {"Rss:": "index_resident", "Pss:": "index_proportional"}
    is_below = False
    maps = Path("/proc/self/smaps")
    for line in maps.read_text(errors="replace").splitlines() if maps.exists() else ():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            is_below = folder in line
        elif is_below and words[0] in names:
            found[names[words[0]]] += int(words[1]) * 1024
    return found


def cpu_seconds() -> float | None:
    """CPU seconds of this process and all its descendants, as the driver, Java and the workers; None if unknown."""
    if not _PROCESSES.joinpath("self/stat").exists():
        return None
    stats = dict(_stats())
    family = {os.getpid()}
    grown = True
    while grown:  # parents may have larger numbers than their children
        more = {pid for pid, fields in stats.items() if int(fields[_PARENT]) in family} - family
        family |= more
        grown = bool(more)
    ticks = sum(int(part) for pid in family & stats.keys() for part in stats[pid][_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stats() -> list[tuple[int, list[str]]]:
    found = []
    for folder in _PROCESSES.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue  # the process has just ended
            name_end = text.rindex(")")  # a name may contain spaces
            found.append((int(folder.name), ["", "", *text[name_end + 2 :].split()]))
    return found
