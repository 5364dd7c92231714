"""The nouns, in their batch (column) form: kinds, messages, rows, hits, matches, changes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

Id = int | str | uuid.UUID
"""The id of a subscription or a message as Python has it. Inside, ids are int64."""

NO_TIME = np.iinfo(np.int64).min
"""A message without a time. Times are microseconds since 1970, UTC."""

NEVER = np.iinfo(np.int64).max
"""The expiry of a subscription that does not expire."""

NO_SHAPE = -1
"""The shape number of a row whose region is its box."""

MAX_TERMS_PER_ROW = 65_535
"""Term counts are stored as uint16."""

LARGEST_TERM = (1 << 28) - 1
"""Arrays by term stay below some gigabytes. The largest vocabularies have a hundredth of it."""

LARGEST_WEIGHT = 1e300
"""The largest weight of a token: sums over rows of up to 65,535 terms stay finite."""

NO_PARAMETERS: Mapping[str, np.ndarray] = MappingProxyType({})


class Parameter(NamedTuple):
    """A number that each subscription of a kind carries: a table column, and an argument of `Engine.subscribe`."""

    name: str
    meaning: str
    """Completes the sentence "kind 'rank' needs …"."""
    low: float = 0.0
    high: float = 1.0
    default: float | None = None
    """None: the parameter is required."""
    selective: tuple[float, float] = (0.0, 1.0)
    """Values for which an index can prune. The check of a method's effort draws from this range."""
    is_whole: bool = False
    """Only whole numbers are valid."""


@dataclass(frozen=True)
class Kind:
    """A kind of subscription, as users see it: its name, parameters and result columns.

    The exact test of a kind is a subclass of `matching.row_params.RowParams`. Its methods, `brute` among them, are
    registered under (kind, name).
    """

    name: str
    parameters: tuple[Parameter, ...] = ()
    is_scored: bool = False
    """Matches carry a score."""
    is_plain: bool = False
    """A subscription is one row: plain tokens and one box, without OR, NOT or an exact shape."""
    is_point: bool = False
    """A subscription has a point, at least one token and no expiry."""
    default_method: str = "brute"
    """Serves the kind where the method is `auto` and the kind has no `auto` of its own."""


MATCH = Kind("match", default_method="auto")
RANK = Kind(
    "rank",
    (
        Parameter("alpha", "the weight of the place", default=0.5, selective=(0.3, 0.7)),
        Parameter("threshold", "the least score to deliver", selective=(0.75, 1.0)),
    ),
    is_scored=True,
    is_plain=True,
    default_method="rt++-tree",
)

KINDS: dict[str, Kind] = {MATCH.name: MATCH, RANK.name: RANK}
"""Every kind, by name. `register_kind` adds to it."""

TOP = Kind(
    "top",
    (
        Parameter("k", "the number of messages to keep", low=1.0, high=2.0**31 - 1, default=10.0, is_whole=True),
        Parameter("alpha", "the weight of the place", default=0.5),
    ),
    is_scored=True,
    is_plain=True,
    is_point=True,
)

WINDOW_KINDS: dict[str, Kind] = {TOP.name: TOP}
"""Kinds whose results depend on a window of messages. `nc.TopK` serves them; an index does not."""


def register_kind(kind: Kind) -> None:
    """Make a kind known to tables, indexes, the engine and the command line."""
    if KINDS.setdefault(kind.name, kind) != kind:
        raise ValueError(f"kind '{kind.name}' is taken")


class MessageBatch(NamedTuple):
    """Messages as columns. Terms are sorted and unique within a message; tokens unknown to the vocabulary are left
    out.
    """

    ids: np.ndarray  # int64[n]    message ids
    terms: np.ndarray  # int32[...]  the terms of all messages, one after another
    term_starts: np.ndarray  # int64[n+1]  where each message's terms start
    boxes: np.ndarray  # float64[n,4]  xmin, ymin, xmax, ymax; a point has xmin == xmax and ymin == ymax
    times: np.ndarray  # int64[n]    microseconds, or NO_TIME

    @property
    def size(self) -> int:
        return len(self.ids)

    def at_present(self, now: int) -> MessageBatch:
        """The same messages; those without a time have the time `now`."""
        return self._replace(times=np.where(self.times == NO_TIME, now, self.times))

    def part(self, start: int, stop: int) -> MessageBatch:
        """Messages start..stop-1, without copying."""
        first, last = self.term_starts[start], self.term_starts[stop]
        return MessageBatch(
            self.ids[start:stop],
            self.terms[first:last],
            self.term_starts[start : stop + 1] - first,
            self.boxes[start:stop],
            self.times[start:stop],
        )


class RowBatch(NamedTuple):
    """Subscriptions as rows: one row for each (clause, box) of a subscription.

    A row holds when all of its terms and none of its `not` terms occur in the message and its box (and its shape,
    where it has one) overlaps the message's place. Terms are sorted and unique within a row.
    """

    owner_ids: np.ndarray  # int64[n]    the subscription that each row belongs to; rows of one owner are neighbours
    terms: np.ndarray  # int32[...]  positive terms of all rows
    term_starts: np.ndarray  # int64[n+1]
    not_terms: np.ndarray  # int32[...]  negative terms of all rows
    not_starts: np.ndarray  # int64[n+1]
    boxes: np.ndarray  # float64[n,4]
    shapes: np.ndarray  # int32[n]    position among the batch's shapes, or NO_SHAPE
    expires: np.ndarray  # int64[n]    microseconds, or NEVER
    params: Mapping[str, np.ndarray] = NO_PARAMETERS  # float64[n] for each parameter of the kind

    @property
    def size(self) -> int:
        return len(self.owner_ids)

    @classmethod
    def empty(cls, parameters: Iterable[str] = ()) -> RowBatch:
        """No rows."""
        no_ids, no_terms, no_starts = np.empty(0, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64)
        params = {name: np.empty(0) for name in parameters}
        return cls(no_ids, no_terms, no_starts, no_terms, no_starts, np.empty((0, 4)), no_terms, no_ids, params)


class Hits(NamedTuple):
    """The rows that a method found for each message: unordered, no row twice."""

    rows: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n_messages + 1]
    scores: np.ndarray | None = None  # float64[...]  of scored kinds


class Found(NamedTuple):
    """The subscriptions that each message of a batch concerns."""

    ids: np.ndarray  # int64[...]  subscription ids, ascending within a message, no repeats
    starts: np.ndarray  # int64[n_messages + 1]
    scores: np.ndarray | None = None  # float64[...]  NaN for subscriptions of unscored kinds; None where all are


class Changes(NamedTuple):
    """Pairs that become matches (+1) or cease to be matches (-1), in the order in which they happen."""

    message_ids: np.ndarray  # int64[n]
    subscription_ids: np.ndarray  # int64[n]
    signs: np.ndarray  # int8[n]     +1 or -1
    scores: np.ndarray  # float64[n]  NaN for unscored kinds
    times: np.ndarray  # int64[n]    microseconds, or NO_TIME

    @property
    def size(self) -> int:
        return len(self.signs)


class Match(NamedTuple):
    """One message concerns one subscription."""

    message: Id
    subscription: Id
    score: float | None = None
    """The score, where the subscription is of a scored kind."""


class Change(NamedTuple):
    """A message enters (+1) or leaves (-1) the results of a subscription of kind `top`, or of one that follows."""

    message: Id
    subscription: Id
    change: int
    score: float | None = None
    """The score, for kind `top`."""


Event = Match | Change


def in_order(changes: Iterable[Change]) -> list[Change]:
    """The changes of one step by subscription; what leaves a subscription comes first."""
    return sorted(changes, key=lambda each: (each.subscription, each.change))


class Work(NamedTuple):
    """Counts of the work done: lists, cells or tree nodes visited; rows compared with a message; rows that held.

    Methods that choose a strategy for each message by a cost model also report the cost expected of the chosen
    strategies, and the cost that the model computes from the counted work. Both are 0 elsewhere.
    """

    nodes: int = 0
    candidates: int = 0
    matches: int = 0
    expected_ns: int = 0
    spent_ns: int = 0

    def plus(self, other: Work) -> Work:
        return Work(
            self.nodes + other.nodes,
            self.candidates + other.candidates,
            self.matches + other.matches,
            self.expected_ns + other.expected_ns,
            self.spent_ns + other.spent_ns,
        )
