"""The table of changes: pairs that become or cease to be results, in the order in which they happen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.model import NO_TIME, Changes

CHANGES_SCHEMA = pa.schema(
    [
        ("message", pa.int64()),
        ("subscription", pa.int64()),
        ("change", pa.int8()),
        ("score", pa.float64()),
        ("time", pa.timestamp("us", "UTC")),
    ]
)
"""`change` is +1 or -1. An unknown score or time is null."""

NO_CHANGES = Changes(*(np.empty(0, dtype) for dtype in (np.int64, np.int64, np.int8, np.float64, np.int64)))


def changes_table(changes: Changes) -> pa.Table:
    """The changes table, in the order of the changes."""
    columns = [
        pa.array(changes.message_ids),
        pa.array(changes.subscription_ids),
        pa.array(changes.signs),
        pa.array(changes.scores, mask=np.isnan(changes.scores)),
        pa.array(changes.times, pa.timestamp("us", "UTC"), mask=changes.times == NO_TIME),
    ]
    return pa.table(columns, schema=CHANGES_SCHEMA)


def joined_changes(parts: list[Changes]) -> Changes:
    """The changes of several steps, one step after another."""
    if len(parts) < 2:
        return parts[0] if parts else NO_CHANGES
    return Changes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
