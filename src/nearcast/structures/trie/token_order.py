"""The order of tokens: a place for each term, 0 for the most frequent one when the trie was built.

Terms that came later have their own number as their place: behind all that were known, as rare ones should be. So the
places never change between two builds, and nothing needs to be kept of a term but one number.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place, starts_of
from nearcast.matching.store import RowStore


def places_by_frequency(store: RowStore) -> np.ndarray:
    """int32[n_terms]: the place of each term by the live frequencies; among equals the smaller term comes first."""
    places = np.empty(store.n_terms, np.int32)
    places[np.argsort(-store.frequencies, kind="stable")] = np.arange(store.n_terms, dtype=np.int32)
    return places


def places_with(places: np.ndarray, n_terms: int) -> np.ndarray:
    """The same for so many terms."""
    more = np.arange(len(places), n_terms, dtype=np.int32)
    return np.concatenate([places, more]) if len(more) else places


def token_sets(store: RowStore, places: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of each row, rarest first, and where each row's start."""
    starts = starts_of(store.arrays.n_terms[rows])
    out = np.empty(starts[-1], np.int32)
    _token_sets(store.arrays, places, rows, starts, out)
    return out, starts


@kernel
def _token_sets(store, places, rows, starts, out):
    offsets, terms = store.offsets, store.terms
    for i in range(len(rows)):
        first, offset = starts[i], offsets[rows[i]]
        for k in range(starts[i + 1] - first):
            out[first + k] = -places[terms[offset + k]]
        sort_in_place(out, first, starts[i + 1])
        for k in range(first, starts[i + 1]):
            out[k] = -out[k]


def first_terms(store: RowStore, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The term of each row whose token comes first."""
    out = np.empty(len(rows), np.int32)
    _first_terms(store.arrays, places, rows, out)
    return out


@kernel
def _first_terms(store, places, rows, out):
    for i in range(len(rows)):
        offset = store.offsets[rows[i]]
        out[i] = store.terms[offset]
        for k in range(offset + 1, offset + store.n_terms[rows[i]]):
            if places[store.terms[k]] > places[out[i]]:
                out[i] = store.terms[k]
