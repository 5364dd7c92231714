"""An oracle for kind `rank` that shares nothing with the library: strings, dicts, plain floats, one pair at a time."""

from __future__ import annotations

import math
from typing import Any

Pair = tuple[int, int, float | None]


def delivered(
    subscriptions: list[dict[str, Any]], messages: list[dict[str, Any]], weights: dict[str, float]
) -> list[Pair]:
    """(message, subscription, score), sorted; the score of a boolean subscription is None."""
    found: list[Pair] = []
    for m in messages:
        for s in subscriptions:
            if s.get("kind", "match") == "match":
                if set(s["tokens"]) <= set(m["tokens"]) and not _apart(s["box"], m["box"]):
                    found.append((m["id"], s["id"], None))
            elif score(s, m, weights) >= s["threshold"]:
                found.append((m["id"], s["id"], score(s, m, weights)))
    return sorted(found, key=lambda pair: pair[:2])


def score(s: dict[str, Any], m: dict[str, Any], weights: dict[str, float]) -> float:
    largest = max(weights.values(), default=1.0)
    own = {token: weights.get(token, largest) for token in s["tokens"]}
    total, shared = sum(own.values()), sum(weight for token, weight in own.items() if token in m["tokens"])
    words = shared / total if total else 1.0
    return float(s["alpha"] * _place(s["box"], m["box"]) + (1 - s["alpha"]) * words)


def _place(own: tuple[float, ...], box: tuple[float, ...]) -> float:
    if _apart(own, box):
        return 0.0
    area = (own[2] - own[0]) * (own[3] - own[1])
    is_point = (box[0], box[1]) == (box[2], box[3])
    if is_point or area == 0.0:
        return 1.0
    width = min(own[2], box[2]) - max(own[0], box[0])
    height = min(own[3], box[3]) - max(own[1], box[1])
    return width * height / area


def _apart(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]


def idf(subscriptions: list[dict[str, Any]]) -> dict[str, float]:
    tokens = {token for s in subscriptions for token in s["tokens"]}
    counts = {token: sum(token in s["tokens"] for s in subscriptions) for token in tokens}
    return {token: math.log(1 + len(subscriptions) / count) for token, count in counts.items()}
