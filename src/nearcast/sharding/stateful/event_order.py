"""The order of events, and which are too late. The rule, for all kinds:

Events take effect in the order of their `time`; of equal times, in the order of a column `order`, then of their ids.
Events wait until the newest time is `delay` past theirs. An event whose time is before one that already took effect
is too late: it is rejected, counted and listed, and changes nothing. Without times, the micro-batches come one after
another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.model import NO_TIME

_KEYS = ("time", "order", "id")


class Due(NamedTuple):
    """What a micro-batch brings into effect."""

    events: pa.Table  # in their order
    waiting: pa.Table  # for a later micro-batch
    late: pa.Table
    until: int  # all events up to this time have taken effect: microseconds, or NO_TIME


def microseconds(times: pa.ChunkedArray) -> np.ndarray:
    """int64[n]: times as microseconds, NO_TIME where there is none."""
    whole = times.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
    return np.asarray(pc.fill_null(whole, NO_TIME).to_numpy(), np.int64)


def due_events(events: pa.Table, newest: int, until: int, delay: int) -> Due:
    """The events that take effect now.

    `events` are new ones and those that waited, `newest` is the newest time seen so far, here or in another shard,
    `until` the time up to which events took effect before, and `delay` the microseconds that events wait.
    """
    if "time" not in events.column_names:
        return Due(_sorted(events), events.slice(0, 0), events.slice(0, 0), until)
    times = microseconds(events["time"])
    now = until if newest == NO_TIME else max(until, newest - delay)
    is_late = (times < until) & (times != NO_TIME)
    is_due = ~is_late & (times <= now)  # an event without a time is due, and then a bad row
    parts = (events.filter(pa.array(mask)) for mask in (is_due, ~is_due & ~is_late, is_late))
    due, waiting, late = parts
    return Due(_sorted(due), waiting, late, now)


def _sorted(events: pa.Table) -> pa.Table:
    keys = [(name, "ascending") for name in _KEYS if name in events.column_names]
    return events.sort_by(keys) if keys and events.num_rows > 1 else events
