"""The experiments of a paper as data: its figures, the data sets they are over, what the paper says of each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearcast.bench.runs.runner import Settings
from nearcast.bench.workloads.workload import GROUPS, Workload, group_name, workload_of
from nearcast.errors import InvalidInput
from nearcast.matching.variant import variant_of

OF_INDEXES = ("size", "build", "insert")
"""Measures of an index, whatever the messages are."""
MEASURES = ("time", "throughput", "nodes", "candidates", "matches", *OF_INDEXES)
TRENDS = ("rises", "falls", "sublinear", "hump", "dip")


@dataclass(frozen=True)
class Claim:
    """What the paper says of a figure, in our words, and what of it can be checked: one of order, values, trend."""

    says: str
    place: str = ""  # in the paper
    order: tuple[str, ...] = ()  # methods, the best first
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # by method; with `method`, by panel or place
    unit: str = ""  # of the values, as the paper has them
    trend: str = ""  # one of TRENDS, of `method` along the axis
    method: str = ""
    panels: tuple[str, ...] = ()  # only these; all where none is named
    at: Any = None  # only at this place of the axis
    why: str = ""  # where ours differs, the reason


@dataclass(frozen=True)
class Figure:
    """One figure or table. Along its axis: numbers of tokens, else the varied parameter of the workload or option of
    the methods, else the data sets.
    """

    id: str  # as it is asked for: "7", "table-1"
    title: str
    place: str = ""
    note: str = ""  # what we had to choose
    measure: str = "time"
    data: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    groups: tuple[str, ...] = GROUPS
    tokens: Mapping[str, list[int]] = dataclasses.field(default_factory=dict)  # of "short", "long"
    workload: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # other values than the data's
    vary: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)  # at most one parameter
    options: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)  # at most one, of all methods
    settings: Settings = dataclasses.field(default_factory=Settings)
    claims: tuple[Claim, ...] = ()

    @property
    def along(self) -> str:
        if self.tokens:
            return "tokens"
        for name in (*self.vary, *self.options):
            return name
        return "data" if len(self.data) > 1 else "messages"

    @property
    def all_groups(self) -> tuple[str, ...]:
        """The groups of messages that are run: one for each number of tokens, where numbers are given."""
        if not self.tokens:
            return self.groups
        return tuple(group_name(stem, n) for stem in self.groups for n in self.tokens.get(stem.split("-")[0], ()))

    @property
    def variants(self) -> dict[str, tuple[str, Any]]:
        """By label, the methods that are run: (its label in the figure, the value of the option along the axis)."""
        labels = [variant_of(text).label for text in self.methods]
        if not self.options:
            return {label: (label, None) for label in labels}
        name, values = next(iter(self.options.items()))
        return {f"{label} {name}={json.dumps(value)}": (label, value) for value in values for label in labels}

    @property
    def name(self) -> str:
        """What people call it."""
        if self.id[:1].isdigit():
            return f"Fig. {self.id.replace('-', ', ')}"
        return self.id.replace("-", " ").capitalize()


@dataclass(frozen=True)
class Paper:
    name: str
    title: str
    about: str
    data: Mapping[str, Mapping[str, Any]]  # the parameters of each data set
    figures: tuple[Figure, ...]

    def chosen(self, ids: str | None) -> list[Figure]:
        """Those asked for, as in "7,table-1", in the paper's order; all where none is named."""
        if ids is None:
            return list(self.figures)
        wanted = [name.strip() for name in ids.split(",") if name.strip()]
        known = [figure.id for figure in self.figures]
        for name in wanted:
            if name not in known:
                raise InvalidInput(f"{self.name} has no figure '{name}'; it has {', '.join(known)}")
        if not wanted:
            raise InvalidInput("--figures names none; leave it out for all")
        return [figure for figure in self.figures if figure.id in wanted]

    def workload(self, data: str, figure: Figure, varied: Mapping[str, Any]) -> Workload:
        parameters = {"name": data, **self.data[data], **figure.workload, **varied, "groups": list(figure.all_groups)}
        return workload_of(parameters)
