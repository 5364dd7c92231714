"""Ranks of terms: 1 is the most frequent term at the build; 0 is a term that no row has had so far.

Ranks are fixed until the next build. A term that is new gets the next rank, as if it were rarer than all before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place, starts_of
from nearcast.matching.store import RowStore


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
