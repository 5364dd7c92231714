"""Seeded random subscriptions and messages of any kind. `tiny` draws from small pools, so that values collide."""

from __future__ import annotations

import numpy as np

from nearcast.matching.checks.cases import Box, Message, Subscription, point
from nearcast.model import MATCH, Kind, Parameter


def zipf_terms(rng: np.random.Generator, n: int, vocabulary: int) -> list[int]:
    """n draws, repeats removed, small terms often."""
    return sorted(set((vocabulary * rng.random(n) ** 3).astype(int).tolist()))


def random_box(rng: np.random.Generator, largest: float) -> Box:
    x, y = rng.random(2)
    w, h = rng.random(2) ** 2 * largest
    return (float(x), float(y), float(x + w), float(y + h))


def random_subscriptions(
    seed: int, n: int, vocabulary: int = 60, largest: float = 0.4, kind: Kind = MATCH
) -> list[Subscription]:
    """One to five terms each, and none now and then for kinds other than `match`."""
    rng = np.random.default_rng(seed)
    drawn = [
        Subscription(int(i) * 7 - 100, zipf_terms(rng, int(rng.integers(1, 6)), vocabulary), random_box(rng, largest))
        for i in rng.permutation(n)
    ]
    if kind is MATCH:
        return drawn
    termless = [s._replace(terms=[]) if rng.random() < 0.1 else s for s in drawn]
    return [s._replace(params={p.name: _value(rng, p) for p in kind.parameters}) for s in termless]


def selective_subscriptions(seed: int, n: int, kind: Kind) -> list[Subscription]:
    """Subscriptions of many terms and small boxes, whose parameters allow an index to prune."""
    rng = np.random.default_rng(seed)
    drawn = random_subscriptions(seed, n, vocabulary=400, largest=0.1)
    return [s._replace(params={p.name: float(rng.uniform(*p.selective)) for p in kind.parameters}) for s in drawn]


def _value(rng: np.random.Generator, parameter: Parameter) -> float:
    """A uniform draw; every fifth is a multiple of an eighth of the range."""
    share = int(rng.integers(0, 9)) / 8 if rng.random() < 0.2 else float(rng.random())
    return parameter.low + share * (parameter.high - parameter.low)


def random_messages(seed: int, n: int, vocabulary: int = 60, largest: float = 0.0) -> list[Message]:
    """Points where `largest` is 0, else ranges up to that side."""
    rng = np.random.default_rng(seed)
    return [Message(zipf_terms(rng, int(rng.integers(1, 20)), vocabulary), random_box(rng, largest)) for _ in range(n)]


_TINY_BOXES: list[Box] = [
    (0.0, 0.0, 1.0, 1.0),
    (0.25, 0.25, 0.5, 0.5),
    (0.5, 0.5, 0.75, 0.75),
    (0.25, 0.0, 0.25, 1.0),
    point(0.5, 0.5),
    (-3.0, 0.5, 4.0, 0.5),
]
_TINY_POINTS = [point(x, y) for x in (0.0, 0.25, 0.5, 0.75, 1.0) for y in (0.25, 0.5, 1.0)]
_MORE_BOXES: list[Box] = [*_TINY_BOXES, (-4.0, -4.0, 4.0, 4.0), (0.125, 0.25, 0.625, 0.75)]
"""Boxes for kinds to which the overlapped share of a box matters."""
_MORE_POINTS = [point(x / 8, y / 8) for x in range(9) for y in range(0, 9, 2)]


def tiny_subscriptions(seed: int, n: int, first_id: int = 0, kind: Kind = MATCH) -> list[Subscription]:
    """A few boxes, terms and parameter values: equal boxes, equal rows, ties and rows without terms abound.

    Kinds that are not plain have up to two NOT terms.
    """
    rng = np.random.default_rng(seed)
    boxes = _MORE_BOXES if kind.is_scored else _TINY_BOXES
    made = []
    for i in range(n):
        terms = sorted(set(rng.integers(0, 4, int(rng.integers(0, 4))).tolist()))
        n_not = int(rng.integers(0, 3)) * int(rng.random() < 0.3)
        not_terms = sorted(set(rng.integers(0, 4, n_not).tolist()) - set(terms))
        box = boxes[int(rng.integers(len(boxes)))]
        params = {p.name: p.low + int(rng.integers(0, 9)) / 8 * (p.high - p.low) for p in kind.parameters}
        made.append(Subscription(first_id + i, terms, box, [] if kind.is_plain else not_terms, params=params))
    return made


def tiny_messages(seed: int, n: int, kind: Kind = MATCH) -> list[Message]:
    """Up to five terms, one of them in no subscription; places on a grid, and the boxes of `tiny_subscriptions`."""
    rng = np.random.default_rng(seed)
    places = _MORE_POINTS + _MORE_BOXES if kind.is_scored else _TINY_POINTS + _TINY_BOXES
    made = []
    for _ in range(n):
        terms = sorted(set(rng.integers(0, 5, int(rng.integers(0, 6))).tolist()))
        made.append(Message(terms, places[int(rng.integers(len(places)))]))
    return made
