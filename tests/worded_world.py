"""Random expressions with what they mean in plain Python, and random messages to compare them with.

A meaning is a function of a message's tokens (in order) and attributes. It shares nothing with the library. Pools are
tiny, so that words repeat, follow each other, begin alike and contradict each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

WORDS = ("ice", "icy", "iceland", "road", "roads", "hot", "dog", "dogs")
PREFIXES = ("ic", "ice", "icel", "ro", "road", "do", "dogs", "xy")
KINDS = ("road", "rail", "3")

Meaning = Callable[[list[str], dict[str, Any]], bool]
Drawn = tuple[str, Meaning]


class Worded(NamedTuple):
    """A subscription: an expression, what it means, and a box."""

    expression: str
    holds: Meaning
    box: tuple[float, float, float, float]


def _word(rng: random.Random) -> Drawn:
    word = rng.choice(WORDS)
    return rng.choice((word, word.upper(), f'"{word}"')), lambda tokens, _: word in tokens


def _prefix(rng: random.Random) -> Drawn:
    start = rng.choice(PREFIXES)
    return f"{start}*", lambda tokens, _: any(token[: len(start)] == start for token in tokens)


def _phrase(rng: random.Random) -> Drawn:
    words = [rng.choice(WORDS) for _ in range(rng.randint(2, 3))]
    quoted = '"' + rng.choice((" ", "  ", "-", ", ")).join(words) + '"'
    return quoted, lambda tokens, _: f" {' '.join(words)} " in f" {' '.join(tokens)} "


def _filter(rng: random.Random) -> Drawn:
    number, kind = rng.randint(0, 3), rng.choice(KINDS)
    found: tuple[tuple[str, Meaning], ...] = (
        (f"{{n >= {number}}}", lambda _, own: own.get("n") is not None and own["n"] >= number),
        (f"{{n < {number}.5}}", lambda _, own: own.get("n") is not None and own["n"] < number + 0.5),
        (f"{{n != {number}}}", lambda _, own: own.get("n") is not None and own["n"] != number),
        (f'{{kind = "{kind}"}}', lambda _, own: own.get("kind") == kind),
        (f"{{kind not in ({kind}, sea)}}", lambda _, own: own.get("kind") is not None and own["kind"] != kind),
        (
            f"{{n = {number}, kind in (rail, {kind})}}",
            lambda _, own: own.get("n") == number and own.get("kind") in ("rail", kind),
        ),
        (f"{{day > 2026-01-0{number + 1}}}", lambda _, own: own.get("day", "") > f"2026-01-0{number + 1}"),
        (f"{{never = {number}}}", lambda _, own: False),
    )
    return rng.choice(found)


def _group(rng: random.Random) -> Drawn:
    parts = [rng.choice((_word, _prefix, _phrase))(rng) for _ in range(rng.randint(1, 3))]
    parts += [(f"w{k}", lambda tokens, _, k=k: f"w{k}" in tokens) for k in range(rng.randint(6, 30))]  # type: ignore[misc]
    rng.shuffle(parts)
    return f"({' OR '.join(text for text, _ in parts)})", lambda *own: any(holds(*own) for _, holds in parts)


def _leaf(rng: random.Random) -> Drawn:
    text, holds = rng.choice((_word, _word, _prefix, _phrase, _filter, _group))(rng)
    if rng.random() < 0.2:
        return rng.choice(("NOT ", "-") if text[0] not in "({" else ("NOT ",)) + text, lambda *own: not holds(*own)
    return text, holds


def expression(rng: random.Random, filters: bool = True) -> Drawn:
    """An expression of a few leaves, in any nesting."""
    drawn = _nested(rng, 2)
    while not filters and "{" in drawn[0]:
        drawn = _nested(rng, 2)
    return drawn


def _nested(rng: random.Random, depth: int) -> Drawn:
    if depth == 0 or rng.random() < 0.4:
        return _leaf(rng)
    (left, one), (right, other) = _nested(rng, depth - 1), _nested(rng, depth - 1)
    if rng.random() < 0.6:
        return f"({left}){rng.choice((' ', ' AND '))}({right})", lambda *own: one(*own) and other(*own)
    return f"({left}) OR ({right})", lambda *own: one(*own) or other(*own)


BOXES = ((0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 0.5, 0.5))


def subscription(rng: random.Random, filters: bool = True) -> Worded:
    return Worded(*expression(rng, filters), rng.choice(BOXES))


def message(rng: random.Random, number: int) -> dict[str, Any]:
    """A row of a messages table, with a text; some attributes are missing."""
    words = [rng.choice((*WORDS, "unknown", f"w{rng.randint(0, 30)}")) for _ in range(rng.randint(0, 6))]
    row: dict[str, Any] = {"id": number, "text": " ".join(words), "x": rng.choice((0.1, 0.5)), "y": 0.5}
    row["n"] = rng.choice((None, 0, 1, 2, 3))
    row["kind"] = rng.choice((None, *KINDS))
    row["day"] = rng.choice((None, "2026-01-02", "2026-01-04"))
    return row


def attributes(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("n", "kind", "day") if row[name] is not None}


def concerned(subscriptions: dict[int, Worded], row: dict[str, Any]) -> list[int]:
    """The ids of the subscriptions that a message concerns, ascending."""
    tokens, own = row["text"].split(), attributes(row)
    return sorted(
        number
        for number, each in subscriptions.items()
        if each.box[0] <= row["x"] <= each.box[2] and each.box[1] <= row["y"] <= each.box[3] and each.holds(tokens, own)
    )


def table(subscriptions: dict[int, Worded]) -> list[dict[str, Any]]:
    """The subscriptions as records."""
    names = ("xmin", "ymin", "xmax", "ymax")
    return [
        {"id": number, "expression": each.expression, **dict(zip(names, each.box, strict=True))}
        for number, each in subscriptions.items()
    ]
