"""Chooses what the next micro-batch is matched against, and records the choice in the checkpoint first."""

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
    """The choices of one run of a stream. Until the first change, batches use the current version of the index; from
    then on, they use the checkpoint's own base and delta.
    """

    def __init__(self, checkpoint: StreamCheckpoint, index: str, changes: str | None, compactor: Compactor) -> None:
        self.checkpoint = checkpoint
        self._index = index
        self._changes = None if changes is None else Path(changes)
        self._compactor = compactor
        self._last = checkpoint.newest()
        self._delta: Delta | None = None

    def inputs_for(self, batch: int) -> BatchInputs:
        """The recorded inputs of this batch, or new ones, which are recorded."""
        inputs = self.checkpoint.recorded(batch)
        if inputs is None:
            if self._last is not None and self._last.batch >= batch:
                raise CorruptFile(f"the record of batch {batch} was removed long ago; begin a new checkpoint")
            inputs = self._choose(batch)
            self.checkpoint.record(inputs)
        elif self._last is None or inputs.delta != self._last.delta:
            self._delta = None
        self._last = inputs
        if inputs.delta is not None:
            self._compactor.consider(self.checkpoint.base_of(inputs), self._delta_of(inputs), inputs.delta)
        return inputs

    def _choose(self, batch: int) -> BatchInputs:
        base, delta, name = self._current_state()
        compacted = self._compactor.finished(base)
        if compacted is not None:
            base, delta = compacted.version, delta_since(delta, compacted.number)
        dialect = dialect_of(open_sharded(self.checkpoint.index, base))
        taken, known, changes = self._read_changes(delta, dialect)
        if not taken and compacted is None:
            return BatchInputs(batch, base, name, [], 0)
        self._delta = apply_changes(delta, changes, (*known, *taken))
        name = save_delta(self._delta, changes.rejects, self.checkpoint.deltas)
        return BatchInputs(batch, base, name, taken, changes.n_rows)

    def _current_state(self) -> tuple[str, Delta, str | None]:
        """(the base, the delta, the name of the delta) after the last batch."""
        if self._last is None or self._last.delta is None:
            return self.checkpoint.pin(open_sharded(self._index)), NO_DELTA, None
        return self._last.base, self._delta_of(self._last), self._last.delta

    def _delta_of(self, inputs: BatchInputs) -> Delta:
        path = self.checkpoint.delta_path(inputs)
        if self._delta is None and path is not None:
            self._delta = load_delta(path)
        return self._delta or NO_DELTA

    def _read_changes(self, delta: Delta, dialect: Dialect) -> tuple[list[str], list[str], Changes]:
        """(files read now, files read earlier that still exist, the effect of the files read now)."""
        if self._changes is None:
            return [], list(delta.files), join_changes([])
        new, known = find_change_files(self._changes, set(delta.files))
        taken, changes = read_change_files(self._changes, new, dialect)
        return taken, known, changes
