"""Validation of `kind=` and the kind's parameters, as arguments of `Engine.subscribe`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearcast.errors import InvalidInput
from nearcast.geo.region import Region
from nearcast.geo.space import Space
from nearcast.model import KINDS, TOP, WINDOW_KINDS, Kind, Parameter
from nearcast.text.clauses import Clause

OF_A_WINDOW = ("window", "max_dist")
"""What kind `top` takes besides the parameters of each row."""


def read_kind(name: str, given: Mapping[str, Any]) -> tuple[Kind, dict[str, float]]:
    """The kind, and the values of its parameters."""
    if name not in KINDS:
        known = " or ".join(repr(each) for each in (*KINDS, *WINDOW_KINDS))
        raise InvalidInput(f"kind= is {known}, not {name!r}", column="kind")
    kind = KINDS[name]
    values = {parameter.name: given.get(parameter.name) for parameter in kind.parameters}
    refuse_others(set(given) - set(values))
    return kind, {parameter.name: number_of(values[parameter.name], parameter, kind) for parameter in kind.parameters}


def refuse_others(names: set[str]) -> None:
    """Raise InvalidInput where arguments are left over."""
    if not names:
        return
    for kind in (*KINDS.values(), *WINDOW_KINDS.values()):
        own = [parameter.name for parameter in kind.parameters] + list(OF_A_WINDOW if kind is TOP else ())
        if names & set(own):
            verb = "goes" if len(own) == 1 else "go"
            raise InvalidInput(f"{'= and '.join(own)}= {verb} with kind='{kind.name}'", column="kind")
    for name in sorted(names):
        raise InvalidInput(f"subscribe takes no {name}=", column=name)


def number_of(value: Any, parameter: Parameter, kind: Kind) -> float:
    """The value of a parameter, or its default."""
    limits = f"from {parameter.low:g} to {parameter.high:g}"
    if value is None and parameter.default is None:
        reason = f"kind='{kind.name}' needs {parameter.name}=, {parameter.meaning}, {limits}"
        raise InvalidInput(reason, column=parameter.name)
    chosen: Any = parameter.default if value is None else value
    try:
        number = float(chosen)
    except (TypeError, ValueError):
        number = float("nan")
    is_fit = parameter.low <= number <= parameter.high and (number.is_integer() or not parameter.is_whole)
    if not is_fit or isinstance(value, bool):
        noun = "whole number" if parameter.is_whole else "number"
        raise InvalidInput(f"{parameter.name}= is a {noun} {limits}, not {value!r}", column=parameter.name)
    return number


def require_plain(kind: Kind, clauses: list[Clause], region: Region, space: Space) -> None:
    """Raise InvalidInput unless a subscription of a plain kind is plain words and one box."""
    if not kind.is_plain:
        return
    if len(clauses) != 1 or clauses[0].forbidden:
        raise InvalidInput(f"kind='{kind.name}' takes plain words, not OR or NOT", column="expression")
    if not region.is_box or len(region.boxes(space)) != 1:
        raise InvalidInput(f"kind='{kind.name}' takes box= or no place, not {region.describe()}", column="region")
