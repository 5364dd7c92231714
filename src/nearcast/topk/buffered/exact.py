"""The exact score of a message in a buffer, computed again where it is needed: buffers store rounded scores."""

from __future__ import annotations

from typing import NamedTuple

from nearcast.arrays.jit import lean_kernel
from nearcast.topk.rows import RowArrays
from nearcast.topk.score import ABSENT, Metric, combined
from nearcast.topk.window import Ring


class ScoreInputs(NamedTuple):
    """All that a score depends on. The ring also has messages that expire in the present batch."""

    ring: Ring
    rows: RowArrays
    metric: Metric


@lean_kernel
def exact_score(inputs, row, arrival):
    """The score of a row on a message that shares a term with it; terms ascend on both sides."""
    ring, rows = inputs.ring, inputs.rows
    at, mask = arrival & (len(ring.ids) - 1), len(ring.terms) - 1
    k, stop = ring.starts[at], ring.starts[at] + ring.counts[at]
    total = ABSENT
    for i in range(rows.offsets[row], rows.offsets[row] + rows.n_terms[row]):
        term = rows.terms[i]
        while k < stop and ring.terms[k & mask] < term:
            k += 1
        if k < stop and ring.terms[k & mask] == term:
            value = ring.values[k & mask]
            total = value if total < 0.0 else total + value
    return combined(rows.numbers, row, inputs.metric, total, ring.places[at, 0], ring.places[at, 1])


@lean_kernel
def exact_scores(inputs, buffers, row, n, out_scores):
    """Write the exact scores of the first n entries of a row's buffer."""
    for k in range(n):
        out_scores[k] = exact_score(inputs, row, buffers.arrivals[buffers.starts[row] + k])
