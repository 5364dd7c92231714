"""The table of what an engine returns: matches and changes, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from nearcast.model import Change, Event

EVENTS_SCHEMA = pa.schema(
    [("message", pa.int64()), ("subscription", pa.int64()), ("change", pa.int8()), ("score", pa.float64())]
)
"""`change` is null for a match, +1 or -1 for a change. The score is null for kinds without scores."""


def events_table(events: Iterable[Event], messages: pa.DataType, subscriptions: pa.DataType) -> pa.Table:
    """The events as a table, in their order, with ids of these types."""
    schema = EVENTS_SCHEMA.set(0, pa.field("message", messages)).set(1, pa.field("subscription", subscriptions))
    rows = [
        (each.message, each.subscription, each.change if isinstance(each, Change) else None, each.score)
        for each in events
    ]
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
