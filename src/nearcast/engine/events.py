"""What an engine returns: matches and changes, and their table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.region import BoxRegion, Region
from nearcast.model import Change, Event, Id, Match
from nearcast.tables import Names

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


def matches_of(message: Id, names: Names, numbers: np.ndarray, scores: np.ndarray | None) -> list[Event]:
    """The matches of one message, sorted by subscription."""
    if not names.is_ordered:
        order = names.order(numbers)
        numbers, scores = numbers[order], None if scores is None else scores[order]
    ids = names.python(numbers)
    if scores is None:
        return [Match(message, each) for each in ids]
    return [Match(*each) for each in zip(itertools.repeat(message), ids, map(_score, scores.tolist()))]


def _score(score: float) -> float | None:
    """None for the NaN of kinds without scores."""
    return None if math.isnan(score) else score


def moved_region(region: Region, to: list[float], id: Id) -> Region:
    """The region of a subscription at a new place."""
    planar = getattr(region, "planar", False)
    is_point = isinstance(region, BoxRegion) and (region.xmin, region.ymin) == (region.xmax, region.ymax)
    if len(to) == 2 and isinstance(region, CircleRegion):
        return CircleRegion(to[0], to[1], region.radius, planar)
    if len(to) == 2 and not is_point:
        reason = f"subscription {id!r} is no circle and no point, so it cannot follow a point; give its new box"
        raise InvalidInput(reason, column="to")
    return BoxRegion(to[0], to[1], to[-2], to[-1], planar)
