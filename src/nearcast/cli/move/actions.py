"""What `nearcast move` does. This module is slow to import, so the command imports it when it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.cli.console import name_value_grid, progress, show, working
from nearcast.errors import InvalidInput
from nearcast.model import NO_TIME
from nearcast.moving.moving import Moving
from nearcast.moving.tracks import n_replay_steps, read_tracks, replay
from nearcast.tables import as_arrow, write_table
from nearcast.tables.changes import CHANGES_SCHEMA
from nearcast.tables.columns import times_of
from nearcast.tables.faults import Faults


class Request(NamedTuple):
    """What the command was called with."""

    subscriptions: Path
    messages: Path
    tracks: Path
    every: float
    lifetime: float | None
    method: str
    space: tuple[float, ...] | None
    analyser: str | None
    extra: str | list[str]


def run(request: Request, out: Path | None, as_json: bool) -> None:
    if out is not None and not out.name.lower().endswith((".parquet", ".pq", ".csv", ".jsonl")):
        raise InvalidInput(f"{out} has no known ending; results go to .parquet, .csv or .jsonl")
    counts = {"steps": 0, "messages": 0, "moves": 0}
    parts = list[pa.Table]()
    with progress(quiet=as_json) as shown:
        with working(shown, "reading tables"):
            how: dict[str, Any] = {"analyser": request.analyser, "extra": request.extra}
            moving = Moving(request.subscriptions, request.method, request.space, **how)
            messages = _with_expiry(as_arrow(request.messages), request.lifetime)
            tracks = read_tracks(request.tracks, moving.space)
        period = max(1, round(request.every * 1e6))
        start = time.perf_counter()
        task = shown.add_task("replaying", total=n_replay_steps(messages, tracks, period))
        for step in replay(moving, messages, tracks, period, request.extra):
            parts.append(step.changes)
            counts["steps"] += 1
            counts["messages"] += step.messages
            counts["moves"] += step.moves
            shown.advance(task)
        seconds = time.perf_counter() - start
    changes = pa.concat_tables(parts) if parts else CHANGES_SCHEMA.empty_table()
    if out is not None:
        write_table(changes, out)
    summary = _summary(moving, changes, counts, seconds) | ({} if out is None else {"out": str(out)})
    show(summary, as_json, name_value_grid(_lines(summary)))


def _with_expiry(messages: pa.Table, lifetime: float | None) -> pa.Table:
    """The messages; those with a time and without an expiry expire after the lifetime."""
    if lifetime is None:
        return messages
    faults = Faults(messages.num_rows, "raise")
    times, expires = times_of(messages, "time", faults), times_of(messages, "expires", faults)
    is_open = (expires == NO_TIME) & (times != NO_TIME)
    expires = np.where(is_open, times + round(lifetime * 1e6), expires)
    stamps = pa.array(expires, pa.timestamp("us", "UTC"), mask=expires == NO_TIME)
    if "expires" in messages.column_names:
        return messages.set_column(messages.column_names.index("expires"), "expires", stamps)
    return messages.append_column("expires", stamps)


def _summary(moving: Moving, changes: pa.Table, counts: dict[str, int], seconds: float) -> dict[str, Any]:
    begun = int(pc.sum(pc.equal(changes["change"], 1)).as_py() or 0)
    return {
        "method": moving.method,
        "subscriptions": len(moving),
        **counts,
        "begun": begun,
        "ceased": changes.num_rows - begun,
        "live_messages": moving.n_messages,
        "replay_seconds": seconds,
        "us_per_event": 1e6 * seconds / max(1, counts["messages"] + counts["moves"]),
        "bytes": moving.nbytes,
    }


def _lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    names = {"begun": "matches begun", "ceased": "matches ceased", "us_per_event": "µs per move or message"}
    names |= {"out": "written to"}
    return [(names.get(name, name.replace("_", " ")), _formatted(value)) for name, value in summary.items()]


def _formatted(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
