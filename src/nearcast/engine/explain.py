"""Explanations: why a message does or does not match a subscription."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nearcast.geo.region import Region
from nearcast.text.clauses import Clause


@dataclass(frozen=True)
class Explanation:
    """The comparison of one subscription with one message.

    An expression holds when one of its clauses does. The tokens are those of the clause that comes closest.
    """

    holds: bool
    matched: tuple[str, ...]  # required tokens that occur
    missing: tuple[str, ...]  # required tokens that do not occur
    forbidden: tuple[str, ...]  # tokens under NOT that occur
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
        lines += [f"  tokens found: {', '.join(self.matched)}"] if self.matched else []
        lines += [f"  tokens missing: {', '.join(self.missing)}"] if self.missing else []
        lines += [f"  tokens that must not occur but do: {', '.join(self.forbidden)}"] if self.forbidden else []
        away = f"{self.distance:.3g} {self.unit}".rstrip()
        lines += [f"  place: {'inside' if self.inside else away + ' outside'} {self.region}"]
        lines += ["  the subscription had expired"] if self.expired else []
        return "\n".join(lines)


def explain(clauses: list[Clause], region: Region, tokens: set[str], place: np.ndarray, expired: bool) -> Explanation:
    """Compare clauses and a region with a message's tokens and box (float64[4])."""
    inside = bool(region.overlaps(place.reshape(1, 4))[0])
    planar = getattr(region, "planar", False)
    distance = 0.0 if inside else region.distance(float((place[0] + place[2]) / 2), float((place[1] + place[3]) / 2))
    closest = min(clauses, key=lambda clause: _faults(clause, tokens), default=None)
    required, forbidden = closest or ((), ())  # no clauses: the expression contradicts itself
    return Explanation(
        holds=closest is not None and _faults(closest, tokens) == 0 and inside and not expired,
        matched=tuple(sorted(token for token in required if token in tokens)),
        missing=tuple(sorted(token for token in required if token not in tokens)),
        forbidden=tuple(sorted(token for token in forbidden if token in tokens)),
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


def _faults(clause: Clause, tokens: set[str]) -> int:
    return sum(token not in tokens for token in clause.required) + sum(token in tokens for token in clause.forbidden)
