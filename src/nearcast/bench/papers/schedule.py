"""The runs that a set of figures needs. Figures with the same rows and settings share a run: an index is built once.

A figure that varies a parameter shares its runs only with figures that vary the same parameter of the same methods.
All points of a line are thus measured beside the same methods.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nearcast.bench.papers.paper import Figure, Paper
from nearcast.bench.runs.case import Settings, known_methods
from nearcast.bench.runs.run_case import steps_of
from nearcast.bench.streams.run_stream import known_stream_methods, stream_steps
from nearcast.bench.streams.stream_workload import STREAM_KINDS
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput, UnknownMethod, UnsupportedKind
from nearcast.matching.variant import variant_of


class Part(NamedTuple):
    """The share of a run in a figure."""

    run: int  # its number
    data: str
    value: Any  # of the varied parameter; None without one


@dataclass
class Run:
    """A run with the methods and groups of all figures that share it."""

    workload: Workload
    settings: Settings
    methods: list[str] = field(default_factory=list)

    def add(self, groups: Sequence[str], labels: Sequence[str]) -> None:
        self.workload = self.workload.but(groups=tuple(dict.fromkeys((*self.workload.groups, *groups))))
        self.methods += [label for label in labels if label not in self.methods]

    @property
    def is_stream(self) -> bool:
        return self.workload.kind in STREAM_KINDS

    @property
    def steps(self) -> int:
        """The number of steps that the run will report."""
        if self.is_stream:
            return stream_steps(self.methods, self.settings)
        return steps_of(self.methods, self.workload, self.settings)


@dataclass
class Schedule:
    runs: list[Run]
    parts: dict[str, list[Part]]  # by figure; empty if none of its methods can run
    missing: dict[str, dict[str, str]]  # by figure: methods that cannot run, and why

    @property
    def steps(self) -> int:
        return sum(run.steps for run in self.runs)


def schedule_runs(paper: Paper, figures: Sequence[Figure], scale: float) -> Schedule:
    schedule = Schedule([], {}, {})
    numbers: dict[str, int] = {}
    for figure in figures:
        schedule.parts[figure.id], schedule.missing[figure.id] = [], {}
        operations = max(10, round(figure.settings.mixed * scale)) if figure.settings.mixed else 0
        settings = dataclasses.replace(figure.settings, mixed=operations)
        for data, value, workload in _workloads(paper, figure, scale):
            labels, missing = available(list(figure.variants), workload.kind)
            schedule.missing[figure.id] |= missing
            if labels:
                varied = [dict(figure.vary), labels] if figure.vary else []
                alike = [varied, workload.parameters() | {"groups": None}, dataclasses.asdict(settings)]
                number = numbers.setdefault(json.dumps(alike, sort_keys=True), len(schedule.runs))
                if number == len(schedule.runs):
                    schedule.runs.append(Run(workload, settings))
                schedule.runs[number].add(workload.groups, labels)
                schedule.parts[figure.id].append(Part(number, data, value))
    return schedule


def _workloads(paper: Paper, figure: Figure, scale: float) -> list[tuple[str, Any, Workload]]:
    made = []
    name = next(iter(figure.vary), None)
    for data in figure.data:
        for value in figure.vary[name] if name else [None]:
            workload = paper.workload(data, figure, {name: value} if name else {})
            workload = workload.scaled(scale) if scale != 1.0 else workload
            made.append((data, workload.parameters()[name] if name else None, workload))
    return made


def available(methods: Sequence[str], kind: str) -> tuple[list[str], dict[str, str]]:
    """The labels of the methods that can run, and the reason why each of the others cannot."""
    labels, missing = [], {}
    for text in methods:
        label = variant_of(text).label
        try:
            (known_stream_methods if kind in STREAM_KINDS else known_methods)([text], kind)
            labels.append(label)
        except UnknownMethod:
            missing[label] = "there is no such method"
        except UnsupportedKind:
            missing[label] = f"it has no kind {kind}"
        except InvalidInput as error:
            if kind not in STREAM_KINDS:
                raise
            missing[label] = str(error)
    return labels, missing
