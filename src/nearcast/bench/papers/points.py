"""What a figure shows, read off raw measurements: values by panel, place on the axis, and method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from nearcast.bench.papers.paper import OF_INDEXES, Figure
from nearcast.bench.papers.plan import Part
from nearcast.bench.reports.figures import batch_us
from nearcast.bench.reports.report import label_of
from nearcast.bench.runs.measure import median
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
    of_part = _of_indexes if figure.measure in OF_INDEXES else _of_groups
    found = [point for part in parts for point in of_part(figure, part, runs[part.run])]
    panels = list(dict.fromkeys(point.panel for point in found))
    places = list(dict.fromkeys(point.label for point in found))
    return sorted(
        found, key=lambda each: (panels.index(each.panel), places.index(each.label), methods.index(each.method))
    )


def _of_indexes(figure: Figure, part: Part, run: dict[str, Any]) -> Iterator[Point]:
    for record in _those(_INDEXES[figure.measure][0](run), figure):
        method, option = figure.variants[record["method"]]
        x = part.value if part.value is not None else option if option is not None else part.data
        panel = part.data if len(figure.data) > 1 and figure.along != "data" else ""
        yield Point(panel, x, method, _INDEXES[figure.measure][1](record, run))


def _mean_insert_us(record: dict[str, Any], run: dict[str, Any]) -> float:
    """The mean: what is rare and dear, such as building a part anew, counts in full."""
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
"""Of each measure of indexes: where its records are, and its value."""


def _of_groups(figure: Figure, part: Part, run: dict[str, Any]) -> Iterator[Point]:
    groups = run["mixed"] if figure.measure == "throughput" else run["groups"]
    for group in figure.all_groups:
        records = _those(groups[group], figure)
        shared = min((record.get("messages", 0) for record in records), default=0)
        for record in records:
            value = _value(figure.measure, record, shared)
            if value is not None:
                method, option = figure.variants[record["method"]]
                yield Point(*_where(figure, part, group, option), method, value, shared)


def _those(records: Records, figure: Figure) -> Records:
    return [record for record in records if record["method"] in figure.variants]


def _where(figure: Figure, part: Part, group: str, option: Any) -> tuple[str, Any]:
    """The panel, and the place on its axis."""
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
