"""The exact test of candidates."""

from __future__ import annotations

from nearcast.arrays.jit import lean_kernel
from nearcast.arrays.vector import prefetch
from nearcast.topk.rows import N_NUMBERS
from nearcast.topk.score import THETA, score_row

AHEAD = 32
"""Candidates whose rows are prefetched before they are scored."""


@lean_kernel
def prefetch_rows(rows, candidates, first, stop):
    """Prefetch the columns of some candidates, then their terms."""
    for i in range(first, stop):
        prefetch(rows.offsets, candidates[i])
        prefetch(rows.n_terms, candidates[i])
        prefetch(rows.numbers, candidates[i] * N_NUMBERS)
    for i in range(first, stop):
        prefetch(rows.terms, rows.offsets[candidates[i]])


@lean_kernel
def keep_concerned(rows, metric, values, place, candidates, n, out_scores):
    """Keep, of the first n candidates, those whose score is at least their theta; return how many are kept.

    `place` (float64[2]) is that of the message whose values are set.
    """
    kept = 0
    for first in range(0, n, AHEAD):
        stop = min(first + AHEAD, n)
        prefetch_rows(rows, candidates, first, stop)
        for i in range(first, stop):
            row = candidates[i]
            score = score_row(rows, row, metric, values, place[0], place[1])
            if score >= 0.0 and score >= rows.numbers[row, THETA]:
                candidates[kept] = row
                out_scores[kept] = score
                kept += 1
    return kept
