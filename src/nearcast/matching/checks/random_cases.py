"""Seeded random subscriptions and messages. `tiny` draws boxes and terms from small pools, so that they collide."""

from __future__ import annotations

import numpy as np

from nearcast.matching.checks.cases import Box, Message, Subscription, point


def zipf_terms(rng: np.random.Generator, n: int, vocabulary: int) -> list[int]:
    """n draws, repeats removed, small terms often."""
    return sorted(set((vocabulary * rng.random(n) ** 3).astype(int).tolist()))


def random_box(rng: np.random.Generator, largest: float) -> Box:
    x, y = rng.random(2)
    w, h = rng.random(2) ** 2 * largest
    return (float(x), float(y), float(x + w), float(y + h))


def random_subscriptions(seed: int, n: int, vocabulary: int = 60, largest: float = 0.4) -> list[Subscription]:
    rng = np.random.default_rng(seed)
    return [
        Subscription(int(i) * 7 - 100, zipf_terms(rng, int(rng.integers(1, 6)), vocabulary), random_box(rng, largest))
        for i in rng.permutation(n)
    ]


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


def tiny_subscriptions(seed: int, n: int, first_id: int = 0) -> list[Subscription]:
    """Six boxes, four terms, up to two NOT terms: equal boxes, equal rows and rows without terms abound."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        terms = sorted(set(rng.integers(0, 4, int(rng.integers(0, 4))).tolist()))
        not_terms = sorted(
            set(rng.integers(0, 4, int(rng.integers(0, 3)) * int(rng.random() < 0.3)).tolist()) - set(terms)
        )
        made.append(Subscription(first_id + i, terms, _TINY_BOXES[int(rng.integers(len(_TINY_BOXES)))], not_terms))
    return made


def tiny_messages(seed: int, n: int) -> list[Message]:
    """Up to five terms, one of them in no subscription; the places of the pool and its boxes."""
    rng = np.random.default_rng(seed)
    places = _TINY_POINTS + _TINY_BOXES
    return [
        Message(
            sorted(set(rng.integers(0, 5, int(rng.integers(0, 6))).tolist())),
            places[int(rng.integers(len(places)))],
        )
        for _ in range(n)
    ]
