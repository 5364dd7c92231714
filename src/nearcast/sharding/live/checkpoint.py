"""What each micro-batch is matched against, written down before it is: a replay reads it instead of looking again.

CHECKPOINT/stream.json                which stream this is
CHECKPOINT/plans/plan-<batch>.json    the version of the index and the delta of that batch
CHECKPOINT/index/versions/<name>/     versions in use: the index's own (hard links, so that a new build cannot
                                      take them away) and those that compaction made
CHECKPOINT/deltas/<name>/             deltas in use
CHECKPOINT/spark/                     Spark's own
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
from nearcast.sharding.sharded_index import ShardedIndex, open_sharded

_KEPT = 3
"""Plans kept with what they name. Spark replays at most the newest batch; the others are for a second look."""


class BatchInputs(NamedTuple):
    batch: int
    base: str  # a version in CHECKPOINT/index
    delta: str | None  # a folder in CHECKPOINT/deltas
    files: list[str]  # change files that take effect with this batch
    n_changes: int  # good rows in them


class StreamCheckpoint:
    """The plans of one checkpoint, and the folders that they name."""

    def __init__(self, checkpoint: str | os.PathLike[str]) -> None:
        self.root = Path(checkpoint)
        self.index = self.root / "index"
        self.deltas = self.root / "deltas"
        self._plans = self.root / "plans"
        self.held: set[str] = set()
        """Deltas that a compaction reads: kept whatever the plans say."""
        for folder in (self.index / "versions", self.deltas, self._plans):
            folder.mkdir(parents=True, exist_ok=True)
        for begun in ("pinning-*", "unfinished-*"):  # by runs that crashed
            for folder in (self.index / "versions").glob(begun):
                shutil.rmtree(folder, ignore_errors=True)

    def recorded(self, batch: int) -> BatchInputs | None:
        file = self._plans / f"plan-{batch:010d}.json"
        if not file.exists():
            return None
        try:
            return BatchInputs(**json.loads(file.read_bytes()))
        except (ValueError, TypeError):
            raise CorruptFile(f"{file} is damaged; the stream cannot go on from this checkpoint") from None

    def newest(self) -> BatchInputs | None:
        numbers = self._numbers()
        return self.recorded(numbers[-1]) if numbers else None

    def record(self, plan: BatchInputs) -> None:
        """Durable when this returns; then what only older plans needed goes."""
        write_whole(self._plans / f"plan-{plan.batch:010d}.json", json.dumps(plan._asdict()).encode())
        self._forget_old()

    def sharded(self, plan: BatchInputs) -> ShardedIndex:
        return open_sharded(self.index, plan.base)

    def delta_path(self, plan: BatchInputs) -> str | None:
        return None if plan.delta is None else str(self.deltas / plan.delta)

    def pin(self, current: ShardedIndex) -> str:
        """Keep a version of somebody's index for as long as a plan names it; its name here."""
        source = Path(current.path)
        target = self.index / "versions" / source.name
        if not target.exists():
            unfinished = target.with_name(f"pinning-{uuid.uuid4().hex[:12]}")
            shutil.copytree(source, unfinished, copy_function=_link)
            unfinished.rename(target)
        return source.name

    def _numbers(self) -> list[int]:
        return sorted(int(file.stem.split("-")[1]) for file in self._plans.glob("plan-*.json"))

    def _forget_old(self) -> None:
        numbers = self._numbers()
        kept = [plan for number in numbers[-_KEPT:] if (plan := self.recorded(number)) is not None]
        for number in numbers[:-_KEPT]:
            (self._plans / f"plan-{number:010d}.json").unlink()
        deltas, bases = {plan.delta for plan in kept}, {plan.base for plan in kept}
        for folder in self.deltas.iterdir():
            if folder.name not in deltas and folder.name not in self.held:
                shutil.rmtree(folder, ignore_errors=True)
        newest = max(bases)
        for folder in (self.index / "versions").glob("v-*-*"):
            # A newer version than any plan's is one that compaction has just finished.
            if folder.name not in bases and folder.name < newest:
                shutil.rmtree(folder, ignore_errors=True)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(source, target)
    return target
