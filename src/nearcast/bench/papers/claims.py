"""Does it hold here what the paper says? Orders, values and trends, computed from our points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from nearcast.bench.papers.paper import Claim, Figure
from nearcast.bench.papers.points import Point, mean_factor, times_as_much
from nearcast.bench.reports.report import label_of, number
from nearcast.matching.variant import variant_of

LEVEL = 1.05
"""A difference up to this factor, either way, counts as none."""


class Verdict(NamedTuple):
    """Of one panel. `factor`: by how much it holds where it is above 1, by how much it fails below 1."""

    panel: str
    seen: str
    factor: float

    @property
    def holds(self) -> str:
        if self.factor > LEVEL:
            return "yes"
        return "level" if self.factor >= 1 / LEVEL else f"no, by {_times(1 / self.factor)}"


def verdicts(figure: Figure, claim: Claim, points: Sequence[Point]) -> list[Verdict]:
    """One for each panel that has something to check it by; none where it was not measured or is not for checking."""
    if claim.values and claim.method:
        return _by_place(figure, claim, points)
    chosen = [point for point in points if claim.at is None or point.label == label_of(claim.at)]
    panels = dict.fromkeys(point.panel for point in chosen)
    judged = []
    for panel in panels:
        if not claim.panels or panel in claim.panels:
            own = [point for point in chosen if point.panel == panel]
            judged.append(_judged(figure, claim, panel, own))
    return [verdict for verdict in judged if verdict is not None]


def _judged(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    if claim.trend:
        return _trend(figure, claim, panel, points)
    if claim.values:
        return _by_method(figure, claim, panel, points)
    return _order(figure, [variant_of(text).label for text in claim.order], panel, points)


# -- orders


def _order(figure: Figure, methods: list[str], panel: str, points: list[Point]) -> Verdict | None:
    """Neighbours of the paper's order, each pair by the mean over the axis."""
    there = [method for method in methods if any(point.method == method for point in points)]
    factors = [_factor(figure, better, worse, points) for better, worse in pairwise(there)]
    known = [factor for factor in factors if factor is not None]
    if not known:
        return None
    steps = [f"→ {_code(method)} {_times(factor)}" for method, factor in zip(there[1:], factors, strict=True)]
    return Verdict(panel, " ".join([_code(there[0]), *steps]), min(known))


def _factor(figure: Figure, better: str, worse: str, points: list[Point]) -> float | None:
    first, second = ({each.label: each for each in points if each.method == method} for method in (better, worse))
    shared = [times_as_much(first[x], second[x], figure.measure) for x in first if x in second]
    return mean_factor([factor for factor in shared if factor])


# -- values


def _by_method(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    """Methods beside each other: the paper's figures, and ours with the factors between them."""
    paper = {variant_of(text).label: _middle(value) for text, value in claim.values.items()}
    there = {point.method: point for point in points if point.method in paper}
    ranked = sorted(there, key=lambda method: paper[method], reverse=figure.measure == "throughput")
    factors = [
        times_as_much(there[better], there[worse], figure.measure)
        for better, worse in pairwise(ranked)
        if paper[better] != paper[worse]
    ]
    known = [factor for factor in factors if factor]
    if not known:
        return None
    values = {method: there[method].value for method in ranked}
    against = [times_as_much(there[ranked[0]], there[method], figure.measure) for method in ranked]
    return Verdict(panel, _beside(values, against), min(known))


def _by_place(figure: Figure, claim: Claim, points: Sequence[Point]) -> list[Verdict]:
    """One method, its panels (or places on the axis) beside each other: is their order the paper's?"""
    method = variant_of(claim.method).label
    there: dict[str, float] = {}
    for name in claim.values:
        own = [
            each.value for each in points if each.method == method and name in (each.panel, each.label) and each.value
        ]
        middle = mean_factor(own)
        if middle is not None:
            there[name] = middle
    ranked = sorted(there, key=lambda name: _middle(claim.values[name]))
    factors = [there[larger] / there[smaller] for smaller, larger in pairwise(ranked)]
    if not factors:
        return []
    return [Verdict("", ", ".join(f"{name} {number(there[name])}" for name in there), min(factors))]


def _middle(value: Any) -> float:
    """A pair of numbers is a range."""
    return mean_factor([float(part) for part in value]) or 0.0 if isinstance(value, tuple) else float(value)


def _beside(values: dict[str, float], factors: Sequence[float | None]) -> str:
    """Methods with their values, and from the second on with the factor to the first."""
    named = [f"{_code(method)} {number(value)}" for method, value in values.items()]
    behind = [f"{each} ({_times(factor)})" for each, factor in zip(named[1:], factors[1:], strict=True)]
    return ", ".join([named[0], *behind])


def values_text(figure: Figure, claim: Claim) -> str:
    """The paper's own figures, those of methods with factors to the best."""
    if not claim.values:
        return ""
    if claim.method:
        return f"{', '.join(f'{name} {label_of(value)}' for name, value in claim.values.items())} {claim.unit}".strip()
    paper = {variant_of(text).label: _middle(value) for text, value in claim.values.items()}
    ranked = sorted(paper, key=lambda method: paper[method], reverse=figure.measure == "throughput")
    ratios = [paper[method] / paper[ranked[0]] for method in ranked]
    factors = [1 / ratio if figure.measure == "throughput" else ratio for ratio in ratios]
    return f"{_beside({method: paper[method] for method in ranked}, factors)} {claim.unit}".strip()


# -- trends


def _trend(figure: Figure, claim: Claim, panel: str, points: list[Point]) -> Verdict | None:
    method = variant_of(claim.method).label
    own = [point for point in points if point.method == method and point.value]
    line = sorted((_at(point.x), point.value) for point in own)
    if len(line) < (3 if claim.trend in ("hump", "dip") else 2):
        return None
    factor, seen = _TRENDS[claim.trend](line)
    counts = sorted({point.messages for point in own})
    over = f" (over different messages: {counts[0]:,} to {counts[-1]:,})" if len(counts) > 1 else ""
    return Verdict(panel, seen + over, factor)


def _at(x: Any) -> float:
    return float(x[0] if isinstance(x, list | tuple) else x)


Line = list[tuple[float, float]]


def _falls(line: Line) -> tuple[float, str]:
    return line[0][1] / line[-1][1], _ends(line)


def _rises(line: Line) -> tuple[float, str]:
    return line[-1][1] / line[0][1], _ends(line)


def _sublinear(line: Line) -> tuple[float, str]:
    wide, high = line[-1][0] / line[0][0], line[-1][1] / line[0][1]
    return wide / high, f"{_ends(line)}: {_times(wide)} along, {_times(high)} up"


def _hump(line: Line) -> tuple[float, str]:
    peak = max(line[1:-1], key=lambda each: each[1])
    return peak[1] / max(line[0][1], line[-1][1]), _through(line, peak)


def _dip(line: Line) -> tuple[float, str]:
    low = min(line[1:-1], key=lambda each: each[1])
    return min(line[0][1], line[-1][1]) / low[1], _through(line, low)


_TRENDS: dict[str, Callable[[Line], tuple[float, str]]] = {
    "falls": _falls,
    "rises": _rises,
    "sublinear": _sublinear,
    "hump": _hump,
    "dip": _dip,
}


def _ends(line: Line) -> str:
    return f"{number(line[0][1])} at {line[0][0]:g}, {number(line[-1][1])} at {line[-1][0]:g}"


def _through(line: Line, middle: tuple[float, float]) -> str:
    return ", ".join(f"{number(value)} at {x:g}" for x, value in (line[0], middle, line[-1]))


def _times(factor: float | None) -> str:
    return "?" if factor is None else f"{factor:.0f}×" if factor >= 100 else f"{factor:.3g}×"


def _code(method: str) -> str:
    return f"`{method}`"
