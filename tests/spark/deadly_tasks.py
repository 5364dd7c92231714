"""Tasks that kill: a Python worker, an executor or the driver dies at the worst moments, a given number of times."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pyarrow as pa

from nearcast.ingest import ingest_part as ingest
from nearcast.ingest import match_task
from nearcast.ingest import stream_batch as task
from nearcast.ingest.ingest_part import IngestJob, PartCounts
from nearcast.ingest.match_task import MatchJob
from nearcast.ingest.sources import Part
from nearcast.ingest.stream_batch import StreamJob
from nearcast.sharding.payloads import ArrowPayload


class Deaths(NamedTuple):
    """Who is to die, and how often; `folder` holds a file for each death."""

    folder: str
    kind: str  # worker, executor or driver
    times: int
    driver: tuple[int, ...] = ()  # its processes


def match_pieces(deaths: Deaths, job: MatchJob, task: int) -> Iterator[list[Any]]:
    yield from _dying(deaths, match_task.match_pieces(job, task))


def match_shards(deaths: Deaths, job: MatchJob, shard: int, payloads: list[ArrowPayload]) -> Iterator[list[Any]]:
    yield from _dying(deaths, match_task.match_shards(job, shard, payloads))


def _dying(deaths: Deaths, reports: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """Die after the work was done and written, before Spark hears of it."""
    for report in reports:
        for k in range(deaths.times):
            if _is_first(Path(deaths.folder) / f"{deaths.kind}-{k}"):
                _kill(deaths)
        yield report


def _is_first(file: Path) -> bool:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _kill(deaths: Deaths) -> None:
    if deaths.kind == "worker":
        os.kill(os.getpid(), signal.SIGKILL)
    elif deaths.kind == "executor":
        os.kill(_parent(os.getppid()), signal.SIGKILL)  # worker, its daemon, the executor
    else:
        for process in deaths.driver:
            os.kill(process, signal.SIGKILL)
    time.sleep(60)  # whoever is dead will not let this go on


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def ingest_part(deaths: Deaths, part: Part, job: IngestJob) -> PartCounts:
    """Die with all files of this part written."""
    counts = ingest.ingest_part(part, job)
    if _is_first(Path(deaths.folder) / deaths.kind):
        _kill(deaths)
    return counts


def deliver_deadly_files(job: StreamJob, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """`deliver_files`, where a file with "deadly" in its name kills its worker as soon as it is read."""
    read = task._chunks_of_file

    def read_or_die(path: str) -> Iterator[Any]:
        if "deadly" in Path(path).name:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(path)

    with mock.patch.object(task, "_chunks_of_file", read_or_die):
        return task.deliver_files(job, batches)
