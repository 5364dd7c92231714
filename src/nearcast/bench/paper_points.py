"""What a figure shows, read off raw measurements: values by panel, place on the axis, and method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nearcast.bench.figures import batch_us
from nearcast.bench.measure import median
from nearcast.bench.paper import Figure
from nearcast.bench.paper_plan import Part
from nearcast.bench.report import label_of
from nearcast.bench.workload import group_of
from nearcast.matching.variant import variant_of

UNITS = {
    "time": "µs a message",
    "size": "bytes a subscription",
    "throughput": "operations a second",
    "nodes": "nodes visited a message",
    "candidates": "candidates a message",
    "matches": "matches a message",
}


class Point(NamedTuple):
    """One value. The panel is empty where a figure has only one."""

    panel: str
    x: Any
    method: str
    value: float  # in the unit of the measure
    messages: int = 0  # over how many; 0 where none are matched

    @property
    def label(self) -> str:
        """The place on the axis in few letters."""
        return label_of(self.x)


def points_of(figure: Figure, parts: Sequence[Part], runs: Sequence[dict[str, Any]]) -> list[Point]:
    """In the figure's order of panels, places and methods."""
    methods = [variant_of(text).label for text in figure.methods]
    found = [point for part in parts for point in _of_part(figure, part, runs[part.run], methods)]
    panels = list(dict.fromkeys(point.panel for point in found))
    places = list(dict.fromkeys(point.label for point in found))
    return sorted(
        found, key=lambda each: (panels.index(each.panel), places.index(each.label), methods.index(each.method))
    )


def _of_part(figure: Figure, part: Part, run: dict[str, Any], methods: Sequence[str]) -> Iterator[Point]:
    if figure.measure == "size":
        subscriptions = max(1, run["workload"]["subscriptions"])
        for record in _those(run["builds"], methods):
            x = part.data if part.value is None else part.value
            yield Point("", x, record["method"], record["bytes"] / subscriptions)
        return
    groups = run["mixed"] if figure.measure == "throughput" else run["groups"]
    for group in figure.all_groups:
        records = _those(groups[group], methods)
        shared = min((record.get("messages", 0) for record in records), default=0)
        for record in records:
            value = _value(figure.measure, record, shared)
            if value is not None:
                yield Point(*_where(figure, part, group), record["method"], value, shared)


def _those(records: Sequence[dict[str, Any]], methods: Sequence[str]) -> list[dict[str, Any]]:
    return [record for record in records if record["method"] in methods]


def _where(figure: Figure, part: Part, group: str) -> tuple[str, Any]:
    """The panel, and the place on its axis."""
    stem, tokens = group_of(group)
    if figure.along == "messages":
        return "", stem
    x = {"tokens": tokens, "data": part.data}.get(figure.along, part.value)
    apart = len(figure.data) > 1 and figure.along != "data"
    return (f"{part.data}, {stem}" if apart else stem), x


def _value(measure: str, record: dict[str, Any], shared: int) -> float | None:
    """Over the messages that all methods of the figure had: the first 7 once cost `spatial-first` 2.6 times as much
    each as the first 200. Work was counted over a method's own messages, so it says nothing where those are more.
    """
    if measure == "throughput":
        took = median(record["rounds_cpu_s"])
        return float(record["operations"]) / took if took else None
    if not shared:
        return None
    if measure == "time":
        return batch_us(record, shared) or None
    return float(record["work"][measure]) / shared if record["messages"] == shared else None


def times_as_much(better: Point, worse: Point, measure: str) -> float | None:
    """What the worse costs, in shares of what the better does. None where one of them is 0."""
    if not better.value or not worse.value:
        return None
    return better.value / worse.value if measure == "throughput" else worse.value / better.value


def mean_factor(factors: Sequence[float]) -> float | None:
    """The geometric mean: twice as much here and half as much there is no difference."""
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else None
