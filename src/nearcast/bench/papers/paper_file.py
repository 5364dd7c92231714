"""Papers in TOML files, shipped or your own. A new paper is a new file and needs no code."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from nearcast.bench.papers.paper import MEASURES, TRENDS, Claim, Figure, Paper
from nearcast.bench.runs.sweep import settings_of
from nearcast.bench.toml_files import find_toml, require_known, table_of
from nearcast.bench.workloads.workload import group_of
from nearcast.errors import InvalidInput
from nearcast.matching.variant import variant_of


def find_paper(name: str | os.PathLike[str]) -> Paper:
    """A shipped paper by name, or the paper in a TOML file."""
    return paper_of(find_toml(name, "papers"))


def paper_of(content: Mapping[str, Any]) -> Paper:
    """The paper that a file describes. Unknown entries and unusable values raise now, not an hour into the run."""
    require_known(content, ("name", "title", "about", "data", "run", "figures"), "a paper")
    data, run = table_of(content, "data"), table_of(content, "run")
    figures = tuple(_figure(each, run) for each in _list(content, "figures"))
    made = Paper(
        str(content["name"]), str(content.get("title", content["name"])), str(content.get("about", "")), data, figures
    )
    if not figures or len({figure.id for figure in figures}) < len(figures):
        raise InvalidInput(f"the paper '{made.name}' needs figures with different ids")
    for figure in figures:
        _check(made, figure)
    return made


def _figure(content: Mapping[str, Any], run: Mapping[str, Any]) -> Figure:
    known = {field.name for field in dataclasses.fields(Figure)} - {"settings"} | {"run"}
    require_known(content, known, "a figure")
    for name in ("id", "title", "data", "methods"):
        if not content.get(name):
            raise InvalidInput(f"a figure needs '{name}': {dict(content)!r:.80}")
    given: dict[str, Any] = {
        name: str(content[name]) for name in ("id", "title", "place", "note", "measure") if name in content
    }
    named: dict[str, Any] = {name: _texts(content, name) for name in ("data", "methods", "groups") if name in content}
    tables: dict[str, Any] = {name: table_of(content, name) for name in ("tokens", "workload", "vary", "options")}
    claims = tuple(_claim(each) for each in _list(content, "claims"))
    settings = settings_of({**run, **table_of(content, "run")})
    return Figure(**given, **named, **tables, settings=settings, claims=claims)


def _claim(content: Mapping[str, Any]) -> Claim:
    require_known(content, {field.name for field in dataclasses.fields(Claim)}, "a claim")
    if "says" not in content:
        raise InvalidInput(f"a claim needs 'says': {dict(content)!r:.80}")
    given: dict[str, Any] = {
        name: str(content[name]) for name in ("says", "place", "unit", "trend", "method", "why") if name in content
    }
    named: dict[str, Any] = {name: _texts(content, name) for name in ("order", "panels")}
    values = {name: _value(name, value) for name, value in table_of(content, "values").items()}
    return Claim(**given, **named, values=values, at=content.get("at"))


def _value(name: str, value: Any) -> float | tuple[float, ...]:
    """A number above 0, or a range of two numbers."""
    parts = value if isinstance(value, list) and len(value) == 2 else [value]
    if not all(isinstance(part, int | float) and part > 0 for part in parts):
        raise InvalidInput(f"the value of '{name}' in a claim is a number above 0 or two of them, not {value!r}")
    return tuple(parts) if isinstance(value, list) else parts[0]


def _check(paper: Paper, figure: Figure) -> None:
    where = f"figure '{figure.id}' of {paper.name}"
    varied = (figure.vary, figure.tokens, figure.options)
    _one_of(figure.measure, MEASURES, f"the measure of {where}")
    for data in figure.data:
        _one_of(data, tuple(paper.data), f"the data of {where}")
    if len(figure.vary) > 1 or len(figure.options) > 1 or len(list(filter(bool, varied))) > 1:
        raise InvalidInput(f"{where} varies more than one thing")
    if any(group_of(stem).tokens is not None for stem in figure.groups):
        raise InvalidInput(f"the groups of {where} must not contain numbers of tokens; give those in 'tokens'")
    for length, counts in figure.tokens.items():
        _one_of(length, ("short", "long"), f"a length in the tokens of {where}")
        if not isinstance(counts, list) or not all(isinstance(count, int) for count in counts):
            raise InvalidInput(f"the tokens of {where} are lists of whole numbers; '{length}' is {counts!r}")
    for name, values in figure.options.items():
        if not isinstance(values, list) or not values:
            raise InvalidInput(f"the values of the option '{name}' in {where} are a list")
    for label in figure.variants:
        variant_of(label)
    _check_workloads(paper, figure, where)
    for claim in figure.claims:
        _check_claim(figure, claim, where)


def _check_workloads(paper: Paper, figure: Figure, where: str) -> None:
    name, values = next(iter(figure.vary.items()), ("seed", [1]))
    if not isinstance(values, list) or not values:
        raise InvalidInput(f"the values of '{name}' in {where} are a list")
    for value in values:
        for data in figure.data:
            paper.workload(data, figure, {name: value})


def _check_claim(figure: Figure, claim: Claim, where: str) -> None:
    if claim.trend:
        _one_of(claim.trend, TRENDS, f"a trend of {where}")
    if (claim.trend or claim.method) and claim.method not in figure.methods:
        raise InvalidInput(f"a claim of {where} is about '{claim.method}', which is not one of its methods")
    for label in (*claim.order, *(() if claim.method else claim.values)):
        _one_of(label, figure.methods, f"a method in a claim of {where}")
    if len(figure.data) == 1:
        for panel in claim.panels:
            _one_of(panel, figure.groups, f"a panel in a claim of {where}")
    if sum(map(bool, (claim.order, claim.values, claim.trend))) > 1:
        raise InvalidInput(f"a claim of {where} has more than one of order, values and trend")


def _one_of(value: str, known: tuple[str, ...], what: str) -> None:
    if value not in known:
        raise InvalidInput(f"{what} is '{value}'; known are {', '.join(known)}")


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
