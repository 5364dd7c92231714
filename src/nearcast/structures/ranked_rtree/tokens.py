"""With which tokens a ranked row stands at the nodes above it.

Near tokens are for messages that overlap the row (its place is not 0). `EVERY`: all its terms that weigh anything.
`PREFIX` and `LEVELS`: as many of its heaviest terms as are needed so that the others, all found, would not be enough
for its threshold even where place is 1: a message that has none of these is not delivered. Where place alone may be
enough they are all terms: what is found then decides together with place.

Far tokens, marked FAR, are for messages that do not overlap it: in the same way as many of its heaviest terms as words
alone need, none where they are never enough; and ANYWHERE for a row that needs no words either.

A sum that is just enough belongs to the prefix, with SLACK. Heaviest first gives the shortest prefixes, and by weights
that never change: what a row stands with is the same when it comes and when it goes, and is not stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.row_params import RankArrays
from nearcast.matching.score import SLACK
from nearcast.matching.store import RowArrays

EVERY, PREFIX, LEVELS = range(3)
FAR = 1 << 31  # beside a term, which is below
ANYWHERE = (1 << 32) - 1
"""The token of rows that need neither place nor words. No term is as large: the number of terms fits an int32."""


class RankedRows(NamedTuple):
    """What is known of rows, and how they stand."""

    rows: RowArrays
    asked: RankArrays
    style: int


@kernel
def standing_tokens(held, row):
    """int64: the tokens of a row, near ones first."""
    order, n = heaviest_first(held.rows, held.asked.weights, row)
    near = -1 if held.style == EVERY else _prefix(held.asked, row, order[:n], held.asked.alphas[row])
    near = n if near < 0 else near
    far = max(0, _prefix(held.asked, row, order[:n], 0.0))
    anywhere = np.int64(_needs_nothing(held.asked, row))
    out = np.empty(near + far + anywhere, np.int64)
    out[:near] = order[:near]
    out[near : near + far] = order[:far] | FAR
    out[near + far :] = ANYWHERE
    return out


@kernel
def _needs_nothing(asked, row):
    """Whether a row may be delivered on a message that does not overlap and has none of its terms."""
    always = 0.0 if asked.own_weights[row] > 0.0 else 1.0 - asked.alphas[row]
    return always - asked.thresholds[row] >= -SLACK


@kernel
def heaviest_first(rows, weights, row):
    """The terms of a row by falling weight, among equals the smaller first; and how many of them weigh anything."""
    first = rows.offsets[row]
    n = np.int64(rows.n_terms[row])
    terms, lightness = np.empty(n, np.int64), np.empty(n)
    n_weighing = 0
    for k in range(n):
        terms[k] = rows.terms[first + k]
        lightness[k] = -weights[terms[k]]
        n_weighing += lightness[k] < 0.0
    return terms[np.argsort(lightness, kind="mergesort")], n_weighing


@kernel
def _prefix(asked, row, terms, by_place):
    """How many terms, heaviest first, must be looked for where place adds so much to the score; -1: it may be enough
    alone.
    """
    by_words, threshold = 1.0 - asked.alphas[row], asked.thresholds[row]
    stop, rest = -1, 0.0
    for k in range(len(terms), -1, -1):
        rest += asked.weights[terms[k]] if k < len(terms) else 0.0
        share = rest / asked.own_weights[row] if rest > 0.0 else 0.0
        if by_place + by_words * share + SLACK >= threshold:
            break
        stop = k
    return stop
