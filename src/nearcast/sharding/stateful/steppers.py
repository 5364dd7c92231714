"""One shard of a stateful job: a TopK, a Moving or an Engine that is stepped by micro-batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.errors import InvalidInput
from nearcast.model import NO_TIME
from nearcast.moving.moving import Moving
from nearcast.moving.tracks import read_moves
from nearcast.sharding.stateful.definition import CHANGES, MESSAGES, MOVES
from nearcast.tables import REJECTS_SCHEMA, OnBad
from nearcast.tables.changes import CHANGES_SCHEMA
from nearcast.tables.faults import Faults, NothingAccepted
from nearcast.topk.topk import TopK
from nearcast.topk.window_size import WindowSize

State = tuple[dict[str, np.ndarray], dict[str, Any]]
OPERATIONS = ("insert", "remove")


class Stepped(NamedTuple):
    """What a step gives: the changes in their order, and the bad rows of each input."""

    changes: pa.Table
    rejects: dict[str, pa.Table]


class Stepper(Protocol):
    """A state that is stepped. `events` has the inputs of a step by name, each in its order; `now` may be NO_TIME."""

    def step(self, events: Mapping[str, pa.Table], now: int, on_bad: OnBad) -> Stepped: ...

    def state(self) -> State: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def counts(self) -> dict[str, int]:
        """What the state has: subscriptions and messages."""
        ...


class TopStepper:
    """Kind `top`: changes of subscriptions take effect first, then messages come one after another."""

    def __init__(self, top: TopK) -> None:
        self._top = top

    @classmethod
    def first(cls, subscriptions: pa.Table, options: Mapping[str, Any]) -> TopStepper:
        return cls(
            TopK(subscriptions, WindowSize(*options["window"]), **{n: v for n, v in options.items() if n != "window"})
        )

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> TopStepper:
        return cls(TopK.restored(arrays, header))

    def step(self, events: Mapping[str, pa.Table], now: int, on_bad: OnBad) -> Stepped:
        parts, rejects = change_subscriptions(self._top, events.get(CHANGES), on_bad)
        messages = events.get(MESSAGES)
        if messages is not None and messages.num_rows:
            with accepting_none(self._top, rejects, MESSAGES, on_bad):
                parts.append(self._top.publish(messages, on_bad=on_bad, extra="ignore"))
        if self._top.window.size.is_period and now > self._top.window.now:
            parts.append(self._top.advance(now))
        return Stepped(pa.concat_tables(parts) if parts else CHANGES_SCHEMA.empty_table(), rejects)

    def state(self) -> State:
        return self._top.state()

    @property
    def nbytes(self) -> int:
        return self._top.nbytes

    @property
    def counts(self) -> dict[str, int]:
        return {"subscriptions": len(self._top), "messages": len(self._top.window)}


class MovingStepper:
    """Moving subscriptions: a micro-batch is one step. Time passes to its newest event; changes of subscriptions take
    effect, subscriptions are at their last place, messages have arrived; the net changes are returned.
    """

    def __init__(self, moving: Moving) -> None:
        self._moving = moving

    @classmethod
    def first(cls, subscriptions: pa.Table, options: Mapping[str, Any]) -> MovingStepper:
        return cls(Moving(subscriptions, **options))

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> MovingStepper:
        return cls(Moving.restored(arrays, header))

    def step(self, events: Mapping[str, pa.Table], now: int, on_bad: OnBad) -> Stepped:
        parts, rejects = change_subscriptions(self._moving, events.get(CHANGES), on_bad)
        ids = places = None
        if (moves := events.get(MOVES)) is not None and moves.num_rows:
            tracks, rejects[MOVES] = read_moves(moves, self._moving, on_bad)
            ids, places = (tracks.ids, tracks.places) if len(tracks.times) else (None, None)
        messages, time = events.get(MESSAGES), None if now == NO_TIME else now
        if messages is not None and messages.num_rows:
            with accepting_none(self._moving, rejects, MESSAGES, on_bad):
                parts.append(self._moving.step(time, messages, ids, places, on_bad=on_bad, extra="ignore"))
                return Stepped(net_changes(parts), rejects)
        parts.append(self._moving.step(time, None, ids, places))
        return Stepped(net_changes(parts), rejects)

    def state(self) -> State:
        return self._moving.state()

    @property
    def nbytes(self) -> int:
        return self._moving.nbytes

    @property
    def counts(self) -> dict[str, int]:
        return {"subscriptions": len(self._moving), "messages": self._moving.n_messages}


def change_subscriptions(
    index: TopK | Moving, changes: pa.Table | None, on_bad: OnBad
) -> tuple[list[pa.Table], dict[str, pa.Table]]:
    """(tables of what the changes of subscriptions change, bad rows). Each run of equal operations is one call."""
    if changes is None or changes.num_rows == 0:
        return [], {}
    parts, rejects = list[pa.Table](), [REJECTS_SCHEMA.empty_table()]
    for operation, first, run in runs_of(changes):
        if operation == "insert":
            found = dict[str, pa.Table]()
            with accepting_none(index, found, CHANGES, on_bad):
                parts.append(index.subscribe(run, on_bad=on_bad, extra="ignore"))
            rejects.append(shifted(found[CHANGES], first))
        elif operation == "remove":
            known = [each for each in run["id"].to_pylist() if each in index]
            if known:
                parts.append(index.unsubscribe(known))
        else:
            bad = Faulty(run, first, "op", f"{operation!r} is no operation; write insert or remove")
            rejects.append(bad.rejects(on_bad))
    return parts, {CHANGES: pa.concat_tables(rejects)}


@contextmanager
def accepting_none(index: TopK | Moving, rejects: dict[str, pa.Table], name: str, on_bad: OnBad) -> Iterator[None]:
    """Record the rejects of a call with a table. That a micro-batch has no good row is no failure of a stream."""
    try:
        yield
    except NothingAccepted as error:
        if on_bad == "raise":
            raise
        rejects[name] = error.rejects
    else:
        rejects[name] = REJECTS_SCHEMA.empty_table() if index.rejects is None else index.rejects


class Faulty(NamedTuple):
    """Rows that are bad for one reason."""

    rows: pa.Table
    first: int
    column: str
    reason: str

    def rejects(self, on_bad: OnBad) -> pa.Table:
        faults = Faults(self.rows.num_rows, on_bad)
        faults.add_where(np.ones(self.rows.num_rows, bool), self.column, self.reason)
        return shifted(faults.raise_or_reject(self.rows), self.first)


def shifted(rejects: pa.Table, by: int) -> pa.Table:
    """Rejects of a part of a table, as those of the table."""
    return rejects.set_column(0, "row", pc.add(rejects["row"], by)) if by and rejects.num_rows else rejects


def runs_of(changes: pa.Table) -> list[tuple[str, int, pa.Table]]:
    """(operation, first row, rows) of each run of rows with equal operations and without a repeated id."""
    if "op" not in changes.column_names:
        raise InvalidInput(f"changes need a column 'op': {' or '.join(OPERATIONS)}", column="op")
    found, start, seen = [], 0, set[Any]()
    operations, ids = changes["op"].to_pylist(), changes["id"].to_pylist()
    for row in range(1, len(operations) + 1):
        seen.add(ids[row - 1])
        if row == len(operations) or operations[row] != operations[start] or ids[row] in seen:
            found.append((operations[start], start, changes.slice(start, row - start)))
            start, seen = row, set()
    return found


def net_changes(parts: list[pa.Table]) -> pa.Table:
    """The net changes of several calls that are one step: what comes and goes within the step cancels."""
    parts = [part for part in parts if part.num_rows]
    if len(parts) < 2:
        return parts[0] if parts else CHANGES_SCHEMA.empty_table()
    joined = pa.concat_tables(parts)
    sums = joined.group_by(["message", "subscription"], use_threads=False).aggregate(
        [("change", "sum"), ("score", "first"), ("time", "last")]
    )
    sums = sums.filter(pc.not_equal(sums["change_sum"], 0)).sort_by(
        [("message", "ascending"), ("subscription", "ascending")]
    )
    columns = [sums[name] for name in ("message", "subscription", "change_sum", "score_first", "time_last")]
    return pa.table(columns, names=joined.column_names).cast(joined.schema)
