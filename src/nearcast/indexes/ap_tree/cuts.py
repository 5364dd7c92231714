"""Divides a node by words: ranks terms, and partitions the ranks of a node, in order, into cuts.

Rank 1 is the most frequent term at the build; 0 is a term that no row has had so far. Ranks are fixed until the next
build. A term that is new gets the next rank, as if it were rarer than all before.

A cut costs (rows in it) x (probability that a message has one of its terms). Both are sums over the terms of the cut,
so two cuts never cost more than one cut of the same terms. A node therefore gets as many cuts as are allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place, starts_of
from nearcast.matching.store import RowStore

DP_LIMIT = 4096  # terms; more terms are first put into 4096 groups of equal weight: f x 4096^2 / 2 steps take 2 s
_SWEEPS = 8


class RankedRows(NamedTuple):
    """Rows with their ranks, ascending (the most frequent term first), and their boxes."""

    rows: np.ndarray  # int32[n]
    starts: np.ndarray  # int64[n+1]
    ranks: np.ndarray  # int32[...]
    boxes: np.ndarray  # float64[n,4]


class Ranks:
    """The rank of each term."""

    def __init__(self, frequencies: np.ndarray) -> None:
        """Ranks by falling frequency; among equals the smaller term comes first."""
        order = np.argsort(-frequencies, kind="stable")[: np.count_nonzero(frequencies)]
        self.by_term = np.zeros(len(frequencies), np.int32)
        self.by_term[order] = np.arange(1, len(order) + 1)
        self.count = len(order)

    def of_rows(self, store: RowStore, rows: np.ndarray) -> RankedRows:
        """The ranks of these rows' terms; terms without a rank get the next one."""
        self.by_term = grown(self.by_term, store.n_terms, fill=0)
        starts = starts_of(store.arrays.n_terms[rows])
        ranks = np.empty(starts[-1], np.int32)
        self.count = _rank_rows(store.arrays, rows, self.by_term, self.count, starts, ranks)
        return RankedRows(rows, starts, ranks, store.arrays.boxes[rows])


@kernel
def _rank_rows(store, rows, by_term, count, starts, out):
    for i in range(len(rows)):
        first = store.offsets[rows[i]]
        for k in range(starts[i + 1] - starts[i]):
            term = store.terms[first + k]
            if by_term[term] == 0:
                count += 1
                by_term[term] = count
            out[starts[i] + k] = by_term[term]
        sort_in_place(out, starts[i], starts[i + 1])
    return count


@kernel
def distinct_keys(keys, chances, out_values, out_rows, out_chances):
    """Write the distinct values of sorted keys and the running sums, from 0 on, of their rows and chances.

    Return the number of distinct values.
    """
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
    """Write where each cut starts, in terms: cuts with about equal shares of rows and chances, none empty.

    Where chances follow the rows, cuts have equally many rows. Where they do not, equal rows alone are a bad start: in
    one case the cuts found from there cost 2.8 times the cheapest ones.
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
    """Start from even cuts, and move each border to the best place between its neighbours until none moves."""
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
    """Find the cheapest cuts by dynamic programming, which tries every start of the last cut."""
    n, cuts = len(rows) - 1, len(bounds) - 1
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    starts = np.zeros((cuts + 1, n + 1), np.int32)
    for cut in range(1, cuts + 1):
        for stop in range(n, -1, -1):  # downward: it reads the costs of one cut less from the same array
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
    """Where each cut starts, given running sums by term. Each term is a cut of its own if there are few enough."""
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
