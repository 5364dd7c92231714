"""Tracks: where subscriptions were at which time, read from a table, and replayed against timed messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS, Space
from nearcast.model import NO_TIME
from nearcast.moving.moving import Moving
from nearcast.tables import as_arrow
from nearcast.tables.columns import column, require_one, times_of, whole_numbers
from nearcast.tables.faults import Faults
from nearcast.tables.places import boxes_of


class Tracks(NamedTuple):
    """Places of subscriptions, in order of time."""

    ids: np.ndarray  # int64[n]
    times: np.ndarray  # int64[n]  microseconds
    places: np.ndarray  # float64[n,4] boxes, or float64[n,2] points


class ReplayStep(NamedTuple):
    """One step of a replay."""

    now: int
    changes: pa.Table
    messages: int
    moves: int


def read_tracks(source: Any, space: Space) -> Tracks:
    """The tracks of a table: `id`, `time`, and a box (xmin, ymin, xmax, ymax) or a point (x, y or lon, lat)."""
    table = as_arrow(source)
    faults = Faults(table.num_rows, "raise")
    for name in ("id", "time"):
        require_one(table, (name,), "tracks")
    ids, times = column(table, "id"), times_of(table, "time", faults)
    numbers = whole_numbers(pa.nulls(table.num_rows, pa.int64()) if ids is None else ids, "id", faults)
    faults.add_where(times == NO_TIME, "time", "no time; a track says when a subscription was where")
    boxes = boxes_of(table, space, faults)
    faults.raise_or_reject(table)
    order = np.argsort(times, kind="stable")
    places = boxes if set(BOX_COLUMNS) <= set(table.column_names) else boxes[:, :2]
    return Tracks(numbers[order], times[order], np.ascontiguousarray(places[order]))


def replay(moving: Moving, messages: pa.Table, tracks: Tracks, period: int) -> Iterator[ReplayStep]:
    """Replay timed messages and tracks in steps of `period` microseconds; yields each step that has events.

    In a step the clock moves to its end, subscriptions to their last place in it, and its messages arrive. A message
    without a time arrives in the first step.
    """
    times = times_of(messages, "time", Faults(messages.num_rows, "raise"))
    known = np.concatenate([times[times != NO_TIME], tracks.times])
    if len(known) == 0:
        raise InvalidInput("neither messages nor tracks have a time; there is nothing to replay", column="time")
    start = int(known.min())
    steps = np.where(times == NO_TIME, 0, (times - start) // period)
    order = np.argsort(steps, kind="stable")
    steps, track_steps = steps[order], (tracks.times - start) // period
    expiries = times_of(messages, "expires", Faults(messages.num_rows, "raise"))
    ends = (expiries[expiries > start] - start) // period
    for step in np.unique(np.concatenate([steps, track_steps, ends])).tolist():
        arriving = messages.take(pa.array(order[slice(*np.searchsorted(steps, [step, step + 1]))]))
        first, stop = np.searchsorted(track_steps, [step, step + 1])
        now = start + (step + 1) * period
        ids, places = tracks.ids[first:stop], tracks.places[first:stop]
        changes = moving.step(now, arriving if arriving.num_rows else None, ids if stop > first else None, places)
        yield ReplayStep(now, changes, arriving.num_rows, int(stop - first))


def n_replay_steps(messages: pa.Table, tracks: Tracks, period: int) -> int:
    """How many steps `replay` may have, for a progress bar."""
    times = times_of(messages, "time", Faults(messages.num_rows, "raise"))
    known = np.concatenate([times[times != NO_TIME], tracks.times])
    return len(np.unique((known - known.min()) // period)) if len(known) else 0
