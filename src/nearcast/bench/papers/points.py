"""The points of a figure, computed from raw measurements: values by panel, position on the axis, and method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nearcast.bench.papers.paper import OF_INDEXES, Figure
from nearcast.bench.papers.schedule import Part
from nearcast.bench.reports.figures import batch_us
from nearcast.bench.reports.tables import format_value
from nearcast.bench.runs.timing import median
from nearcast.bench.workloads.workload import group_of
from nearcast.matching.variant import variant_of

UNITS = {
    "time": "µs a message",
    "size": "bytes a subscription",
    "build": "seconds of CPU time",
    "insert": "µs a subscription",
    "throughput": "operations a second",
    "nodes": "nodes visited a message",
    "candidates": "candidates a message",
    "matches": "matches a message",
}


class Point(NamedTuple):
    """One value of a figure. The panel is empty if the figure has only one."""

    panel: str
    x: Any
    method: str
    value: float  # in the unit of the measure
    messages: int = 0  # that the value covers; 0 for measures of an index

    @property
    def label(self) -> str:
        """The position on the axis in few letters."""
        return format_value(self.x)


def points_of(figure: Figure, parts: Sequence[Part], runs: Sequence[dict[str, Any]]) -> list[Point]:
    """The points of a figure, ordered by panel, position and method."""
    methods = [variant_of(text).label for text in figure.methods]
    of_part = _index_points if figure.measure in OF_INDEXES else _group_points
    found = [point for part in parts for point in of_part(figure, part, runs[part.run])]
    panels = list(dict.fromkeys(point.panel for point in found))
    places = list(dict.fromkeys(point.label for point in found))
    return sorted(
        found, key=lambda each: (panels.index(each.panel), places.index(each.label), methods.index(each.method))
    )


def _index_points(figure: Figure, part: Part, run: dict[str, Any]) -> Iterator[Point]:
    for record in _records_of(_INDEXES[figure.measure][0](run), figure):
        method, option = figure.variants[record["method"]]
        x = part.value if part.value is not None else option if option is not None else part.data
        panel = part.data if len(figure.data) > 1 and figure.along != "data" else ""
        yield Point(panel, x, method, _INDEXES[figure.measure][1](record, run))


def _mean_insert_us(record: dict[str, Any], run: dict[str, Any]) -> float:
    """The mean, not the median: rare and costly inserts, such as those that rebuild a part, count in full."""
    return float(sum(record["insert_cpu_s"]) / max(1, sum(record["rows"])) * 1e6)


Records = Sequence[dict[str, Any]]
_INDEXES: dict[str, tuple[Callable[[dict[str, Any]], Records], Callable[[dict[str, Any], dict[str, Any]], float]]] = {
    "size": (
        lambda run: list(run["builds"]),
        lambda record, run: float(record["bytes"]) / max(1, run["workload"]["subscriptions"]),
    ),
    "build": (lambda run: list(run["builds"]), lambda record, run: float(record["cpu_s"])),
    "insert": (lambda run: list(run.get("arrivals") or run.get("updates", [])), _mean_insert_us),
}
"""For each measure of an index: the records of a run, and the value of a record."""


def _group_points(figure: Figure, part: Part, run: dict[str, Any]) -> Iterator[Point]:
    groups = run["mixed"] if figure.measure == "throughput" else run["groups"]
    for group in figure.all_groups:
        records = _records_of(groups[group], figure)
        shared = min((record.get("messages", 0) for record in records), default=0)
        for record in records:
            value = _value(figure.measure, record, shared)
            if value is not None:
                method, option = figure.variants[record["method"]]
                yield Point(*_position(figure, part, group, option), method, value, shared)


def _records_of(records: Records, figure: Figure) -> Records:
    return [record for record in records if record["method"] in figure.variants]


def _position(figure: Figure, part: Part, group: str, option: Any) -> tuple[str, Any]:
    """The panel, and the position on its axis."""
    stem, tokens = group_of(group)
    if figure.along == "messages":
        return "", stem
    apart = len(figure.data) > 1 and figure.along != "data"
    if figure.tokens:
        x: Any = tokens
    elif figure.along == "data":
        x = part.data
    else:
        x = part.value if option is None else option
    return (f"{part.data}, {stem}" if apart else stem), x


def _value(measure: str, record: dict[str, Any], shared: int) -> float | None:
    """The value over the messages that all methods of the figure had, or None.

    Costs over different messages cannot be compared: per message, the first 7 once cost `spatial-first` 2.6 times as
    much as the first 200. Work is counted over all messages of a method, so it is unknown for a part of them.
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
    """The cost of `worse` as a multiple of the cost of `better`; None if one of them is 0."""
    if not better.value or not worse.value:
        return None
    return better.value / worse.value if measure == "throughput" else worse.value / better.value


def mean_factor(factors: Sequence[float]) -> float | None:
    """The geometric mean: twice as much and half as much cancel out."""
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else None
