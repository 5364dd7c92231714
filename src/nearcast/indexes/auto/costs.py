"""What a method's work costs: counts in, nanoseconds out. No clock, no chance: the same counts cost the same."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.matching.method import Method
from nearcast.model import Work


class Costs(NamedTuple):
    """Nanoseconds for each message, term of a message, node, candidate and hit."""

    message: float
    term: float
    node: float
    candidate: float
    hit: float


# Fitted together, since only their ratios matter: least squares of relative errors, none negative, over four workloads,
# 100 to 100,000 rows and four groups of messages, two runs (docs/decisions/0009-auto.md). Fit anew when kernels change.
FITTED = {
    "pyramid": Costs(708.0, 10.3, 60.0, 0.0, 32.0),
    "spatial-first": Costs(670.0, 2.8, 228.0, 5.4, 162.0),
    "keyword-first": Costs(253.0, 10.2, 201.0, 2.9, 257.0),
}


def nanoseconds(method: type[Method], messages: float, terms: float, work: tuple[float, float, float] | Work) -> float:
    """What so many messages of so many terms cost; of a method that was not fitted, what it says of itself."""
    nodes, candidates, hits = work
    costs = FITTED.get(method.name) or Costs(0.0, 0.0, *(method.cost_ns or (1.0, 1.0)), 0.0)
    pieces = (messages, terms, nodes, candidates, hits)
    return float(sum(cost * count for cost, count in zip(costs, pieces, strict=True)))
