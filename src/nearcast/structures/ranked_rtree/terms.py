"""The terms under which a ranked row is filed at the nodes above it. Most rows need only a prefix of their terms.

Near terms are for messages that overlap the row, so that its place score is not 0. Style `EVERY`: all terms of the row
that have weight. Styles `PREFIX` and `LEVELS`: the shortest prefix of its heaviest terms such that the other terms,
even if all are found, do not reach the threshold where place is 1. A message without a term of the prefix cannot
deliver the row. If place alone may reach the threshold, the prefix is all terms.

Far terms, marked FAR, are for messages that do not overlap the row. They are a prefix in the same sense where place is
0; a row that words alone never deliver has none. A row that needs neither place nor words is filed under ANYWHERE.

A sum that just reaches the threshold counts as reaching it, with SLACK. The heaviest terms give the shortest prefixes.
Weights never change, so a row is filed under the same terms at its insertion and at its removal, and they need not be
stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.row_params import RankArrays
from nearcast.matching.score import SLACK
from nearcast.matching.store import RowArrays

EVERY, PREFIX, LEVELS = range(3)
FAR = 1 << 31  # added to a term, which is smaller
ANYWHERE = (1 << 32) - 1
"""Filed for rows that need neither place nor words. No marked term is as large: the number of terms fits an int32."""


class RankedRows(NamedTuple):
    """The rows, their rank parameters, and the style in which they are filed."""

    rows: RowArrays
    rank_params: RankArrays
    style: int


@kernel
def filed_terms(ranked, row):
    """int64: the terms that a row is filed under, near terms first."""
    params = ranked.rank_params
    order, n = heaviest_first(ranked.rows, params.weights, row)
    near = -1 if ranked.style == EVERY else _prefix(params, row, order[:n], params.alphas[row])
    near = n if near < 0 else near
    far = max(0, _prefix(params, row, order[:n], 0.0))
    anywhere = np.int64(_needs_nothing(params, row))
    out = np.empty(near + far + anywhere, np.int64)
    out[:near] = order[:near]
    out[near : near + far] = order[:far] | FAR
    out[near + far :] = ANYWHERE
    return out


@kernel
def _needs_nothing(params, row):
    """Whether a message that does not overlap the row and has none of its terms may deliver it."""
    always = 0.0 if params.own_weights[row] > 0.0 else 1.0 - params.alphas[row]
    return always - params.thresholds[row] >= -SLACK


@kernel
def heaviest_first(rows, weights, row):
    """The terms of a row by falling weight, among equals the smaller term first; and how many of them have weight."""
    first = rows.offsets[row]
    n = np.int64(rows.n_terms[row])
    terms, lightness = np.empty(n, np.int64), np.empty(n)
    n_weighty = 0
    for k in range(n):
        terms[k] = rows.terms[first + k]
        lightness[k] = -weights[terms[k]]
        n_weighty += lightness[k] < 0.0
    return terms[np.argsort(lightness, kind="mergesort")], n_weighty


@kernel
def _prefix(params, row, terms, by_place):
    """The length of the prefix of `terms` if place adds `by_place` to the score; -1 if place alone may be enough."""
    by_words, threshold = 1.0 - params.alphas[row], params.thresholds[row]
    stop, rest = -1, 0.0
    for k in range(len(terms), -1, -1):
        rest += params.weights[terms[k]] if k < len(terms) else 0.0
        share = rest / params.own_weights[row] if rest > 0.0 else 0.0
        if by_place + by_words * share + SLACK >= threshold:
            break
        stop = k
    return stop
