"""Which column of the raw files becomes which column of the messages or subscriptions table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from nearcast.errors import InvalidInput

Kind = Literal["messages", "subscriptions"]

_BOX = ("xmin", "ymin", "xmax", "ymax")
_WORDS = {"messages": ("text", "tokens"), "subscriptions": ("tokens", "expression")}
_PLACES = {"messages": ("x", "y", *_BOX), "subscriptions": ("x", "y", *_BOX, "region")}
_RADII = {"messages": (), "subscriptions": ("km", "m", "miles")}
_EXTRAS = {"messages": ("time", "expires"), "subscriptions": ("kind", "alpha", "threshold", "k", "expires")}
_OTHER_NAMES = {"lon": "x", "lng": "x", "longitude": "x", "lat": "y", "latitude": "y", "radius_km": "km"}
_JOINER = "+"
_RARE = ("time", "expires", "kind", "alpha", "threshold", "k")
"""Columns that a record may lack."""


class Columns(NamedTuple):
    """The raw columns of each target column. Small: it travels to workers with each task."""

    kind: Kind
    sources: dict[str, tuple[str, ...]]  # by target; several raw columns are joined with spaces
    required: frozenset[str]  # targets that every file must have

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(self.sources)

    @property
    def names(self) -> list[str]:
        """All raw columns in use, each once."""
        return list(dict.fromkeys(name for names in self.sources.values() for name in names))

    @property
    def words(self) -> list[str]:
        """The raw columns of the text or tokens: a record must have one of them, even if it is empty."""
        return [name for target in _WORDS[self.kind] for name in self.sources.get(target, ())]

    def missing_column(self, there: Sequence[str]) -> tuple[str, str] | None:
        """(column, reason) if a file with the columns `there` cannot be read, else None."""
        listed = ", ".join(there) or "none"
        for target in self.targets:
            for name in self.sources[target]:
                if target in self.required and name not in there:
                    return target, f"the file has no column '{name}'; it has {listed}"
                if there.count(name) > 1:
                    return target, f"the file has two columns '{name}'; it has {listed}"
        if not {*self.words} & {*there}:
            return _WORDS[self.kind][0], f"the file has no column '{self.words[0]}'; it has {listed}"
        return None


def resolve_columns(kind: Kind, mapping: Mapping[str, str], there: Sequence[str], make_ids: bool = False) -> Columns:
    """The mapping, completed with raw columns that already have the name of a target column.

    `there` are the column names of some of the files. If the mapping names one column of a group (the words, the
    place), no other column of the group is added: a box in the files must not replace the point that was mapped.
    """
    if kind not in _WORDS:
        raise InvalidInput(f"kind is 'messages' or 'subscriptions', not {kind!r}")
    given = _given(kind, mapping, there)
    required = frozenset(given) - set(_EXTRAS[kind])
    sources = dict(given)
    for group in (("id",), _WORDS[kind], _PLACES[kind], *((name,) for name in _EXTRAS[kind])):
        if not set(group) & set(given):
            sources |= _found(group, there)
    if "x" in sources and not {*_RADII[kind]} & {*given}:
        sources |= _found(_RADII[kind], there)
    if make_ids:
        sources.pop("id", None)
    _check_complete(kind, sources, make_ids, there)
    return Columns(kind, {name: sources[name] for name in _order(kind) if name in sources}, required)


def check_mapping(mapping: Mapping[str, str], there: Sequence[str], is_json: bool) -> None:
    """Refuse raw columns that no file has: a misspelt name would reject every record. A JSON key may be rare."""
    for target, source in mapping.items():
        if not there or (is_json and target in _RARE):
            continue
        parts = {source} if source in there or target != "text" else {*source.split(_JOINER)}
        if missing := sorted(parts - {*there}):
            raise InvalidInput(f"'{target}': no file has a column '{missing[0]}'; they have {', '.join(there)}")


def _order(kind: Kind) -> tuple[str, ...]:
    return ("id", *_WORDS[kind], *_PLACES[kind], *_RADII[kind], *_EXTRAS[kind])


def _given(kind: Kind, mapping: Mapping[str, str], there: Sequence[str]) -> dict[str, tuple[str, ...]]:
    given = {}
    for target, source in mapping.items():
        name = _OTHER_NAMES.get(target, target)
        if name not in _order(kind):
            raise InvalidInput(f"{kind} have no column '{target}'; there are {', '.join(_order(kind))}")
        if not source:
            raise InvalidInput(f"'{target}' is mapped to nothing; name a column of the raw files")
        parts = source.split(_JOINER) if _JOINER in source and source not in there and name == "text" else [source]
        given[name] = tuple(parts)
    return given


def _found(group: Sequence[str], there: Sequence[str]) -> dict[str, tuple[str, ...]]:
    other = {target: name for name, target in _OTHER_NAMES.items() if name in there}
    found: dict[str, tuple[str, ...]] = {target: (target,) for target in group if target in there}
    return found or {target: (other[target],) for target in group if target in other}


def _check_complete(kind: Kind, sources: dict[str, tuple[str, ...]], make_ids: bool, there: Sequence[str]) -> None:
    seen = f"; the files have {', '.join(there)}" if there else ""
    if "id" not in sources and not make_ids:
        raise InvalidInput(f"{kind} need ids: map a column to 'id', or have ids made{seen}", column="id")
    if not set(_WORDS[kind]) & set(sources):
        wanted = " or ".join(f"'{name}'" for name in _WORDS[kind])
        raise InvalidInput(f"{kind} need words: map a column to {wanted}{seen}", column=_WORDS[kind][0])
    if not ({"x", "y"} <= set(sources) or set(_BOX) <= set(sources) or "region" in sources):
        raise InvalidInput(f"{kind} need a place: map columns to x and y, or to xmin, ymin, xmax and ymax{seen}")
