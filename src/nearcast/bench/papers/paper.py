"""The experiments of a paper as data: its figures, their data sets, and the paper's claims about them.

Papers are TOML files, shipped or your own. A new paper is a new file and needs no code.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nearcast.bench.runs.case import Settings
from nearcast.bench.runs.sweep import settings_of
from nearcast.bench.streams.measures import OF_KIND, STREAM_UNITS
from nearcast.bench.streams.stream_workload import STREAM_KINDS, stream_workload_of
from nearcast.bench.toml_files import find_toml, require_known, table_of
from nearcast.bench.workloads.workload import GROUPS, Workload, group_name, group_of, workload_of
from nearcast.errors import InvalidInput
from nearcast.matching.variant import variant_of

OF_INDEXES = ("size", "build", "insert")
"""Measures that do not depend on the messages."""
MEASURES = ("time", "throughput", "nodes", "candidates", "matches", *OF_INDEXES, *STREAM_UNITS)
TRENDS = ("rises", "falls", "sublinear", "hump", "dip")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper about a figure, in our words. One of order, values and trend may be given to check it."""

    says: str
    place: str = ""  # in the paper
    order: tuple[str, ...] = ()  # methods, the best first
    at_least: float = 1.0  # times as much: the smallest factor between neighbours of the order
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # by method; with `method`, by panel or place
    unit: str = ""  # of the values, as the paper has them
    trend: str = ""  # one of TRENDS, of `method` along the axis
    method: str = ""
    panels: tuple[str, ...] = ()  # that the claim is about; all if empty
    at: Any = None  # the only position on the axis that the claim is about; "last" is the last one
    each: bool = False  # the claim is about each position on the axis by itself
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
    axis: str = ""  # the name of the axis, for readers
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
    def axis_name(self) -> str:
        """The name of the axis for readers."""
        return self.axis or {"data": "data set"}.get(self.along, self.along)

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

    def kind_of(self, data: str) -> str:
        """The kind of a data set: `top` and `moving` are streams."""
        return str(self.data[data].get("kind", "match"))

    def workload(self, data: str, figure: Figure, varied: Mapping[str, Any]) -> Workload:
        if self.kind_of(data) in STREAM_KINDS:
            return stream_workload_of({"name": data, **self.data[data], **figure.workload, **varied})
        groups = list(figure.all_groups)
        return workload_of({"name": data, **self.data[data], **figure.workload, **varied, "groups": groups})


# -- TOML files


def find_paper(name: str | os.PathLike[str]) -> Paper:
    """A shipped paper by name, or the paper in a TOML file."""
    return paper_of(find_toml(name, "papers"))


def paper_of(content: Mapping[str, Any]) -> Paper:
    """The paper that a file describes. Unknown entries and unusable values raise now, not an hour into the run."""
    require_known(content, ("name", "title", "about", "data", "run", "figures"), "a paper")
    data, run = table_of(content, "data"), table_of(content, "run")
    figures = tuple(_figure(each, run) for each in _list(content, "figures"))
    name, about = str(content["name"]), str(content.get("about", ""))
    made = Paper(name, str(content.get("title", name)), about, data, figures)
    if not figures or len({figure.id for figure in figures}) < len(figures):
        raise InvalidInput(f"the paper '{made.name}' needs figures, each with an id of its own")
    for figure in figures:
        _check(made, figure)
    return made


def _figure(content: Mapping[str, Any], run: Mapping[str, Any]) -> Figure:
    known = {field.name for field in dataclasses.fields(Figure)} - {"settings"} | {"run"}
    require_known(content, known, "a figure")
    for name in ("id", "title", "data", "methods"):
        if not content.get(name):
            raise InvalidInput(f"a figure needs '{name}': {dict(content)!r:.80}")
    given = _strings(content, ("id", "title", "place", "note", "measure", "axis"))
    given |= {name: _texts(content, name) for name in ("data", "methods", "groups") if name in content}
    given |= {name: table_of(content, name) for name in ("tokens", "workload", "vary", "options")}
    claims = tuple(_claim(each) for each in _list(content, "claims"))
    return Figure(**given, settings=settings_of({**run, **table_of(content, "run")}), claims=claims)


def _claim(content: Mapping[str, Any]) -> Claim:
    require_known(content, {field.name for field in dataclasses.fields(Claim)}, "a claim")
    if "says" not in content:
        raise InvalidInput(f"a claim needs 'says': {dict(content)!r:.80}")
    given = _strings(content, ("says", "place", "unit", "trend", "method", "why"))
    given |= {name: _texts(content, name) for name in ("order", "panels")}
    values = {name: _value(name, value) for name, value in table_of(content, "values").items()}
    at_least = content.get("at_least", 1.0)
    if not isinstance(at_least, int | float) or at_least < 1:
        raise InvalidInput(f"'at_least' of a claim is a factor, 1 or more, not {at_least!r}")
    return Claim(**given, values=values, at=content.get("at"), each=bool(content.get("each")), at_least=float(at_least))


def _value(name: str, value: Any) -> float | tuple[float, ...]:
    """A number above 0, or a range of two numbers."""
    parts = value if isinstance(value, list) and len(value) == 2 else [value]
    if not all(isinstance(part, int | float) and part > 0 for part in parts):
        raise InvalidInput(f"the value of '{name}' in a claim is a number above 0 or two of them, not {value!r}")
    return tuple(parts) if isinstance(value, list) else parts[0]


def _check(paper: Paper, figure: Figure) -> None:
    where = f"figure '{figure.id}' of {paper.name}"
    _require_each((figure.measure,), MEASURES, f"the measure of {where}")
    _require_each(figure.data, paper.data, f"the data of {where}")
    kinds = {paper.kind_of(data) for data in figure.data}
    for kind in kinds & set(OF_KIND):
        _require_each((figure.measure,), OF_KIND[kind], f"the measure of {where}")
    if not kinds & set(OF_KIND) and figure.measure in STREAM_UNITS:
        raise InvalidInput(f"the measure of {where} is '{figure.measure}', which needs data of kind top or moving")
    _check_axis(figure, where)
    for label in figure.variants:
        variant_of(label)
    name, values = next(iter(figure.vary.items()), ("seed", [1]))
    for value in values:
        for data in figure.data:
            paper.workload(data, figure, {name: value})
    for claim in figure.claims:
        _check_claim(figure, claim, where)


def _check_axis(figure: Figure, where: str) -> None:
    varied = (figure.vary, figure.tokens, figure.options)
    if len(figure.vary) > 1 or len(figure.options) > 1 or len(list(filter(bool, varied))) > 1:
        raise InvalidInput(f"{where} varies more than one thing")
    if any(group_of(stem).tokens is not None for stem in figure.groups):
        raise InvalidInput(f"the groups of {where} must not contain numbers of tokens; give those in 'tokens'")
    _require_each(figure.tokens, ("short", "long"), f"a length in the tokens of {where}")
    for length, counts in figure.tokens.items():
        if not isinstance(counts, list) or not all(isinstance(count, int) for count in counts):
            raise InvalidInput(f"the tokens of {where} are lists of whole numbers; '{length}' is {counts!r}")
    for name, values in (*figure.vary.items(), *figure.options.items()):
        if not isinstance(values, list) or not values:
            what = f"the option '{name}'" if name in figure.options else f"'{name}'"
            raise InvalidInput(f"the values of {what} in {where} are a list")


def _check_claim(figure: Figure, claim: Claim, where: str) -> None:
    if claim.trend:
        _require_each((claim.trend,), TRENDS, f"a trend of {where}")
    if (claim.trend or claim.method) and claim.method not in figure.methods:
        raise InvalidInput(f"a claim of {where} is about '{claim.method}', which is none of its methods")
    labels = (*claim.order, *(() if claim.method else claim.values))
    _require_each(labels, figure.methods, f"a method in a claim of {where}")
    if len(figure.data) > 1 and figure.measure in STREAM_UNITS:
        _require_each(claim.panels, figure.data, f"a panel in a claim of {where}")
    elif len(figure.data) == 1:
        _require_each(claim.panels, figure.groups, f"a panel in a claim of {where}")
    if sum(map(bool, (claim.order, claim.values, claim.trend))) > 1:
        raise InvalidInput(f"a claim of {where} has more than one of order, values and trend")


def _require_each(values: Iterable[str], known: Collection[str], what: str) -> None:
    for value in values:
        if value not in known:
            raise InvalidInput(f"{what} is '{value}'; known are {', '.join(known)}")


def _strings(content: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: str(content[name]) for name in names if name in content}


def _list(content: Mapping[str, Any], name: str) -> list[Any]:
    value = content.get(name, [])
    if not isinstance(value, list):
        raise InvalidInput(f"'{name}' is a list of tables, not {value!r}")
    return value


def _texts(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """One string, or a list of strings."""
    value = content.get(name, [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise InvalidInput(f"'{name}' is a list of names, not {value!r}")
    return tuple(listed)
