"""The experiments of a paper as data: its figures, their data sets, and the paper's claims about them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearcast.bench.runs.case import Settings
from nearcast.bench.workloads.workload import GROUPS, Workload, group_name, workload_of
from nearcast.errors import InvalidInput
from nearcast.matching.variant import variant_of

OF_INDEXES = ("size", "build", "insert")
"""Measures that do not depend on the messages."""
MEASURES = ("time", "throughput", "nodes", "candidates", "matches", *OF_INDEXES)
TRENDS = ("rises", "falls", "sublinear", "hump", "dip")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper about a figure, in our words. One of order, values and trend may be given to check it."""

    says: str
    place: str = ""  # in the paper
    order: tuple[str, ...] = ()  # methods, the best first
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # by method; with `method`, by panel or place
    unit: str = ""  # of the values, as the paper has them
    trend: str = ""  # one of TRENDS, of `method` along the axis
    method: str = ""
    panels: tuple[str, ...] = ()  # that the claim is about; all if empty
    at: Any = None  # the only position on the axis that the claim is about
    why: str = ""  # the reason if our result differs


@dataclass(frozen=True)
class Figure:
    """One figure or table. Its axis shows the numbers of tokens, or the varied parameter of the workload, or the varied
    option of the methods, or the data sets.
    """

    id: str  # as in --figures: "7", "table-1"
    title: str
    place: str = ""
    note: str = ""  # choices that the paper leaves open
    measure: str = "time"
    data: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    groups: tuple[str, ...] = GROUPS
    tokens: Mapping[str, list[int]] = dataclasses.field(default_factory=dict)  # of "short", "long"
    workload: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # values that replace those of the data set
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
        """The groups of messages that are run; with `tokens`, one group for each number of tokens."""
        if not self.tokens:
            return self.groups
        return tuple(group_name(stem, n) for stem in self.groups for n in self.tokens.get(stem.split("-")[0], ()))

    @property
    def variants(self) -> dict[str, tuple[str, Any]]:
        """The methods that are run, by label: (label in the figure, value of the option along the axis)."""
        labels = [variant_of(text).label for text in self.methods]
        if not self.options:
            return {label: (label, None) for label in labels}
        name, values = next(iter(self.options.items()))
        return {f"{label} {name}={json.dumps(value)}": (label, value) for value in values for label in labels}

    @property
    def name(self) -> str:
        """The name for readers: "Fig. 7", "Table 1"."""
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
        """The figures with the given ids, as in "7,table-1", in the order of the paper; all figures without ids."""
        if ids is None:
            return list(self.figures)
        wanted = [name.strip() for name in ids.split(",") if name.strip()]
        known = [figure.id for figure in self.figures]
        for name in wanted:
            if name not in known:
                raise InvalidInput(f"{self.name} has no figure '{name}'; it has {', '.join(known)}")
        if not wanted:
            raise InvalidInput("--figures names no figure; leave it out for all")
        return [figure for figure in self.figures if figure.id in wanted]

    def workload(self, data: str, figure: Figure, varied: Mapping[str, Any]) -> Workload:
        parameters = {"name": data, **self.data[data], **figure.workload, **varied, "groups": list(figure.all_groups)}
        return workload_of(parameters)
