"""Small words to write checks with: subscriptions and messages from plain tuples, and answers as plain sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nearcast.arrays.ragged import starts_of
from nearcast.geo.region import Region
from nearcast.geo.space import Space
from nearcast.matching.matcher import Matcher
from nearcast.matching.method import find_method
from nearcast.matching.variant import variant_of
from nearcast.model import NEVER, NO_SHAPE, NO_TIME, MessageBatch, RowBatch

UNIT = Space(True, (0.0, 0.0, 1.0, 1.0))
"""Checks live in the unit square; coordinates outside it are legal, and some checks go there."""

EVERYWHERE = (0.0, 0.0, 1.0, 1.0)

Box = tuple[float, float, float, float]


class Subscription(NamedTuple):
    id: int
    terms: Sequence[int]
    box: Box
    not_terms: Sequence[int] = ()
    region: Region | None = None
    expires: int = NEVER


class Message(NamedTuple):
    terms: Sequence[int]
    box: Box
    time: int = NO_TIME


def point(x: float, y: float) -> Box:
    return (x, y, x, y)


def rows_of(subscriptions: Iterable[Subscription]) -> tuple[RowBatch, list[Region]]:
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
    )
    return batch, regions


def batch_of(messages: Iterable[Message]) -> MessageBatch:
    listed = list(messages)
    terms, starts = _ragged([sorted(set(m.terms)) for m in listed])
    boxes = np.array([m.box for m in listed], np.float64).reshape(-1, 4)
    times = np.array([m.time for m in listed], np.int64)
    return MessageBatch(np.arange(len(listed), dtype=np.int64), terms, starts, boxes, times)


def _ragged(lists: list[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    flat = [term for terms in lists for term in terms]
    return np.array(flat, np.int32), starts_of(np.array([len(terms) for terms in lists], np.int64))


def empty(method: str) -> Matcher:
    """A matcher with nothing in it. `method` is a name, or a name and options: "pyramid crowded=2 young=8"."""
    variant = variant_of(method)
    return Matcher(variant.name, UNIT, variant.options)


def variants(name: str) -> list[str]:
    """The method with each of the options that its class wants checked."""
    return [f"{name} {options}".strip() for options in find_method(name).checked_with]


def built(method: str, subscriptions: Iterable[Subscription]) -> Matcher:
    """A matcher that holds these."""
    matcher = empty(method)
    insert(matcher, subscriptions)
    return matcher


def insert(matcher: Matcher, subscriptions: Iterable[Subscription]) -> None:
    matcher.insert(*rows_of(subscriptions))


def remove(matcher: Matcher, ids: Iterable[int]) -> None:
    matcher.remove(np.array(list(ids), np.int64))


def answers(matcher: Matcher, messages: Iterable[Message] | MessageBatch, threads: int = 1) -> list[list[int]]:
    """For each message, the ids found, in the order given."""
    batch = messages if isinstance(messages, MessageBatch) else batch_of(messages)
    found = matcher.match(batch, threads)
    return [found.ids[a:b].tolist() for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]


def expect(matcher: Matcher, message: Message, ids: Iterable[int], why: str) -> None:
    """The one message concerns exactly these subscriptions."""
    got = answers(matcher, [message])[0]
    assert got == sorted(ids), f"{why}: expected {sorted(ids)}, found {got} for {message}"


def expect_as_brute(method: str, subscriptions: list[Subscription], messages: list[Message]) -> None:
    """The method finds what brute force finds."""
    expect_equal(built(method, subscriptions), built("brute", subscriptions), messages)


def expect_equal(matcher: Matcher, oracle: Matcher, messages: list[Message]) -> None:
    """Both find the same; the first difference is told in words."""
    got, wanted = answers(matcher, messages), answers(oracle, messages)
    for message, mine, right in zip(messages, got, wanted, strict=True):
        missing, extra = sorted(set(right) - set(mine)), sorted(set(mine) - set(right))
        assert mine == right, f"for {message}: missing {missing[:10]}, too many {extra[:10]}, found {mine[:20]}"
