"""The nouns, in their batch (column) form. See docs/glossary.md for the words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NO_TIME = np.iinfo(np.int64).min
"""A message without a time. Times are microseconds since 1970, UTC."""

NEVER = np.iinfo(np.int64).max
"""The expiry of a subscription that does not expire."""

NO_SHAPE = -1
"""The shape number of a row whose region is its box."""

KINDS = ("match", "rank", "top")
"""Of subscriptions."""

MAX_TERMS_PER_ROW = 65_535
"""Term counts are stored as uint16."""

LARGEST_WEIGHT = 1e300
"""Of a token: the sum over a row, of 65,535 terms at most, is then finite."""


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
    shapes: np.ndarray  # int32[n]    position in the batch's list of regions, or NO_SHAPE
    expires: np.ndarray  # int64[n]    microseconds, or NEVER

    @property
    def size(self) -> int:
        return len(self.owner_ids)


class RankBatch(NamedTuple):
    """Ranked subscriptions: one row each, without `not` terms and without a shape, and what each asks for."""

    rows: RowBatch
    alphas: np.ndarray  # float64[n]  how much place counts, 0 .. 1
    thresholds: np.ndarray  # float64[n]  the least score that is delivered, 0 .. 1

    @property
    def size(self) -> int:
        return self.rows.size


class Hits(NamedTuple):
    """What a method found: for each message, the rows that hold (unordered, no row twice)."""

    rows: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n_messages + 1]


class Found(NamedTuple):
    """The subscriptions that each message of a batch concerns."""

    ids: np.ndarray  # int64[...]  subscription ids, ascending within a message, no repeats
    starts: np.ndarray  # int64[n_messages + 1]
    scores: np.ndarray | None = None  # float64[...]  NaN for subscriptions that are not ranked; None where none is


class Work(NamedTuple):
    """Work done: how many lists, cells or tree nodes were visited; how many rows were compared with a message; how
    many held. Of methods that choose a way for each message by a cost model, also what the chosen ways were expected to
    cost and what the model makes of the work that was then counted; 0 elsewhere.
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
