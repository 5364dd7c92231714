"""What an engine returns: matches and changes, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

EVENTS_SCHEMA = pa.schema(
    [("message", pa.int64()), ("subscription", pa.int64()), ("change", pa.int8()), ("score", pa.float64())]
)
"""`change` is null for a match, +1 or -1 for a change. The score is null for kinds without scores."""


class Match(NamedTuple):
    """One message concerns one subscription."""

    message: int
    subscription: int
    score: float | None = None
    """The score, where the subscription is of a scored kind."""


class Change(NamedTuple):
    """A message enters (+1) or leaves (-1) the results of a subscription of kind `top`, or of one that follows."""

    message: int
    subscription: int
    change: int
    score: float | None = None
    """The score, for kind `top`."""


Event = Match | Change


def in_order(changes: Iterable[Change]) -> list[Change]:
    """The changes of one step by subscription; what leaves a subscription comes first."""
    return sorted(changes, key=lambda each: (each.subscription, each.change))


def events_table(events: Iterable[Event]) -> pa.Table:
    """The events as a table, in their order."""
    rows = [
        (each.message, each.subscription, each.change if isinstance(each, Change) else None, each.score)
        for each in events
    ]
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    arrays = [pa.array(values, field.type) for values, field in zip(columns, EVENTS_SCHEMA, strict=True)]
    return pa.table(arrays, schema=EVENTS_SCHEMA)
