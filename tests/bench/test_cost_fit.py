"""The costs that `auto` weighs work by are found again where times are made from them."""

from __future__ import annotations

import numpy as np

from nearcast.bench.reports.figures import fit_costs
from nearcast.indexes.auto.costs import Costs


def made_up_runs(costs: Costs, n: int = 12) -> list[dict[str, object]]:
    rng = np.random.default_rng(1)
    records = []
    for _ in range(n):
        messages = int(rng.integers(10, 1000))
        terms, nodes, candidates, hits = (int(count) for count in rng.integers(1, 10**6, 4))
        nanoseconds = float(np.dot(costs, (messages, terms, nodes, candidates, hits)))
        work = {"nodes": nodes, "candidates": candidates, "matches": hits}
        rounds = {str(messages): [nanoseconds / 1e9] * 3}
        records.append({"method": "m", "messages": messages, "terms": terms, "work": work, "rounds_cpu_s": rounds})
    return [{"groups": {"short-point": records}}]


def test_costs_are_found_again_from_the_times_they_make() -> None:
    costs = Costs(700.0, 10.0, 60.0, 1.5, 30.0)
    found, least, most = fit_costs(made_up_runs(costs))["m"]
    assert np.allclose(found, costs, rtol=0.01)
    assert 0.99 < least <= most < 1.01


def test_a_cost_is_never_negative() -> None:
    costs = Costs(700.0, 10.0, 60.0, -5.0, 30.0)
    found, _, _ = fit_costs(made_up_runs(costs))["m"]
    assert min(found) >= 0


def test_a_group_without_times_is_left_out() -> None:
    record = {"method": "m", "messages": 0, "terms": 0, "work": {}, "rounds_cpu_s": {}}
    assert fit_costs([{"groups": {"short-point": [record]}}]) == {}
