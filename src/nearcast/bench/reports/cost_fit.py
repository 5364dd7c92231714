"""Cost figures for `auto`: the time of one message, term, node, candidate and match, fitted to measurements."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from nearcast.bench.runs.timing import median
from nearcast.indexes.auto.costs import Costs


def fit_costs(runs: list[dict[str, Any]]) -> dict[str, tuple[Costs, float, float]]:
    """By method: the costs, and the smallest and the largest estimate as a share of the measured time."""
    pieces: dict[str, list[list[float]]] = {}
    times: dict[str, list[float]] = {}
    for record in (record for run in runs for group in run["groups"].values() for record in group):
        middle = median(record["rounds_cpu_s"].get(str(record["messages"]), []))
        if record["messages"] and middle:
            work = record["work"]
            counts = [record["messages"], record["terms"], work["nodes"], work["candidates"], work["matches"]]
            pieces.setdefault(record["method"], []).append(counts)
            times.setdefault(record["method"], []).append(middle * 1e9)
    return {method: _fit(np.array(pieces[method], float), np.array(times[method])) for method in pieces}


def _fit(pieces: np.ndarray, times: np.ndarray) -> tuple[Costs, float, float]:
    """Least squares of relative errors without negative costs: the best over all choices of costs that are not 0."""
    shares = pieces / times[:, None]
    best, least = np.zeros(shares.shape[1]), np.inf
    for k in range(1, shares.shape[1] + 1):
        for columns in itertools.combinations(range(shares.shape[1]), k):
            chosen = list(columns)
            costs, *_ = np.linalg.lstsq(shares[:, chosen], np.ones(len(times)), rcond=None)
            error = float(((shares[:, chosen] @ costs - 1) ** 2).sum())
            if (costs >= 0).all() and error < least:
                best, least = np.zeros(shares.shape[1]), error
                best[chosen] = costs
    estimates = shares @ best
    return Costs(*(round(float(cost), 2) for cost in best)), float(estimates.min()), float(estimates.max())
