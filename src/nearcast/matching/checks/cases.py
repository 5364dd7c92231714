"""The vocabulary of checks: subscriptions and messages from plain tuples, and answers as plain lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.ragged import starts_of
from nearcast.geo.region import Region
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.space import Space
from nearcast.matching.method import find_method
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.matching.variant import variant_of
from nearcast.model import MATCH, NEVER, NO_SHAPE, NO_TIME, Kind, MessageBatch, RowBatch

UNIT = Space(True, (0.0, 0.0, 1.0, 1.0))
"""Checks live in the unit square; coordinates outside it are legal, and some checks go there."""

EVERYWHERE = (0.0, 0.0, 1.0, 1.0)

Box = tuple[float, float, float, float]

WEIGHTS = np.array([1.0, 3.0, 0.0, 2.0, *((1 + 7 * k % 13) / 8 for k in range(60))])
"""By term, for scored kinds: 0 weighs 1, 1 weighs 3, 2 weighs nothing, 3 weighs 2; no term weighs more than 1 does.
Multiples of small powers of two, so that sums are exact and ties are real.
"""


class Subscription(NamedTuple):
    id: int
    terms: Sequence[int]
    box: Box
    not_terms: Sequence[int] = ()
    region: Region | None = None
    expires: int = NEVER
    params: Mapping[str, float] = {}


class Message(NamedTuple):
    terms: Sequence[int]
    box: Box
    time: int = NO_TIME


def point(x: float, y: float) -> Box:
    return (x, y, x, y)


def rows_of(subscriptions: Iterable[Subscription]) -> tuple[RowBatch, ShapeColumns]:
    """One row for each; several of one id in a row make one subscription of several rows."""
    listed = list(subscriptions)
    terms, starts = _ragged([s.terms for s in listed])
    not_terms, not_starts = _ragged([s.not_terms for s in listed])
    regions = [s.region for s in listed if s.region is not None]
    shapes = np.full(len(listed), NO_SHAPE, np.int32)
    shapes[[s.region is not None for s in listed]] = np.arange(len(regions))
    batch = RowBatch(
        np.array([s.id for s in listed], np.int64),
        terms,
        starts,
        not_terms,
        not_starts,
        np.array([s.box for s in listed], np.float64).reshape(-1, 4),
        shapes,
        np.array([s.expires for s in listed], np.int64),
        {name: np.array([s.params[name] for s in listed]) for name in (listed[0].params if listed else ())},
    )
    return batch, ShapeColumns.of(regions)


def batch_of(messages: Iterable[Message]) -> MessageBatch:
    listed = list(messages)
    terms, starts = _ragged([sorted(set(m.terms)) for m in listed])
    boxes = np.array([m.box for m in listed], np.float64).reshape(-1, 4)
    times = np.array([m.time for m in listed], np.int64)
    return MessageBatch(np.arange(len(listed), dtype=np.int64), terms, starts, boxes, times)


def _ragged(lists: list[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    flat = [term for terms in lists for term in terms]
    return np.array(flat, np.int32), starts_of(np.array([len(terms) for terms in lists], np.int64))


def empty(method: str, kind: Kind = MATCH, weights: np.ndarray = WEIGHTS) -> SubscriptionSet:
    """An empty set. `method` is a name, or a name and options: "pyramid crowded=2 young=8"."""
    variant = variant_of(method)
    return SubscriptionSet(variant.name, UNIT, variant.options, kind, weights)


def variants(name: str, kind: Kind = MATCH) -> list[str]:
    """The method with each of the options that its class wants checked."""
    return [f"{name} {options}".strip() for options in find_method(kind.name, name).checked_with]


def built(
    method: str, subscriptions: Iterable[Subscription], kind: Kind = MATCH, weights: np.ndarray = WEIGHTS
) -> SubscriptionSet:
    """A set with these subscriptions."""
    made = empty(method, kind, weights)
    insert(made, subscriptions)
    return made


def insert(live: SubscriptionSet, subscriptions: Iterable[Subscription]) -> None:
    batch, shapes = rows_of(subscriptions)
    if batch.size or live.kind is MATCH:
        live.insert(batch, shapes)


def remove(live: SubscriptionSet, ids: Iterable[int]) -> None:
    live.remove(np.array(list(ids), np.int64))


def answers(live: SubscriptionSet, messages: Iterable[Message] | MessageBatch, threads: int = 1) -> list[list[Any]]:
    """For each message, the ids found, in order; (id, score) where the kind is scored."""
    batch = messages if isinstance(messages, MessageBatch) else batch_of(messages)
    found = live.match(batch, threads)
    pairs: list[Any] = found.ids.tolist()
    if live.kind.is_scored:
        assert found.scores is not None and len(found.scores) == len(found.ids)
        pairs = list(zip(pairs, found.scores.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]


def expect(live: SubscriptionSet, message: Message, wanted: Iterable[int] | Mapping[int, float], why: str) -> None:
    """The message matches exactly these subscriptions: ids, or scores by id."""
    got = answers(live, [message])[0]
    right: list[Any] = sorted(wanted.items() if isinstance(wanted, Mapping) else wanted)
    assert got == right, f"{why}: expected {right}, found {got} for {message}"


def expect_as_brute(
    method: str, subscriptions: list[Subscription], messages: list[Message], kind: Kind = MATCH
) -> None:
    """The method finds exactly the pairs that brute force finds, with the same scores bit for bit."""
    expect_equal(built(method, subscriptions, kind), built("brute", subscriptions, kind), messages)


def expect_equal(live: SubscriptionSet, oracle: SubscriptionSet, messages: list[Message]) -> None:
    """Both find the same; the first difference is reported."""
    for message, mine, right in zip(messages, answers(live, messages), answers(oracle, messages), strict=True):
        missing, extra = sorted(set(right) - set(mine)), sorted(set(mine) - set(right))
        assert mine == right, f"for {message}: missing {missing[:10]}, too many {extra[:10]}, found {mine[:20]}"
