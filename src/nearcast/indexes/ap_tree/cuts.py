"""Dividing a node by words: its ranks, in order, into cuts.

A cut costs (rows in it) x (probability that a message has one of its terms). Both are sums over the terms of the cut,
so two cuts never cost more than one of the same terms: as many cuts as there may be.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel

DP_LIMIT = 4096  # terms; more are first put into so many groups of even weight: f x 4096^2 / 2 steps take 2 s
_SWEEPS = 8


@kernel
def distinct_keys(keys, chances, out_values, out_rows, out_chances):
    """The distinct values of sorted keys, and from 0 on the running sums of their rows and chances; return how many."""
    n = 0
    out_rows[0] = out_chances[0] = 0
    for k in range(len(keys)):
        if k == 0 or keys[k] != keys[k - 1]:
            out_values[n] = keys[k]
            n += 1
            out_rows[n] = out_rows[n - 1]
            out_chances[n] = out_chances[n - 1] + chances[keys[k]]
        out_rows[n] += 1
    return n


@kernel
def even_bounds(rows, chances, bounds):
    """bounds[i] is where cut i starts, in terms: cuts of about as large a share of rows and chances each, none empty.

    Where chances follow the rows, that is as many rows each. Where they do not, even rows alone are a bad start: once
    the cuts found from there cost 2.8 times the cheapest ones.
    """
    n, cuts = len(rows) - 1, len(bounds) - 1
    bounds[0], bounds[cuts] = 0, n
    shares = rows / rows[n] + chances / max(chances[n], 1e-300)
    for i in range(1, cuts):
        at = np.searchsorted(shares, shares[n] * i / cuts)
        bounds[i] = min(max(at, bounds[i - 1] + 1), n - (cuts - i))


@kernel
def _cost(rows, chances, start, stop):
    return (rows[stop] - rows[start]) * (chances[stop] - chances[start])


@kernel
def cost_of(rows, chances, bounds):
    total = 0.0
    for i in range(len(bounds) - 1):
        total += _cost(rows, chances, bounds[i], bounds[i + 1])
    return total


@kernel
def heuristic_bounds(rows, chances, bounds):
    """From even cuts on, each border goes to the best place between its neighbours, until none moves."""
    even_bounds(rows, chances, bounds)
    for _ in range(_SWEEPS):
        moved = False
        for i in range(1, len(bounds) - 1):
            start, stop, best = bounds[i - 1], bounds[i + 1], bounds[i]
            least = _cost(rows, chances, start, best) + _cost(rows, chances, best, stop)
            for at in range(start + 1, stop):
                cost = _cost(rows, chances, start, at) + _cost(rows, chances, at, stop)
                if cost < least:
                    least, best = cost, at
            moved = moved or best != bounds[i]
            bounds[i] = best
        if not moved:
            break


@kernel
def optimal_bounds(rows, chances, bounds):
    """The cheapest cuts of all, by dynamic programming: the last cut is tried at every place."""
    n, cuts = len(rows) - 1, len(bounds) - 1
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    starts = np.zeros((cuts + 1, n + 1), np.int32)
    for cut in range(1, cuts + 1):
        for stop in range(n, -1, -1):  # downward, since fewer cuts of fewer terms are read from the same array
            least, at = np.inf, 0
            for start in range(cut - 1, stop):
                cost = best[start] + _cost(rows, chances, start, stop)
                if cost < least:
                    least, at = cost, start
            best[stop] = least
            starts[cut, stop] = at
    bounds[cuts] = n
    for cut in range(cuts, 0, -1):
        bounds[cut - 1] = starts[cut, bounds[cut]]


def keyword_bounds(rows: np.ndarray, chances: np.ndarray, cuts: int, optimal: bool) -> np.ndarray:
    """Where each cut starts, given running sums by term; each term alone where there may be as many cuts."""
    n = len(rows) - 1
    if n <= cuts:
        return np.arange(n + 1)
    bounds = np.empty(cuts + 1, np.int64)
    if not optimal:
        heuristic_bounds(rows, chances, bounds)
    elif n <= DP_LIMIT:
        optimal_bounds(rows, chances, bounds)
    else:
        groups = np.empty(max(DP_LIMIT, cuts) + 1, np.int64)
        even_bounds(rows, chances, groups)
        optimal_bounds(rows[groups], chances[groups], bounds)
        bounds = groups[bounds]
    return bounds
