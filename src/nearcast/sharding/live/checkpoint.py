"""The checkpoint of a stream: records what each micro-batch is matched against before it is matched.

A batch that is repeated after a crash reads its record instead of looking for changes again.

CHECKPOINT/stream.json                the id of the stream
CHECKPOINT/plans/plan-<batch>.json    the version of the index and the delta of that batch
CHECKPOINT/index/versions/<name>/     versions in use: those of the user's index (as hard links, so that a new build
                                      cannot remove them) and those that compaction made
CHECKPOINT/deltas/<name>/             deltas in use
CHECKPOINT/attempts/<batch>/          marks of the files that tasks of a repeated batch read (attempts.py)
CHECKPOINT/spark/                     offsets and commits of the streaming framework (source_log.py)
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import NamedTuple

from nearcast.arrays.bundle import write_whole
from nearcast.errors import CorruptFile
from nearcast.sharding.live.attempts import Attempts
from nearcast.sharding.live.source_log import SourceLog
from nearcast.sharding.sharded_index import ShardedIndex, open_sharded
from nearcast.storage.location import Location, locate

_KEPT = 3
"""Records kept, with the folders that they name. A stream repeats at most the newest batch; more are for inspection."""


class BatchInputs(NamedTuple):
    """What one micro-batch is matched against, beside its messages."""

    batch: int
    base: str  # a version in CHECKPOINT/index
    delta: str | None  # a folder in CHECKPOINT/deltas
    files: list[str]  # change files that take effect with this batch
    n_changes: int  # good rows that take effect
    new_changes: bool = False  # the delta was made for this batch: its rejects are this batch's
    offsets: tuple[str, ...] | list[str] = ()  # where the batch ends in each source, as Spark recorded it


class StreamCheckpoint:
    """The recorded inputs of one checkpoint, and the folders that they name."""

    def __init__(self, checkpoint: str | os.PathLike[str]) -> None:
        self.root = Path(checkpoint)
        self.index = self.root / "index"
        self.deltas = self.root / "deltas"
        self._records = self.root / "plans"
        self.source_log = SourceLog(self.root / "spark")
        self.deltas_in_use: set[str] = set()
        """Deltas that a compaction reads: kept whatever the records say."""
        for folder in (self.index / "versions", self.deltas, self._records):
            folder.mkdir(parents=True, exist_ok=True)
        for pattern in ("pinning-*", "unfinished-*"):  # left by runs that crashed
            for folder in (self.index / "versions").glob(pattern):
                shutil.rmtree(folder, ignore_errors=True)

    def recorded(self, batch: int) -> BatchInputs | None:
        file = self._file(batch)
        if not file.exists():
            return None
        try:
            return BatchInputs(**json.loads(file.read_bytes()))
        except (ValueError, TypeError):
            raise CorruptFile(f"{file} is damaged; the stream cannot go on from this checkpoint") from None

    def newest(self) -> BatchInputs | None:
        batches = self._batches()
        return self.recorded(batches[-1]) if batches else None

    def record(self, inputs: BatchInputs) -> None:
        """Write the record durably, then remove what only older records need."""
        write_whole(self._file(inputs.batch), json.dumps(inputs._asdict()).encode())
        self._remove_old()

    def attempts(self, batch: int, most: int) -> Attempts:
        return Attempts(str(self.root / "attempts" / str(batch)), most)

    def base_of(self, inputs: BatchInputs) -> ShardedIndex:
        return open_sharded(self.index, inputs.base)

    def delta_path(self, inputs: BatchInputs) -> str | None:
        return None if inputs.delta is None else str(self.deltas / inputs.delta)

    def pin(self, current: ShardedIndex) -> str:
        """Keep a version of the user's index for as long as a record names it; return its name here."""
        source = locate(current.path)
        target = self.index / "versions" / source.name
        if not target.exists():
            unfinished = target.with_name(f"pinning-{uuid.uuid4().hex[:12]}")
            if source.is_local:
                shutil.copytree(source.path, unfinished, copy_function=_link)
            else:
                _download(source, unfinished)
            unfinished.rename(target)
        return source.name

    def _file(self, batch: int) -> Path:
        return self._records / f"plan-{batch:010d}.json"

    def _batches(self) -> list[int]:
        return sorted(int(file.stem.split("-")[1]) for file in self._records.glob("plan-*.json"))

    def _remove_old(self) -> None:
        batches = self._batches()
        kept = [inputs for batch in batches[-_KEPT:] if (inputs := self.recorded(batch)) is not None]
        for batch in batches[:-_KEPT]:
            self._file(batch).unlink()
        deltas, bases = {inputs.delta for inputs in kept}, {inputs.base for inputs in kept}
        for folder in self.deltas.iterdir():
            if folder.name not in deltas and folder.name not in self.deltas_in_use:
                shutil.rmtree(folder, ignore_errors=True)
        newest = max(bases)
        for folder in (self.index / "versions").glob("v-*-*"):
            # A version newer than all recorded ones is one that compaction has just finished.
            if folder.name not in bases and folder.name < newest:
                shutil.rmtree(folder, ignore_errors=True)


def _download(source: Location, target: Path) -> None:
    for entry in source.files():
        file = target / entry.location.path[len(source.path.rstrip("/")) + 1 :]
        file.parent.mkdir(parents=True, exist_ok=True)
        entry.location.download(file)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
    return target
