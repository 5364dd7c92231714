"""The table of changes: pairs that become or cease to be results, in the order in which they happen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.model import NO_TIME, Changes
from nearcast.tables.ids import Names

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


def changes_table(changes: Changes, messages: Names | None = None, subscriptions: Names | None = None) -> pa.Table:
    """The changes table, in the order of the changes. Ids are numbers of these names; without names, the ids."""
    messages = Names() if messages is None else messages
    subscriptions = Names() if subscriptions is None else subscriptions
    columns = [
        messages.arrow(changes.message_ids),
        subscriptions.arrow(changes.subscription_ids),
        pa.array(changes.signs),
        pa.array(changes.scores, mask=np.isnan(changes.scores)),
        pa.array(changes.times, pa.timestamp("us", "UTC"), mask=changes.times == NO_TIME),
    ]
    return pa.table(columns, schema=changes_schema(messages, subscriptions))


def changes_schema(messages: Names, subscriptions: Names) -> pa.Schema:
    """The schema of a changes table with ids of these names."""
    schema = CHANGES_SCHEMA.set(0, pa.field("message", messages.arrow_type))
    return schema.set(1, pa.field("subscription", subscriptions.arrow_type))


def joined_changes(parts: list[Changes]) -> Changes:
    """The changes of several steps, one step after another."""
    if len(parts) < 2:
        return parts[0] if parts else NO_CHANGES
    return Changes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
