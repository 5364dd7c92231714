"""Terms in use: those of live rows and of the window's messages. Other tokens need not stay in the vocabulary."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.text.vocabulary import Vocabulary
from nearcast.topk.rows import TopRows
from nearcast.topk.window import Window

FEWEST_UNUSED = 1024
"""Fewer unused tokens are not worth the work."""


def terms_to_keep(rows: TopRows, window: Window, n_terms: int, n_fixed: int) -> np.ndarray | None:
    """int64[...]: the terms in use and the first `n_fixed`, ascending; None if less than half could be forgotten."""
    is_used = np.zeros(n_terms, bool)
    is_used[:n_fixed] = True
    _mark_rows(rows.arrays, rows.live_rows(), is_used)
    _mark_messages(window.ring, window.first, window.stop, is_used)
    kept = np.flatnonzero(is_used)
    return kept if 2 * len(kept) + FEWEST_UNUSED < n_terms else None


def renumber_terms(rows: TopRows, window: Window, kept: np.ndarray, n_terms: int) -> None:
    """Give term kept[i] the number i, in rows and window. The order of terms, and so of sums, stays."""
    numbers = np.zeros(n_terms, np.int32)
    numbers[kept] = np.arange(len(kept))
    for terms in (rows.arrays.terms, window.ring.terms):
        in_range = (terms >= 0) & (terms < n_terms)  # room that was never used may have anything
        terms[:] = numbers[np.where(in_range, terms, 0)]


def part_of_vocabulary(vocabulary: Vocabulary, kept: np.ndarray) -> Vocabulary:
    """A vocabulary of these terms' tokens, in this order."""
    made = Vocabulary(vocabulary.analyser)
    made.add(vocabulary.tokens(kept))
    return made


@kernel
def _mark_rows(rows, numbers, out_is_used):
    for row in numbers:
        for k in range(rows.offsets[row], rows.offsets[row] + rows.n_terms[row]):
            out_is_used[rows.terms[k]] = True


@kernel
def _mark_messages(ring, first, stop, out_is_used):
    mask = len(ring.terms) - 1
    for arrival in range(first, stop):
        at = arrival & (len(ring.ids) - 1)
        for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
            out_is_used[ring.terms[k & mask]] = True
