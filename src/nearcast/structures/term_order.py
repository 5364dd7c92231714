"""The rarest terms of rows, by the frequencies of the live rows; among equals the smaller term."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.store import RowStore

NO_TERM = -1
TERMLESS_KEY = 0
"""Stands for a term in a structure over rows without terms. Such a structure has no other rows."""


def rarest_two(store: RowStore, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rarest and the second rarest term of each row, or NO_TERM."""
    first, second = np.full(len(rows), NO_TERM, np.int32), np.full(len(rows), NO_TERM, np.int32)
    _rarest_two(store.arrays, store.frequencies, rows, first, second)
    return first, second


def filing_terms(store: RowStore, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rarest term of each row, or TERMLESS_KEY for rows without terms; the second rarest, or NO_TERM."""
    first, second = rarest_two(store, rows)
    first[first == NO_TERM] = TERMLESS_KEY
    return first, second


@kernel
def _rarest_two(arrays, frequencies, rows, out_first, out_second):
    for i in range(len(rows)):
        start = arrays.offsets[rows[i]]
        for k in range(start, start + arrays.n_terms[rows[i]]):
            term = arrays.terms[k]
            if out_first[i] == NO_TERM or frequencies[term] < frequencies[out_first[i]]:
                out_second[i] = out_first[i]
                out_first[i] = term
            elif out_second[i] == NO_TERM or frequencies[term] < frequencies[out_second[i]]:
                out_second[i] = term
