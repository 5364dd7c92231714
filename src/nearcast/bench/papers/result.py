"""The raw measurements of a paper's experiments, stored as a JSON file, and the points of its figures.

A point is a value by panel, position on the axis, and method.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nearcast.bench.papers.paper import OF_INDEXES, Figure, Paper
from nearcast.bench.papers.schedule import Part, Run, Schedule
from nearcast.bench.reports.figures import batch_us
from nearcast.bench.reports.tables import format_value
from nearcast.bench.runs.case import OnStep
from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.runs.results import Format, load_document
from nearcast.bench.runs.run_case import run_case
from nearcast.bench.runs.timing import median
from nearcast.bench.streams.measures import STREAM_UNITS
from nearcast.bench.streams.run_stream import Folder, run_stream
from nearcast.bench.streams.stream_workload import StreamWorkload
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
} | STREAM_UNITS

PAPER_FORMAT = Format("nearcast-bench-paper", 1, "a paper's result", "nearcast bench paper NAME --out DIR")


@dataclass(frozen=True)
class PaperResult:
    paper: str
    scale: float
    surroundings: dict[str, Any]
    parts: Mapping[str, Sequence[Part]]  # by figure
    missing: Mapping[str, Mapping[str, str]]  # by figure: the methods that could not run, and why
    runs: list[dict[str, Any]]

    def document(self) -> dict[str, Any]:
        figures = {
            name: {"parts": [part._asdict() for part in parts], "missing": dict(self.missing.get(name, {}))}
            for name, parts in self.parts.items()
        }
        head = PAPER_FORMAT.head() | {"paper": self.paper, "scale": self.scale}
        return head | {"surroundings": self.surroundings, "figures": figures, "runs": self.runs}

    def figures(self, paper: Paper) -> list[Figure]:
        """The figures of the paper that were measured."""
        return [figure for figure in paper.figures if figure.id in self.parts]

    def points(self, figure: Figure) -> list[Point]:
        return points_of(figure, self.parts[figure.id], self.runs)


def run_paper(
    paper: Paper, schedule: Schedule, scale: float, on_step: OnStep | None = None, folder: Folder = None
) -> PaperResult:
    """The measurements of every run. Raises Disagreement if two methods find different pairs.

    `folder` has the files of real data that streams name.
    """
    runs = [_measure(run, on_step, folder) for run in schedule.runs]
    peaks = [run["memory"]["peak_bytes"] for run in runs]
    return PaperResult(paper.name, scale, describe_environment(peaks), schedule.parts, schedule.missing, runs)


def _measure(run: Run, on_step: OnStep | None, folder: Folder) -> dict[str, Any]:
    if isinstance(run.workload, StreamWorkload):
        return run_stream(run.methods, run.workload, run.settings, on_step, folder)
    return run_case(run.methods, run.workload, run.settings, on_step=on_step)


def load_paper_result(path: str | os.PathLike[str]) -> PaperResult:
    document = load_document(path, PAPER_FORMAT)
    figures = document["figures"]
    return PaperResult(
        document["paper"],
        document["scale"],
        document["surroundings"],
        {name: [Part(**part) for part in each["parts"]] for name, each in figures.items()},
        {name: each["missing"] for name, each in figures.items()},
        document["runs"],
    )


class Point(NamedTuple):
    """One value of a figure. The panel is empty if the figure has only one."""

    panel: str
    x: Any
    method: str
    value: float  # in the unit of the measure
    messages: int = 0  # that the value covers; 0 for measures of an index
    rounds: tuple[float, ...] = ()  # the value of each round; empty if rounds were not kept apart
    moves: int = 0  # that the value covers, on streams of moving subscriptions

    @property
    def low(self) -> float:
        return min(self.rounds, default=self.value)

    @property
    def high(self) -> float:
        return max(self.rounds, default=self.value)

    @property
    def label(self) -> str:
        """The position on the axis in few letters."""
        return format_value(self.x)


def points_of(figure: Figure, parts: Sequence[Part], runs: Sequence[dict[str, Any]]) -> list[Point]:
    """The points of a figure, ordered by panel, position and method."""
    methods = [variant_of(text).label for text in figure.methods]
    found = [point for part in parts for point in _points_of_part(figure, part, runs[part.run])]
    panels = list(dict.fromkeys(point.panel for point in found))
    places = list(dict.fromkeys(point.label for point in found))
    return sorted(
        found, key=lambda each: (panels.index(each.panel), places.index(each.label), methods.index(each.method))
    )


def _points_of_part(figure: Figure, part: Part, run: dict[str, Any]) -> Iterator[Point]:
    if "streams" in run:
        return _stream_points(figure, part, run)
    return (_index_points if figure.measure in OF_INDEXES else _group_points)(figure, part, run)


def _stream_points(figure: Figure, part: Part, run: dict[str, Any]) -> Iterator[Point]:
    """The mean of the rounds, so that rare and costly steps count in full."""
    for record in _records_of(run["streams"], figure):
        rounds = record["values"].get(figure.measure, [])
        if rounds:
            method, option = figure.variants[record["method"]]
            panel, x = _position_on_axis(figure, part, option)
            mean, moves = sum(rounds) / len(rounds), record.get("moves", 0)
            yield Point(panel, x, method, mean, record["messages"], tuple(rounds), moves)


def _position_on_axis(figure: Figure, part: Part, option: Any) -> tuple[str, Any]:
    """The panel, and the position on the axis, of a figure without groups of messages."""
    x = part.value if part.value is not None else option if option is not None else part.data
    return part.data if len(figure.data) > 1 and figure.along != "data" else "", x


def _index_points(figure: Figure, part: Part, run: dict[str, Any]) -> Iterator[Point]:
    inserts = run.get("arrivals") or run.get("updates", [])
    for record in _records_of(inserts if figure.measure == "insert" else run["builds"], figure):
        method, option = figure.variants[record["method"]]
        yield Point(*_position_on_axis(figure, part, option), method, _index_value(figure.measure, record, run))


def _index_value(measure: str, record: dict[str, Any], run: dict[str, Any]) -> float:
    if measure == "size":
        return float(record["bytes"]) / max(1, run["workload"]["subscriptions"])
    if measure == "build":
        return float(record["cpu_s"])
    # The mean, not the median: rare and costly inserts, such as those that rebuild a part, count in full.
    return float(sum(record["insert_cpu_s"]) / max(1, sum(record["rows"])) * 1e6)


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


def _records_of(records: Sequence[dict[str, Any]], figure: Figure) -> list[dict[str, Any]]:
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


def factors_by_round(better: Point, worse: Point, measure: str) -> list[float]:
    """`times_as_much` for each round. Empty if the rounds of one were not kept apart, or not as many."""
    if len(better.rounds) != len(worse.rounds):
        return []
    pairs = zip(better.rounds, worse.rounds, strict=True)
    each = [times_as_much(better._replace(value=a), worse._replace(value=b), measure) for a, b in pairs]
    return [factor for factor in each if factor]


def mean_factor(factors: Sequence[float]) -> float | None:
    """The geometric mean: twice as much and half as much cancel out."""
    return math.exp(sum(map(math.log, factors)) / len(factors)) if factors else None
