"""Chooses what the next micro-batch is matched against, and records the choice in the checkpoint first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from nearcast.errors import CorruptFile
from nearcast.sharding.live.change_folder import NewChanges
from nearcast.sharding.live.changes import join_changes
from nearcast.sharding.live.checkpoint import BatchInputs, StreamCheckpoint
from nearcast.sharding.live.delta import NO_DELTA, Delta, apply_changes, delta_since, load_delta, save_delta
from nearcast.sharding.sharded_index import ShardedIndex, open_sharded
from nearcast.tables import Dialect

ReadChanges = Callable[[Collection[str], Dialect], NewChanges]
"""Gives the changes that take effect with a micro-batch, from the change files that are known and a dialect."""


class Compacted(NamedTuple):
    """A finished compaction: `version` is `base` with all changes up to delta `number`."""

    base: str
    number: int
    version: str


class Compaction(Protocol):
    """Builds new bases while the stream goes on (spark/streaming/compaction.py)."""

    def consider(self, base: ShardedIndex, delta: Delta, name: str) -> None:
        """Begin a compaction if the delta has grown too large and none is running."""

    def finished(self, base: str) -> Compacted | None:
        """The finished compaction of this base, or None."""


class InputChooser:
    """The choices of one run of a stream. Until the first change, batches use the current version of the index; from
    then on, they use the checkpoint's own base and delta.
    """

    def __init__(
        self,
        checkpoint: StreamCheckpoint,
        index: str,
        dialect_of: Callable[[ShardedIndex], Dialect],
        compactor: Compaction,
    ) -> None:
        self.checkpoint = checkpoint
        self._index = index
        self._dialect_of = dialect_of
        self._compactor = compactor
        self._last = checkpoint.newest()
        self._delta: Delta | None = None

    def inputs_for(self, batch: int, read_changes: ReadChanges) -> tuple[BatchInputs, bool]:
        """(the recorded inputs of this batch, or new ones, which are recorded; whether the batch is repeated)."""
        recorded = self.checkpoint.recorded(batch)
        inputs = recorded
        if inputs is None:
            if self._last is not None and self._last.batch >= batch:
                raise CorruptFile(f"the record of batch {batch} was removed long ago; begin a new checkpoint")
            inputs = self._choose(batch, read_changes)._replace(offsets=self.checkpoint.source_log.offsets(batch))
            self.checkpoint.record(inputs)
        elif self._last is None or inputs.delta != self._last.delta:
            self._delta = None
        self._last = inputs
        if inputs.delta is not None:
            self._compactor.consider(self.checkpoint.base_of(inputs), self._delta_of(inputs), inputs.delta)
        return inputs, recorded is not None

    def known_files(self) -> tuple[str, ...]:
        """The change files in effect that still existed with the newest batch."""
        return self._delta_of(self._last).files if self._last is not None else ()

    def _choose(self, batch: int, read_changes: ReadChanges) -> BatchInputs:
        base, delta, name = self._current_state()
        compacted = self._compactor.finished(base)
        if compacted is not None:
            base, delta = compacted.version, delta_since(delta, compacted.number)
        dialect = self._dialect_of(open_sharded(self.checkpoint.index, base))
        new = read_changes(set(delta.files), dialect)
        if not new.are_there and compacted is None:
            return BatchInputs(batch, base, name, [], 0)
        self._delta = apply_changes(delta, new.changes, (*new.known, *new.files))
        name = save_delta(self._delta, new.changes.rejects, self.checkpoint.deltas)
        return BatchInputs(batch, base, name, new.files, new.changes.n_rows, new_changes=True)

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


def no_changes_for(known: Collection[str], dialect: Dialect) -> NewChanges:
    """The changes of a stream without a change log."""
    return NewChanges([], list(known), join_changes([]))
