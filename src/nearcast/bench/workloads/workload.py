"""A workload: all parameters of the subscriptions and messages of a benchmark, with presets and TOML files."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from nearcast.bench.toml_files import read_toml, require_known
from nearcast.bench.workloads.words import WordSettings
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space

GROUPS = ("short-point", "short-range", "long-point", "long-range")
"""The papers' four groups of messages. A number in the name, as in short-6-point, sets the tokens of each message."""
KINDS = ("match", "rank")
TEXTS = ("none", "sample")
_FARTHEST_KM = 20_000.0
_GROUP = re.compile(r"(short|long)-(?:([1-9][0-9]{0,4})-)?(point|range)")


class Group(NamedTuple):
    """The parts of a group's name."""

    stem: str  # one of GROUPS
    tokens: int | None  # of each message; None: as the workload sets it


def group_of(name: str) -> Group:
    found = _GROUP.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidInput(
            f"no '{name}' among the groups of messages: take {', '.join(GROUPS)}, or add a number of tokens, "
            "as in short-6-point"
        )
    length, tokens, place = found.groups()
    return Group(f"{length}-{place}", None if tokens is None else int(tokens))


def group_name(stem: str, tokens: int) -> str:
    """The name of the group of a stem whose messages all have that number of tokens."""
    return f"-{tokens}-".join(stem.split("-"))


@dataclass(frozen=True)
class Workload:
    """Shares lie between 0 and 1; pairs are (least, most), both included. The seed determines all draws."""

    kinds: ClassVar[tuple[str, ...]] = KINDS

    name: str = "custom"
    subscriptions: int = 100_000
    messages: int = 1_000  # in each group
    seed: int = 1
    space: tuple[float, float, float, float] | None = (0.0, 0.0, 1.0, 1.0)  # a plane, or None for lon/lat

    vocabulary: int = 200_000
    zipf: float = 1.1
    topics: int = 2_000
    words_per_topic: int = 200
    topic_share: float = 0.3  # of a message's tokens
    local_share: float = 0.3  # of a message's topics belong to its place

    clusters: int = 200  # with the sample's texts: towns that the sample is copied to
    background: float = 0.3  # share of places outside the clusters
    texts: str = "none"  # "sample": words and places of the messages that come with nearcast

    tokens: tuple[int, int] = (1, 5)  # of a subscription, taken from one message
    common_share: float = 1.0  # real words in more than this share of the messages are not taken
    box_share: tuple[float, float] = (1e-4, 1e-2)  # of the space, log-uniform
    radius_km: tuple[float, float] = (0.0, 0.0)  # above 0: boxes as large as circles of this radius, log-uniform
    short: tuple[int, int] = (5, 20)  # tokens of a short message
    long: tuple[int, int] = (100, 1_000)
    range_share: tuple[float, float] = (1e-4, 1e-2)  # of the space, for range messages
    groups: tuple[str, ...] = GROUPS

    # Shares of the subscriptions that ...
    hot_share: float = 0.0  # want the most frequent tokens of their message
    world_share: float = 0.0  # cover the whole space
    tiny_share: float = 0.0  # cover one point
    identical_share: float = 0.0  # are copies of the first
    expression_share: float = 0.0  # join their tokens by AND and OR: see expressions.py
    negated_share: float = 0.0  # have several tokens and negate one
    circle_share: float = 0.0  # have a circle as large as their box: see regions.py
    polygon_share: float = 0.0  # have a polygon within their box
    wordless_share: float = 0.0  # take every message at their place
    expiring_share: float = 0.0  # expire before, between or after the messages, which then have times
    drift_share: float = 0.0  # drift from west to east: see subscriptions.py
    built_share: float = 1.0  # exist when an index is built; the others are inserted later

    kind: str = "match"
    alpha: tuple[float, float] = (0.5, 0.5)  # of kind rank: the weight of the place, uniform
    threshold: tuple[float, float] = (0.5, 0.5)  # of kind rank: the least score, uniform

    def __post_init__(self) -> None:
        for names, fits, what in _RULES:
            for name in names:
                _require(fits(getattr(self, name)), name, what)
        _require(self.kind in self.kinds, "kind", f"one of {', '.join(self.kinds)}")
        if self.kind != "match":
            for name in OF_KIND_MATCH:
                _require(getattr(self, name) == 0, name, f"0 with kind {self.kind}")
            _require(self.built_share == 1, "built_share", f"1 with kind {self.kind}")
        if self.space is not None:
            _require(self.radius_km[1] == 0, "radius_km", "0 in a plane; kilometres need space = 'lonlat'")
            _require(self.texts == "none", "texts", "none in a plane; the sample needs space = 'lonlat'")
        _require(self.circle_share + self.polygon_share <= 1, "circle_share", "at most 1 together with polygon_share")
        _require(len({group_of(group) for group in self.groups}) == len(self.groups), "groups", "different ones")
        Space.of(self.space)

    @property
    def geometry(self) -> Space:
        return Space.of(self.space)

    @property
    def n_built(self) -> int:
        """The number of subscriptions (the first ones) that an index is built with."""
        return max(min(1, self.subscriptions), round(self.built_share * self.subscriptions))

    @property
    def is_plain(self) -> bool:
        """Whether each subscription is one row, tokens and a box, that a method alone can decide."""
        return not any(getattr(self, name) for name in OF_KIND_MATCH)

    @property
    def words(self) -> WordSettings:
        return WordSettings(*(getattr(self, name) for name in WordSettings._fields))

    def but(self, **changes: Any) -> Self:
        """The workload with some values changed. Lists, as TOML and JSON have them, become tuples."""
        known = {field.name for field in dataclasses.fields(self)}
        require_known(changes, known, "a workload")
        return dataclasses.replace(self, **{name: _plain(name, value) for name, value in changes.items()})

    def scaled(self, factor: float) -> Self:
        """The workload with its numbers of subscriptions, messages and words multiplied by a factor."""
        if not 0 < factor < float("inf"):
            raise InvalidInput(f"scale must be above 0; it is {factor}")
        return self.but(
            subscriptions=max(1, round(self.subscriptions * factor)),
            messages=max(1, round(self.messages * factor)),
            vocabulary=min(2**27, max(2_000, round(self.vocabulary * factor))),
        )

    def parameters(self) -> dict[str, Any]:
        """All values, as TOML and JSON can represent them."""
        listed = dataclasses.asdict(self)
        listed["space"] = "lonlat" if self.space is None else list(self.space)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in listed.items()}


def _plain(name: str, value: Any) -> Any:
    if name == "space" and value == "lonlat":
        return None
    return tuple(value) if isinstance(value, list) else value


def _is_whole(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_pair(value: Any, is_part: Callable[[Any], bool]) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(is_part, value)) and value[0] <= value[1]


def _is_sizes(value: Any, most: float = 1) -> bool:
    return _is_pair(value, partial(_is_number, least=0, most=most)) and (value[0] > 0 or value[1] == 0)


_is_share = partial(_is_number, least=0, most=1)
_is_lengths = partial(_is_pair, is_part=partial(_is_whole, least=1, most=50_000))
_PAIRED_SHARES = ("box_share", "range_share")
OF_KIND_MATCH = (
    "expression_share",
    "negated_share",
    "circle_share",
    "polygon_share",
    "wordless_share",
    "expiring_share",
)
"""Parameters that only subscriptions of kind `match` may have."""
_SHARES = (
    "background",
    *(f.name for f in dataclasses.fields(Workload) if f.name.endswith("_share") and f.name not in _PAIRED_SHARES),
)
_RULES: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("subscriptions", "messages", "clusters"), partial(_is_whole, least=0), "a whole number, 0 or more"),
    (("topics", "words_per_topic"), partial(_is_whole, least=1), "a whole number, 1 or more"),
    (("vocabulary",), partial(_is_whole, least=10, most=2**27), "10 to 134 million words"),
    (("seed",), _is_whole, "a whole number"),
    (("zipf",), partial(_is_number, least=0, most=5), "a number from 0 to 5"),
    (_SHARES, _is_share, "a share from 0 to 1"),
    (_PAIRED_SHARES, _is_sizes, "two shares from 0 to 1, the smaller first and above 0 (or both 0: points)"),
    (
        ("radius_km",),
        partial(_is_sizes, most=_FARTHEST_KM),
        f"two radii up to {_FARTHEST_KM:,.0f} km, the smaller first and above 0 (or both 0: boxes by share)",
    ),
    (("texts",), lambda texts: texts in TEXTS, f"one of {', '.join(TEXTS)}"),
    (("tokens", "short", "long"), _is_lengths, "two whole numbers, at least 1, the smaller first"),
    (("alpha", "threshold"), partial(_is_pair, is_part=_is_share), "two numbers from 0 to 1, the smaller first"),
    (("groups",), bool, f"some of {', '.join(GROUPS)}"),
)
"""For each rule: the parameters, their check, and what they must be."""


def _require(fits: bool, name: str, what: str) -> None:
    if not fits:
        raise InvalidInput(f"the workload's {name} must be {what}")


A = Workload(name="A")
B = Workload(name="B", box_share=(1e-6, 1e-4))
PRESETS = {
    "A": A,
    "B": B,
    "lonlat": B.but(name="lonlat", space=None),
    "skewed": B.but(name="skewed", hot_share=0.2, world_share=0.01, tiny_share=0.2, identical_share=0.05),
    "uniform": B.but(name="uniform", vocabulary=20_000, zipf=0.0, topic_share=0.0, clusters=0, background=1.0),
    "expressions": A.but(name="expressions", tokens=(3, 7), expression_share=0.5, negated_share=0.3),
    "mixed": Workload(
        name="mixed",
        space=None,
        texts="sample",
        groups=("short-point",),
        short=(1, 60),
        tokens=(1, 4),
        common_share=0.1,
        radius_km=(0.5, 25.0),
        circle_share=0.26,
        polygon_share=0.21,
        world_share=0.01,
        tiny_share=0.04,
        expression_share=0.6,
        negated_share=0.2,
        wordless_share=0.02,
        expiring_share=0.05,
    ),
}
"""Boxes cover 0.01-1 % of the space in A (as in the papers) and 0.0001-0.01 % in B. With a million subscriptions a
short point message has about 125 matches in A and 3 in B; a long message has ten times as many. `mixed` is what people
register: regions of all kinds around real messages, with OR, NOT and expiry."""


def find_workload(name: str | os.PathLike[str]) -> Workload:
    """A preset by name, or the workload in a TOML file."""
    if str(name) in PRESETS:
        return PRESETS[str(name)]
    path = Path(name)
    if path.suffix != ".toml":
        raise InvalidInput(f"no workload '{name}'; there are {', '.join(PRESETS)}, or give a .toml file of parameters")
    return workload_of({"name": path.stem} | read_toml(path))


def workload_of(parameters: Mapping[str, Any]) -> Workload:
    """The workload with these parameters. `base` names the preset that the other parameters change."""
    changes = dict(parameters)
    base = changes.pop("base", None)
    if base is not None and base not in PRESETS:
        raise InvalidInput(f"no workload '{base}' to base on; there are {', '.join(PRESETS)}")
    return (Workload() if base is None else PRESETS[base]).but(**changes)
