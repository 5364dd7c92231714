"""Ranks of terms: 0 is the most frequent term at the time of the build.

A term that is new since the build has its own number as its rank. That rank is behind all earlier ones, as suits a
rare term, so ranks never change between two builds.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place, starts_of
from nearcast.matching.store import RowStore


def ranks_by_frequency(store: RowStore) -> np.ndarray:
    """int32[n_terms]: the rank of each term by the live frequencies; among equals the smaller term comes first."""
    ranks = np.empty(store.n_terms, np.int32)
    ranks[np.argsort(-store.frequencies, kind="stable")] = np.arange(store.n_terms, dtype=np.int32)
    return ranks


def extended_ranks(ranks: np.ndarray, n_terms: int) -> np.ndarray:
    """The ranks of n_terms terms, of which the first have these ranks."""
    more = np.arange(len(ranks), n_terms, dtype=np.int32)
    return np.concatenate([ranks, more]) if len(more) else ranks


def rank_sets(store: RowStore, ranks: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ranks of each row's terms, rarest first, and where those of each row start."""
    starts = starts_of(store.arrays.n_terms[rows])
    out = np.empty(starts[-1], np.int32)
    _rank_sets(store.arrays, ranks, rows, starts, out)
    return out, starts


@kernel
def _rank_sets(store, ranks, rows, starts, out):
    offsets, terms = store.offsets, store.terms
    for i in range(len(rows)):
        first, offset = starts[i], offsets[rows[i]]
        for k in range(starts[i + 1] - first):
            out[first + k] = -ranks[terms[offset + k]]
        sort_in_place(out, first, starts[i + 1])
        for k in range(first, starts[i + 1]):
            out[k] = -out[k]


def rarest_terms(store: RowStore, ranks: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The term of each row with the highest rank, which comes first in the row's set."""
    out = np.empty(len(rows), np.int32)
    _rarest_terms(store.arrays, ranks, rows, out)
    return out


@kernel
def _rarest_terms(store, ranks, rows, out):
    for i in range(len(rows)):
        offset = store.offsets[rows[i]]
        out[i] = store.terms[offset]
        for k in range(offset + 1, offset + store.n_terms[rows[i]]):
            if ranks[store.terms[k]] > ranks[out[i]]:
                out[i] = store.terms[k]
