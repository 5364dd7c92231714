"""The cost model of `auto`: nanoseconds from counts of work. It uses no clock, so equal counts cost the same."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.matching.method import Method
from nearcast.matching.store import RowStore


class Costs(NamedTuple):
    """Nanoseconds for each message, term of a message, node, candidate and hit."""

    message: float
    term: float
    node: float
    candidate: float
    hit: float


# Fitted together, since only their ratios matter: least squares of relative errors, none negative, by `nearcast bench
# costs` on the sweep `grid` (four workloads, 10,000 and a million rows, four groups of messages). Estimates were 0.3 to
# 1.6 of the measured time. Fit again when kernels change.
FITTED = {
    "pyramid": Costs(1097.0, 8.4, 97.8, 0.0, 8.2),
    "spatial-first": Costs(1532.0, 2.7, 259.6, 5.5, 297.9),
    "keyword-first": Costs(162.0, 0.0, 265.2, 3.7, 327.6),
}


def nanoseconds(method: type[Method], messages: float, terms: float, work: tuple[float, float, float]) -> float:
    """The cost of this work. A method without fitted costs uses its own `cost_ns`."""
    nodes, candidates, hits = work
    costs = FITTED.get(method.name) or Costs(0.0, 0.0, *(method.cost_ns or (1.0, 1.0)), 0.0)
    pieces = (messages, terms, nodes, candidates, hits)
    return float(sum(cost * count for cost, count in zip(costs, pieces, strict=True)))


# What follows the method, whatever it is: 101 hits of workload `mixed`, 40 of which need a test, took 3.8 us.
_HIT_NS = 15.0  # sort a hit and look up its owner
_TEST_NS = 60.0  # test NOT terms, expiry or an exact shape


def verification_ns(store: RowStore, hits: float) -> float:
    """The cost of turning hits into subscriptions."""
    return hits * (_HIT_NS + _TEST_NS * store.live_unverified / max(1, store.live))
