"""The rarest terms of rows, by the frequencies of the live rows; among equals the smaller term."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.matching.store import RowStore

NO_TERM = -1
TERMLESS_KEY = 0
"""Stands for a term in a structure over rows without terms. Such a structure has no other rows."""


def rarest_two(store: RowStore, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rarest and the second rarest term of each row, or NO_TERM."""
    return _rarest(store, rows, NO_TERM)


def filing_terms(store: RowStore, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rarest term of each row, or TERMLESS_KEY for rows without terms; the second rarest, or NO_TERM."""
    return _rarest(store, rows, TERMLESS_KEY)


def _rarest(store: RowStore, rows: np.ndarray, absent: int) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    _rarest_two(store.arrays, store.frequencies, rows, absent, first, second)
    return first, second


@kernel
def _rarest_two(arrays, frequencies, rows, absent, out_first, out_second):
    """`absent` stands for the rarest term of a row without terms."""
    for i in range(len(rows)):
        first, second = rarest_pair(arrays, frequencies, rows[i])
        out_first[i] = absent if first == NO_TERM else first
        out_second[i] = second


@lean_kernel
def rarest_pair(arrays, frequencies, row):
    """The rarest and the second rarest term of a row, or NO_TERM."""
    first = second = np.int32(NO_TERM)
    start = arrays.offsets[row]
    for k in range(start, start + arrays.n_terms[row]):
        term = arrays.terms[k]
        if first == NO_TERM or frequencies[term] < frequencies[first]:
            second = first
            first = term
        elif second == NO_TERM or frequencies[term] < frequencies[second]:
            second = term
    return first, second
