"""Evaluates a paper's claims (orderings, values, trends) against our measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from nearcast.bench.papers.paper import Claim, Figure
from nearcast.bench.papers.result import Point, factors_by_round, mean_factor, times_as_much
from nearcast.bench.reports.tables import format_number, format_value
from nearcast.matching.variant import variant_of

LEVEL = 1.05
"""A difference up to this factor, in either direction, counts as none."""


class Spread(NamedTuple):
    """A factor, with the smallest and the largest that single rounds give."""

    factor: float
    low: float
    high: float

    def over(self, wanted: float) -> Spread:
        """The factor as a multiple of a wanted factor."""
        return Spread(*(each / wanted for each in self))

    def __str__(self) -> str:
        between = f" ({_digits(self.low)}–{_digits(self.high)})" if self.low < self.high else ""
        return f"{_times(self.factor)}{between}"


class Verdict(NamedTuple):
    """The verdict on a claim for one panel. The claim holds if `factor` is above 1 and fails if it is below 1.

    A difference counts only if it is larger than `LEVEL` and if every round shows it: all factors between `low` and
    `high` are on the same side of 1.
    """

    panel: str
    seen: str
    factor: float
    low: float | None = None  # the factor itself if rounds were not kept apart
    high: float | None = None

    @property
    def holds(self) -> str:
        low, high = (self.factor if each is None else each for each in (self.low, self.high))
        if self.factor > LEVEL and low > 1:
            return "yes"
        return f"no, by {_times(1 / self.factor)}" if self.factor < 1 / LEVEL and high < 1 else "level"


def verdicts(figure: Figure, claim: Claim, points: Sequence[Point]) -> list[Verdict]:
    """One verdict for each panel with measurements; none if the claim cannot be checked."""
    if claim.values and claim.method:
        return _by_place(figure, claim, points)
    if claim.each:
        return _at_each_place(figure, claim, points)
    at = points[-1].label if claim.at == "last" and points else format_value(claim.at)
    chosen = [point for point in points if claim.at is None or point.label == at]
    panels = dict.fromkeys(point.panel for point in chosen)
    found = []
    for panel in panels:
        if not claim.panels or panel in claim.panels:
            own = [point for point in chosen if point.panel == panel]
            found.append(_verdict(figure, claim, panel, own))
    return [verdict for verdict in found if verdict is not None]


def _at_each_place(figure: Figure, claim: Claim, points: Sequence[Point]) -> list[Verdict]:
    """The verdicts on a claim at each position on the axis by itself."""
    found = []
    for label in dict.fromkeys(point.label for point in points):
        alone = verdicts(figure, replace(claim, each=False), [point for point in points if point.label == label])
        found += [verdict._replace(panel=", ".join(filter(None, (verdict.panel, label)))) for verdict in alone]
    return found


def _verdict(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    if claim.trend:
        return _trend(figure, claim, panel, points)
    if claim.values:
        return _by_method(figure, claim, panel, points)
    return _order(figure, claim, panel, points)


# -- orders


def _order(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    """Compares neighbours in the paper's order by their mean factor over the axis."""
    methods = [variant_of(text).label for text in claim.order]
    measured = [method for method in methods if any(point.method == method for point in points)]
    spreads = [_spread(figure, better, worse, points) for better, worse in pairwise(measured)]
    known = [spread for spread in spreads if spread is not None]
    if not known:
        return None
    steps = [f"→ `{method}` {spread or '?'}" for method, spread in zip(measured[1:], spreads, strict=True)]
    return Verdict(panel, " ".join([f"`{measured[0]}`", *steps]), *min(known).over(claim.at_least))


def _spread(figure: Figure, better: str, worse: str, points: list[Point]) -> Spread | None:
    """The mean factor over the axis, of all rounds together and of single rounds."""
    first, second = ({each.label: each for each in points if each.method == method} for method in (better, worse))
    pairs = [(first[x], second[x]) for x in first if x in second]
    factor = mean_factor([found for a, b in pairs if (found := times_as_much(a, b, figure.measure))])
    if factor is None:
        return None
    by_place = [factors for a, b in pairs if (factors := factors_by_round(a, b, figure.measure))]
    by_round = [mean_factor(each) or factor for each in zip(*by_place, strict=False)]
    return Spread(factor, min(by_round, default=factor), max(by_round, default=factor))


# -- values


def _by_method(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    """Compares the methods of a panel: is their order by our values the order by the paper's values?"""
    paper = _paper_values(figure, claim)
    measured = {point.method: point for point in points if point.method in paper}
    ranked = sorted(measured, key=lambda method: paper[method], reverse=figure.measure == "throughput")
    spreads = [
        _spread(figure, better, worse, list(measured.values()))
        for better, worse in pairwise(ranked)
        if paper[better] != paper[worse]
    ]
    known = [spread for spread in spreads if spread is not None]
    if not known:
        return None
    values = {method: measured[method].value for method in ranked}
    against = [times_as_much(measured[ranked[0]], measured[method], figure.measure) for method in ranked]
    return Verdict(panel, _beside(values, against), *min(known))


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
    line = sorted((Place(_at(point.x), point.value, point.low, point.high) for point in own), key=lambda each: each.x)
    if len(line) < (3 if claim.trend in ("hump", "dip") else 2):
        return None
    spread, seen = _evaluate(claim.trend, line)
    counts = sorted({point.messages for point in own})
    over = f" (over different messages: {counts[0]:,} to {counts[-1]:,})" if len(counts) > 1 else ""
    return Verdict(panel, seen + over, *spread)


def _at(x: Any) -> float:
    return float(x[0] if isinstance(x, list | tuple) else x)


class Place(NamedTuple):
    """A position on the axis, the value there, and the least and the greatest value of a round."""

    x: float
    value: float
    low: float
    high: float


def _ratio(upper: Place, lower: Place) -> Spread:
    """How much larger the first is, at least and at most if each of both may lie anywhere in its spread."""
    least = upper.low / lower.high if lower.high else upper.value / lower.value
    most = upper.high / lower.low if lower.low else upper.value / lower.value
    return Spread(upper.value / lower.value, least, most)


def _evaluate(trend: str, line: list[Place]) -> tuple[Spread, str]:
    """The factor by which the trend shows (below 1: its opposite does), and the values that show it."""
    first, last = line[0], line[-1]
    if trend in ("rises", "falls"):
        return _ratio(last, first) if trend == "rises" else _ratio(first, last), _values_at((first, last))
    if trend == "sublinear":
        wide, high = last.x / first.x, last.value / first.value
        grown = Place(0.0, *(value * wide for value in first[1:]))
        return _ratio(grown, last), f"{_values_at((first, last))}: {_times(wide)} along, {_times(high)} up"
    middle = (max if trend == "hump" else min)(line[1:-1], key=lambda each: each.value)
    pairs = [(middle, end) if trend == "hump" else (end, middle) for end in (first, last)]
    return min(_ratio(*pair) for pair in pairs), _values_at((first, middle, last))


def _values_at(line: Sequence[Place]) -> str:
    return ", ".join(f"{format_number(each.value)} at {each.x:g}" for each in line)


def _digits(factor: float) -> str:
    return f"{factor:.0f}" if factor >= 100 else f"{factor:.3g}"


def _times(factor: float | None) -> str:
    return "?" if factor is None else f"{_digits(factor)}×"
