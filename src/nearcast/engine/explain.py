"""Explanations: why a message does or does not match a subscription."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nearcast.geo.region import Region
from nearcast.text.clauses import Clause, has_atom
from nearcast.text.derived.atoms import shown


class MessageWords(NamedTuple):
    """What expressions are about."""

    tokens: Sequence[str]  # in order
    attributes: Mapping[str, Any]

    def has(self, atom: str) -> bool:
        return has_atom(atom, self.tokens, self.attributes)


@dataclass(frozen=True)
class Explanation:
    """The comparison of one subscription with one message.

    An expression holds when one of its clauses does. Named are tokens, and prefixes, phrases and filters as they are
    written in expressions, of the clause that comes closest.
    """

    holds: bool
    matched: tuple[str, ...]  # what is required and occurs
    missing: tuple[str, ...]  # what is required and does not
    forbidden: tuple[str, ...]  # what is under NOT and occurs
    inside: bool
    distance: float  # from the message to the region, 0 inside; kilometres, or units of a plane
    expired: bool
    region: str
    unit: str
    score: float | None = None  # of scored kinds: the subscription matches where the score is at least the threshold
    threshold: float | None = None

    def __str__(self) -> str:
        lines = ["match" if self.holds else "no match"]
        lines += [] if self.score is None else [f"  score {self.score:.4g}, threshold {self.threshold:.4g}"]
        lines += [f"  found: {', '.join(self.matched)}"] if self.matched else []
        lines += [f"  missing: {', '.join(self.missing)}"] if self.missing else []
        lines += [f"  must not occur but does: {', '.join(self.forbidden)}"] if self.forbidden else []
        away = f"{self.distance:.3g} {self.unit}".rstrip()
        lines += [f"  place: {'inside' if self.inside else away + ' outside'} {self.region}"]
        lines += ["  the subscription had expired"] if self.expired else []
        return "\n".join(lines)


def explain(
    clauses: list[Clause], region: Region, message: MessageWords, place: np.ndarray, expired: bool
) -> Explanation:
    """Compare clauses and a region with a message's words and box (float64[4])."""
    inside = bool(region.overlaps(place.reshape(1, 4))[0])
    planar = getattr(region, "planar", False)
    distance = 0.0 if inside else region.distance(float((place[0] + place[2]) / 2), float((place[1] + place[3]) / 2))
    closest = min(clauses, key=lambda clause: _faults(clause, message), default=None)
    required, forbidden = closest or ((), ())  # no clauses: the expression contradicts itself
    return Explanation(
        holds=closest is not None and _faults(closest, message) == 0 and inside and not expired,
        matched=tuple(shown(atom) for atom in required if message.has(atom)),
        missing=tuple(shown(atom) for atom in required if not message.has(atom)),
        forbidden=tuple(shown(atom) for atom in forbidden if message.has(atom)),
        inside=inside,
        distance=distance,
        expired=expired,
        region=region.describe(),
        unit="" if planar else "km",
    )


def with_score(explanation: Explanation, score: float, threshold: float, is_shaped: bool) -> Explanation:
    """The explanation for a scored kind: the score decides, besides NOT tokens, expiry and an exact shape."""
    is_allowed = not explanation.forbidden and not explanation.expired and (explanation.inside or not is_shaped)
    holds = score >= threshold and is_allowed
    return replace(explanation, holds=holds, score=score, threshold=threshold)


def _faults(clause: Clause, message: MessageWords) -> int:
    missing = sum(not message.has(atom) for atom in clause.required)
    return missing + sum(message.has(atom) for atom in clause.forbidden)
