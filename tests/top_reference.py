"""Kind `top` by hand: dicts and sorting, no array and no code of the package."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple


class Wanted(NamedTuple):
    words: list[str]
    x: float
    y: float
    k: int
    alpha: float


class Posted(NamedTuple):
    number: int
    words: list[str]
    x: float
    y: float


def cosine(wanted: list[str], posted: list[str], weight: dict[str, float]) -> float:
    largest = max(weight.values(), default=1.0)
    first = {word: weight.get(word, largest) for word in set(wanted)}
    second = {word: n * weight.get(word, largest) for word, n in Counter(posted).items()}
    lengths = [math.sqrt(sum(value**2 for value in each.values())) for each in (first, second)]
    return sum(first[word] * second[word] for word in first.keys() & second.keys()) / math.prod(lengths)


def best(wanted: Wanted, window: list[Posted], weight: dict[str, float], max_dist: float) -> list[tuple[int, float]]:
    """(message, score), best first; of equal scores the newer message, which is later in the window."""
    scored = []
    for position, posted in enumerate(window):
        if set(posted.words) & set(wanted.words):
            place = max(0.0, 1.0 - math.dist((wanted.x, wanted.y), (posted.x, posted.y)) / max_dist)
            words = cosine(wanted.words, posted.words, weight)
            scored.append((wanted.alpha * place + (1 - wanted.alpha) * words, position, posted.number))
    return [(number, score) for score, _, number in sorted(scored, reverse=True)[: wanted.k]]


def columns(rows: list[Any], **named: str) -> dict[str, list[Any]]:
    """Tuples as columns of a table."""
    return {name: [getattr(row, field) for row in rows] for name, field in named.items()}
