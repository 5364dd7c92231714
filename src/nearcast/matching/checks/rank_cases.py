"""Small words to write checks of kind `rank` with: ranked subscriptions from plain tuples, and answers as plain lists.

Weights, sides, alphas and most thresholds are multiples of small powers of two: sums are exact, and ties are real.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nearcast.matching.checks.cases import UNIT, Box, Message, Subscription, batch_of, point, rows_of
from nearcast.matching.checks.random_cases import random_box, zipf_terms
from nearcast.matching.rank_method import RANK_REGISTRY
from nearcast.matching.ranker import Ranker
from nearcast.matching.variant import variant_of
from nearcast.model import NEVER, MessageBatch, RankBatch

WEIGHTS = np.array([1.0, 3.0, 0.0, 2.0, *((1 + 7 * k % 13) / 8 for k in range(60))])
"""By term: 0 weighs 1, 1 weighs 3, 2 weighs nothing, 3 weighs 2; no term weighs more than 1 does."""

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
THRESHOLDS = (0.0, 0.125, 0.25, 0.5, 0.625, 0.75, 0.875, 1.0)


class Ranked(NamedTuple):
    id: int
    terms: Sequence[int]
    box: Box
    alpha: float = 0.5
    threshold: float = 0.5
    expires: int = NEVER


def ranks_of(subscriptions: Iterable[Ranked]) -> RankBatch:
    listed = list(subscriptions)
    rows, _ = rows_of(Subscription(s.id, s.terms, s.box, expires=s.expires) for s in listed)
    return RankBatch(rows, np.array([s.alpha for s in listed]), np.array([s.threshold for s in listed]))


def rank_variants(name: str) -> list[str]:
    """The rank method with each of the options that its class wants checked."""
    return [f"{name} {options}".strip() for options in RANK_REGISTRY[name].checked_with]


def ranked(method: str, subscriptions: Iterable[Ranked], weights: np.ndarray = WEIGHTS) -> Ranker:
    """A ranker that holds these. `method` is a name, or a name and options."""
    variant = variant_of(method)
    ranker = Ranker(variant.name, UNIT, weights, variant.options)
    ranker.insert(ranks_of(subscriptions))
    return ranker


def insert(ranker: Ranker, subscriptions: Iterable[Ranked]) -> None:
    ranker.insert(ranks_of(subscriptions))


def remove(ranker: Ranker, ids: Iterable[int]) -> None:
    ranker.remove(np.array(list(ids), np.int64))


def scores(
    ranker: Ranker, messages: Iterable[Message] | MessageBatch, threads: int = 1
) -> list[list[tuple[int, float]]]:
    """For each message, (id, score) in the order given."""
    found = ranker.match(messages if isinstance(messages, MessageBatch) else batch_of(messages), threads)
    assert found.scores is not None and len(found.scores) == len(found.ids)
    pairs = list(zip(found.ids.tolist(), found.scores.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]


def expect(ranker: Ranker, message: Message, wanted: dict[int, float], why: str) -> None:
    """The one message is delivered to exactly these, with these scores."""
    got = scores(ranker, [message])[0]
    assert got == sorted(wanted.items()), f"{why}: expected {sorted(wanted.items())}, found {got} for {message}"


def expect_as_brute(method: str, subscriptions: list[Ranked], messages: list[Message]) -> None:
    """The method gives the pairs and the scores of brute force, bit for bit."""
    expect_equal(ranked(method, subscriptions), ranked("brute", subscriptions), messages)


def expect_equal(ranker: Ranker, oracle: Ranker, messages: list[Message]) -> None:
    for message, mine, right in zip(messages, scores(ranker, messages), scores(oracle, messages), strict=True):
        missing, extra = sorted(set(right) - set(mine)), sorted(set(mine) - set(right))
        assert mine == right, f"for {message}: missing {missing[:10]}, too many {extra[:10]}, found {mine[:20]}"


def random_ranked(seed: int, n: int, vocabulary: int = 60, largest: float = 0.4) -> list[Ranked]:
    """Up to five terms, none now and then; every fifth asks for a corner of what can be asked."""
    rng = np.random.default_rng(seed)
    made = []
    for i in rng.permutation(n):
        alpha, threshold = rng.random(), rng.random()
        if rng.random() < 0.2:
            alpha, threshold = rng.choice(ALPHAS), rng.choice(THRESHOLDS)
        terms = zipf_terms(rng, int(rng.integers(0, 6)), vocabulary)
        made.append(Ranked(int(i) * 7 - 100, terms, random_box(rng, largest), float(alpha), float(threshold)))
    return made


BOXES: list[Box] = [
    (0.0, 0.0, 1.0, 1.0),
    (0.25, 0.25, 0.5, 0.5),
    (0.5, 0.5, 0.75, 0.75),
    (0.25, 0.0, 0.25, 1.0),
    point(0.5, 0.5),
    (-3.0, 0.5, 4.0, 0.5),
    (-4.0, -4.0, 4.0, 4.0),
    (0.125, 0.25, 0.625, 0.75),
]
"""Some touch, some lie within others, some have no area."""


def tiny_ranked(seed: int, n: int, first_id: int = 0) -> list[Ranked]:
    """Eight boxes, five terms, all corners of alpha and threshold: ties and equal rows abound."""
    rng = np.random.default_rng(seed)
    return [
        Ranked(
            first_id + i,
            sorted(set(rng.integers(0, 5, int(rng.integers(0, 4))).tolist())),
            BOXES[int(rng.integers(len(BOXES)))],
            float(rng.choice(ALPHAS)),
            float(rng.choice(THRESHOLDS)),
        )
        for i in range(n)
    ]


def tiny_places(seed: int, n: int) -> list[Message]:
    """Points of a grid, and the boxes of the pool; up to five terms, one of them in no subscription."""
    rng = np.random.default_rng(seed)
    points = [point(x / 8, y / 8) for x in range(9) for y in range(0, 9, 2)]
    places = BOXES + [points[int(k)] for k in rng.integers(0, len(points), 8)]
    return [
        Message(
            sorted(set(rng.integers(0, 6, int(rng.integers(0, 6))).tolist())), places[int(rng.integers(len(places)))]
        )
        for _ in range(n)
    ]
