"""Evaluates a paper's claims (orderings, values, trends) against our measurements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from nearcast.bench.papers.paper import Claim, Figure
from nearcast.bench.papers.result import Point, mean_factor, times_as_much
from nearcast.bench.reports.tables import format_number, format_value
from nearcast.matching.variant import variant_of

LEVEL = 1.05
"""A difference up to this factor, in either direction, counts as none."""


class Verdict(NamedTuple):
    """The verdict on a claim for one panel. The claim holds if `factor` is above 1 and fails if it is below 1."""

    panel: str
    seen: str
    factor: float

    @property
    def holds(self) -> str:
        if self.factor > LEVEL:
            return "yes"
        return "level" if self.factor >= 1 / LEVEL else f"no, by {_times(1 / self.factor)}"


def verdicts(figure: Figure, claim: Claim, points: Sequence[Point]) -> list[Verdict]:
    """One verdict for each panel with measurements; none if the claim cannot be checked."""
    if claim.values and claim.method:
        return _by_place(figure, claim, points)
    chosen = [point for point in points if claim.at is None or point.label == format_value(claim.at)]
    panels = dict.fromkeys(point.panel for point in chosen)
    found = []
    for panel in panels:
        if not claim.panels or panel in claim.panels:
            own = [point for point in chosen if point.panel == panel]
            found.append(_verdict(figure, claim, panel, own))
    return [verdict for verdict in found if verdict is not None]


def _verdict(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    if claim.trend:
        return _trend(figure, claim, panel, points)
    if claim.values:
        return _by_method(figure, claim, panel, points)
    return _order(figure, [variant_of(text).label for text in claim.order], panel, points)


# -- orders


def _order(figure: Figure, methods: list[str], panel: str, points: list[Point]) -> Verdict | None:
    """Compares neighbours in the paper's order by their mean factor over the axis."""
    measured = [method for method in methods if any(point.method == method for point in points)]
    factors = [_factor(figure, better, worse, points) for better, worse in pairwise(measured)]
    known = [factor for factor in factors if factor is not None]
    if not known:
        return None
    steps = [f"→ `{method}` {_times(factor)}" for method, factor in zip(measured[1:], factors, strict=True)]
    return Verdict(panel, " ".join([f"`{measured[0]}`", *steps]), min(known))


def _factor(figure: Figure, better: str, worse: str, points: list[Point]) -> float | None:
    first, second = ({each.label: each for each in points if each.method == method} for method in (better, worse))
    shared = [times_as_much(first[x], second[x], figure.measure) for x in first if x in second]
    return mean_factor([factor for factor in shared if factor])


# -- values


def _by_method(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    """Compares the methods of a panel: is their order by our values the order by the paper's values?"""
    paper = _paper_values(figure, claim)
    measured = {point.method: point for point in points if point.method in paper}
    ranked = sorted(measured, key=lambda method: paper[method], reverse=figure.measure == "throughput")
    factors = [
        times_as_much(measured[better], measured[worse], figure.measure)
        for better, worse in pairwise(ranked)
        if paper[better] != paper[worse]
    ]
    known = [factor for factor in factors if factor]
    if not known:
        return None
    values = {method: measured[method].value for method in ranked}
    against = [times_as_much(measured[ranked[0]], measured[method], figure.measure) for method in ranked]
    return Verdict(panel, _beside(values, against), min(known))


def _by_place(figure: Figure, claim: Claim, points: Sequence[Point]) -> list[Verdict]:
    """Compares the panels (or positions on the axis) of one method: is their order the paper's order?"""
    method = variant_of(claim.method).label
    measured: dict[str, float] = {}
    for name in claim.values:
        own = [
            each.value for each in points if each.method == method and name in (each.panel, each.label) and each.value
        ]
        middle = mean_factor(own)
        if middle is not None:
            measured[name] = middle
    ranked = sorted(measured, key=lambda name: _middle(claim.values[name]))
    factors = [measured[larger] / measured[smaller] for smaller, larger in pairwise(ranked)]
    if not factors:
        return []
    return [Verdict("", ", ".join(f"{name} {format_number(measured[name])}" for name in measured), min(factors))]


def _middle(value: Any) -> float:
    """The number, or the geometric mean of a range."""
    return mean_factor([float(part) for part in value]) or 0.0 if isinstance(value, tuple) else float(value)


def _beside(values: dict[str, float], factors: Sequence[float | None]) -> str:
    """Methods with their values; from the second on also the factor to the first."""
    named = [f"`{method}` {format_number(value)}" for method, value in values.items()]
    behind = [f"{each} ({_times(factor)})" for each, factor in zip(named[1:], factors[1:], strict=True)]
    return ", ".join([named[0], *behind])


def values_text(figure: Figure, claim: Claim) -> str:
    """The paper's own values; those of methods with their factors to the best method."""
    if not claim.values:
        return ""
    if claim.method:
        values = ", ".join(f"{name} {format_value(value)}" for name, value in claim.values.items())
        return f"{values} {claim.unit}".strip()
    paper = _paper_values(figure, claim)
    ratios = [value / next(iter(paper.values())) for value in paper.values()]
    factors = [1 / ratio if figure.measure == "throughput" else ratio for ratio in ratios]
    return f"{_beside(paper, factors)} {claim.unit}".strip()


def _paper_values(figure: Figure, claim: Claim) -> dict[str, float]:
    """The paper's values by method, the best method first."""
    values = {variant_of(text).label: _middle(value) for text, value in claim.values.items()}
    return dict(sorted(values.items(), key=lambda each: each[1], reverse=figure.measure == "throughput"))


# -- trends


def _trend(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    method = variant_of(claim.method).label
    own = [point for point in points if point.method == method and point.value]
    line = sorted((_at(point.x), point.value) for point in own)
    if len(line) < (3 if claim.trend in ("hump", "dip") else 2):
        return None
    factor, seen = _evaluate(claim.trend, line)
    counts = sorted({point.messages for point in own})
    over = f" (over different messages: {counts[0]:,} to {counts[-1]:,})" if len(counts) > 1 else ""
    return Verdict(panel, seen + over, factor)


def _at(x: Any) -> float:
    return float(x[0] if isinstance(x, list | tuple) else x)


Line = list[tuple[float, float]]
"""Positions on the axis and values, by position."""


def _evaluate(trend: str, line: Line) -> tuple[float, str]:
    """The factor by which the trend shows (below 1: its opposite does), and the values that show it."""
    ends, first, last = (line[0], line[-1]), line[0][1], line[-1][1]
    if trend in ("rises", "falls"):
        return last / first if trend == "rises" else first / last, _values_at(ends)
    if trend == "sublinear":
        wide, high = line[-1][0] / line[0][0], last / first
        return wide / high, f"{_values_at(ends)}: {_times(wide)} along, {_times(high)} up"
    middle = (max if trend == "hump" else min)(line[1:-1], key=lambda each: each[1])
    factor = middle[1] / max(first, last) if trend == "hump" else min(first, last) / middle[1]
    return factor, _values_at((line[0], middle, line[-1]))


def _values_at(line: Sequence[tuple[float, float]]) -> str:
    return ", ".join(f"{format_number(value)} at {x:g}" for x, value in line)


def _times(factor: float | None) -> str:
    return "?" if factor is None else f"{factor:.0f}×" if factor >= 100 else f"{factor:.3g}×"
