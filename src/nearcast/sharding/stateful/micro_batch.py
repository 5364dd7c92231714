"""A micro-batch of one shard: takes the shard's state, brings the due events into effect, and writes the next state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nearcast.arrays.arrow import stream_bytes, stream_table
from nearcast.matching.subscription_set import part_of
from nearcast.model import NO_TIME
from nearcast.sharding.normalise import SOURCE_REJECTS_SCHEMA
from nearcast.sharding.payloads import ArrowPayload
from nearcast.sharding.stateful.definition import INPUTS, MESSAGES, StatefulJob
from nearcast.sharding.stateful.event_order import due_events, microseconds
from nearcast.sharding.stateful.owners import owners
from nearcast.sharding.stateful.snapshots import SnapshotName, Snapshots
from nearcast.sharding.stateful.steppers import MovingStepper, Stepper, TopStepper
from nearcast.tables.faults import Faults

_COUNTS = ("late", "rejected", "changes")


class ShardState(NamedTuple):
    """All that a shard keeps between two micro-batches."""

    stepper: Stepper
    waiting: dict[str, pa.Table]  # events for later micro-batches, by input
    newest: int  # time of an event, microseconds or NO_TIME
    until: int  # events up to this time have taken effect
    counts: dict[str, int]  # _COUNTS, since the start


_resident: dict[tuple[str, int], tuple[str, ShardState]] = {}
"""States of this process by folder and shard, with their names: used if Spark's state has the same name."""


def route_events(name: str, table: pa.Table, n_shards: int, keys: Mapping[int, int]) -> Iterable[ArrowPayload]:
    """An input's rows for each shard: messages go to all, moves and changes to the shard of their subscription.

    Every shard gets a payload, with the newest time. `keys` has the partition of each shard.
    """
    times = microseconds(table["time"]) if "time" in table.column_names else np.empty(0, np.int64)
    newest = str(int(times.max()) if len(times) else NO_TIME)
    own = None if name == MESSAGES else owners(table["id"], n_shards)
    for shard in range(n_shards):
        part = table if own is None else table.filter(pa.array(own == shard))
        yield ArrowPayload(keys[shard], shard, part, f"{name}:{newest}".encode())


def run_micro_batch(
    job: StatefulJob, shard: int, name: str | None, payloads: list[ArrowPayload]
) -> tuple[str, pa.Table]:
    """(the name of the state after the payloads' events, the changes they cause)."""
    snapshots = Snapshots(job.folder, shard)
    before = SnapshotName.first() if name is None else SnapshotName.of(name)
    state = _taken(job, shard, name) or _first_state(job, shard)
    after = before.next()
    state, changes, rejects = _stepped(job, shard, state, payloads)
    arrays, header = _state_of(state)
    snapshots.write(after, arrays, header)
    if rejects.num_rows:
        snapshots.write_rejects(after, rejects)
    _resident[(job.folder, shard)] = (str(after), state)
    return str(after), changes


def _taken(job: StatefulJob, shard: int, name: str | None) -> ShardState | None:
    """The state of this name: from this process, which then no longer has it, or from its files."""
    resident, state = _resident.pop((job.folder, shard), (None, None))
    if name is None:
        return None
    if resident == name:
        return state
    return _restored(job, *Snapshots(job.folder, shard).read(SnapshotName.of(name)))


def _first_state(job: StatefulJob, shard: int) -> ShardState:
    start = Path(job.start)
    subscriptions = pq.read_table(start / f"shard-{shard}.parquet", partitioning=None)
    options = dict(job.options)
    if (start / "weights.parquet").exists():
        options["weights"] = pq.read_table(start / "weights.parquet", partitioning=None)
    return ShardState(
        _STEPPERS[job.kind].first(subscriptions, options), {}, NO_TIME, NO_TIME, dict.fromkeys(_COUNTS, 0)
    )


def _stepped(
    job: StatefulJob, shard: int, state: ShardState, payloads: list[ArrowPayload]
) -> tuple[ShardState, pa.Table, pa.Table]:
    """(the state after the events, the changes with their numbers, the rejects)."""
    newest, by_input = state.newest, {name: [table] for name, table in state.waiting.items()}
    for payload in payloads:
        name, _, time = payload.note.decode().partition(":")
        newest = max(newest, int(time))
        by_input.setdefault(name, []).append(payload.table)
    events, waiting, rejects, now = {}, {}, [], state.until
    for name in INPUTS:
        if name not in by_input:
            continue
        joined = pa.concat_tables(by_input[name], promote_options="permissive")
        due = due_events(joined, newest, state.until, job.delay)
        events[name], waiting[name], now = due.events, due.waiting, max(now, due.until)
        rejects.append(_late(job, name, due.late))
    stepped = state.stepper.step(events, now, job.on_bad)
    n_late = sum(table.num_rows for table in rejects)
    rejects += [_named(name, table) for name, table in stepped.rejects.items()]
    listed = pa.concat_tables([SOURCE_REJECTS_SCHEMA.empty_table(), *rejects])
    if shard:  # all shards find the same bad messages: the first one lists them
        listed = listed.filter(pc.not_equal(listed["source"], MESSAGES))
    counts = {
        "late": state.counts["late"] + n_late,
        "rejected": state.counts["rejected"] + sum(table.num_rows for table in stepped.rejects.values()),
        "changes": state.counts["changes"] + stepped.changes.num_rows,
    }
    numbers = np.arange(state.counts["changes"], counts["changes"])
    changes = _with_id_types(stepped.changes, job, events).append_column("seq", pa.array(numbers, pa.int64()))
    return ShardState(state.stepper, waiting, newest, now, counts), changes, listed


def _with_id_types(changes: pa.Table, job: StatefulJob, events: Mapping[str, pa.Table]) -> pa.Table:
    """The changes; with the types of ids that others would have, if there are none."""
    if changes.num_rows:
        return changes
    kinds = {"subscription": pa.string() if job.has_names else pa.int64()}
    if MESSAGES in events:
        kinds["message"] = _result_type(events[MESSAGES].schema.field("id").type)
    fields = [pa.field(each.name, kinds.get(each.name, each.type)) for each in changes.schema]
    return pa.schema(fields).empty_table()


def _result_type(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(kind) else pa.string()


def _late(job: StatefulJob, name: str, rows: pa.Table) -> pa.Table:
    faults = Faults(rows.num_rows, job.on_bad)
    reason = "too late: a later event has taken effect; give events more time with delay="
    faults.add_where(np.ones(rows.num_rows, bool), "time", reason)
    return _named(name, faults.raise_or_reject(rows))


def _named(name: str, rejects: pa.Table) -> pa.Table:
    return rejects.add_column(0, "source", pa.array([name] * rejects.num_rows, pa.string())).cast(SOURCE_REJECTS_SCHEMA)


def _state_of(state: ShardState) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    own, header = state.stepper.state()
    arrays = {f"state.{name}": array for name, array in own.items()}
    arrays |= {f"waiting.{name}": stream_bytes(table) for name, table in state.waiting.items()}
    waiting = sum(table.num_rows for table in state.waiting.values())
    report = {**state.stepper.counts, "waiting": waiting, **state.counts, "state_bytes": state.stepper.nbytes}
    return arrays, {"state": header, "newest": state.newest, "until": state.until, "report": report}


def _restored(job: StatefulJob, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> ShardState:
    stepper = _STEPPERS[job.kind].restored(part_of(arrays, "state"), header["state"])
    waiting = {name: stream_table(array) for name, array in part_of(arrays, "waiting").items()}
    counts = {name: header["report"][name] for name in _COUNTS}
    return ShardState(stepper, waiting, header["newest"], header["until"], counts)


_STEPPERS: dict[str, Any] = {"top": TopStepper, "moving": MovingStepper}
