"""Decides what the next micro-batch is matched against, and has it written down first."""

from __future__ import annotations

from pathlib import Path

from nearcast.errors import CorruptFile
from nearcast.sharding.live.changes import Changes, find_change_files, join_changes, read_change_files
from nearcast.sharding.live.checkpoint import BatchInputs, StreamCheckpoint
from nearcast.sharding.live.delta import NO_DELTA, Delta, apply_changes, delta_since, load_delta, save_delta
from nearcast.sharding.sharded_index import open_sharded
from nearcast.spark.streaming.compaction import Compactor
from nearcast.spark.streaming.task import dialect_of
from nearcast.tables import Dialect


class InputChooser:
    """One for each run of a stream. Until the first change it follows the index's current version; then its own base
    and delta tell what the subscriptions are.
    """

    def __init__(self, book: StreamCheckpoint, index: str, changes: str | None, compactor: Compactor) -> None:
        self._book = book
        self._index = index
        self._changes = None if changes is None else Path(changes)
        self._compactor = compactor
        self._last = book.newest()
        self._delta: Delta | None = None

    def plan(self, batch: int) -> BatchInputs:
        """The plan recorded for this batch, or a new one, recorded."""
        plan = self._book.recorded(batch)
        if plan is None:
            if self._last is not None and self._last.batch >= batch:
                raise CorruptFile(f"batch {batch} was planned long ago and its plan is gone; begin a new checkpoint")
            plan = self._made(batch)
            self._book.record(plan)
        elif self._last is None or plan.delta != self._last.delta:
            self._delta = None
        self._last = plan
        if plan.delta is not None:
            self._compactor.consider(self._book.sharded(plan), self._current_delta(plan), plan.delta)
        return plan

    def _made(self, batch: int) -> BatchInputs:
        base, delta, name = self._where_we_are()
        compacted = self._compactor.finished(base)
        if compacted is not None:
            base, delta = compacted.version, delta_since(delta, compacted.number)
        dialect = dialect_of(open_sharded(self._book.index, base))
        taken, known, changes = self._read_changes(delta, dialect)
        if not taken and compacted is None:
            return BatchInputs(batch, base, name, [], 0)
        self._delta = apply_changes(delta, changes, (*known, *taken))
        name = save_delta(self._delta, changes.rejects, self._book.deltas)
        return BatchInputs(batch, base, name, taken, changes.n_rows)

    def _where_we_are(self) -> tuple[str, Delta, str | None]:
        """(base, delta, the delta's name)."""
        if self._last is None or self._last.delta is None:
            return self._book.pin(open_sharded(self._index)), NO_DELTA, None
        return self._last.base, self._current_delta(self._last), self._last.delta

    def _current_delta(self, plan: BatchInputs) -> Delta:
        path = self._book.delta_path(plan)
        if self._delta is None and path is not None:
            self._delta = load_delta(path)
        return self._delta or NO_DELTA

    def _read_changes(self, delta: Delta, dialect: Dialect) -> tuple[list[str], list[str], Changes]:
        """(files taken, older files still there, what the taken ones come to)."""
        if self._changes is None:
            return [], list(delta.files), join_changes([])
        new, known = find_change_files(self._changes, set(delta.files))
        taken, changes = read_change_files(self._changes, new, dialect)
        return taken, known, changes
