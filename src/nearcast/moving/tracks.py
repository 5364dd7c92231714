"""Tracks: where subscriptions were at which time, read from a table, and replayed against timed messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS, Space
from nearcast.model import NO_TIME
from nearcast.moving.moving import NOT_FOLLOWING, Moving
from nearcast.tables import OnBad, as_arrow
from nearcast.tables.columns import require_one, times_of
from nearcast.tables.faults import Faults
from nearcast.tables.ids import IdColumn, read_ids
from nearcast.tables.messages import Extra
from nearcast.tables.places import boxes_of


class Tracks(NamedTuple):
    """Places of subscriptions, in order of time."""

    ids: IdColumn
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
    require_one(table, ("time",), "tracks")
    faults = Faults(table.num_rows, "raise")
    ids, times, places = _columns_of(table, space, faults, "tracks")
    faults.add_where(times == NO_TIME, "time", "no time; a track says when a subscription was where")
    faults.raise_or_reject(table)
    order = np.argsort(times, kind="stable")
    return Tracks(ids.take(order), times[order], np.ascontiguousarray(places[order]))


def read_moves(table: pa.Table, moving: Moving, on_bad: OnBad) -> tuple[Tracks, pa.Table]:
    """(the good rows of a table as they come, the rejects). A subscription that `moving` does not have is a bad row."""
    faults = Faults(table.num_rows, on_bad)
    ids, times, places = _columns_of(table, moving.space, faults, "moves")
    for row in np.flatnonzero(~moving.are_known(ids) & ~faults.is_bad).tolist():
        faults.add(row, "id", f"no subscription {ids.python([row])[0]!r}; subscribe it first")
    if places.shape[1] == 2:
        for row in np.flatnonzero(~moving.follow_points(ids) & ~faults.is_bad).tolist():
            faults.add(row, "id", NOT_FOLLOWING.format(repr(ids.python([row])[0])))
    rejects, good = faults.raise_or_reject(table), faults.good_rows
    return Tracks(ids.take(good), times[good], np.ascontiguousarray(places[good])), rejects


def _columns_of(table: pa.Table, space: Space, faults: Faults, what: str) -> tuple[IdColumn, np.ndarray, np.ndarray]:
    """(ids, times, boxes or points)."""
    require_one(table, ("id",), what)
    ids, times = read_ids(table, faults, what, may_repeat=True), times_of(table, "time", faults)
    boxes = boxes_of(table, space, faults)
    return ids, times, boxes if set(BOX_COLUMNS) <= set(table.column_names) else boxes[:, :2]


def replay(
    moving: Moving, messages: pa.Table, tracks: Tracks, period: int, extra: Extra = "raise"
) -> Iterator[ReplayStep]:
    """Replay timed messages and tracks in steps of `period` microseconds; yields each step that has events.

    In a step the clock moves to its end, subscriptions to their last place in it, and its messages arrive. A message
    without a time arrives in the first step.
    """
    plan = _plan(messages, tracks, period)
    if plan is None:
        raise InvalidInput("neither messages nor tracks have a time; there is nothing to replay", column="time")
    order = np.argsort(plan.of_messages, kind="stable")
    of_messages = plan.of_messages[order]
    for step in plan.steps.tolist():
        arriving = messages.take(pa.array(order[slice(*np.searchsorted(of_messages, [step, step + 1]))]))
        first, stop = np.searchsorted(plan.of_tracks, [step, step + 1])
        now = plan.start + (step + 1) * period
        ids, places = tracks.ids.take(np.arange(first, stop)), tracks.places[first:stop]
        coming, moved = arriving if arriving.num_rows else None, ids if stop > first else None
        changes = moving.step(now, coming, moved, places, extra=extra)
        yield ReplayStep(now, changes, arriving.num_rows, int(stop - first))


def n_replay_steps(messages: pa.Table, tracks: Tracks, period: int) -> int:
    """The number of steps of `replay`, for a progress bar."""
    plan = _plan(messages, tracks, period)
    return 0 if plan is None else len(plan.steps)


class _Plan(NamedTuple):
    """The steps of a replay, as numbers from the first event on."""

    start: int  # microseconds
    of_messages: np.ndarray  # int64[messages]  the step in which each message arrives
    of_tracks: np.ndarray  # int64[places]  the step of each place, ascending
    steps: np.ndarray  # int64[...]  those with a message, a place or an expiry, ascending


def _plan(messages: pa.Table, tracks: Tracks, period: int) -> _Plan | None:
    """None if nothing has a time."""
    faults = Faults(messages.num_rows, "raise")
    times, expiries = times_of(messages, "time", faults), times_of(messages, "expires", faults)
    known = np.concatenate([times[times != NO_TIME], tracks.times])
    if len(known) == 0:
        return None
    start = int(known.min())
    of_messages = np.where(times == NO_TIME, 0, (times - start) // period)
    of_tracks = (tracks.times - start) // period
    ends = (expiries[expiries > start] - start) // period
    return _Plan(start, of_messages, of_tracks, np.unique(np.concatenate([of_messages, of_tracks, ends])))
