"""Messages on their way into a window: points, times, and terms with the values that `score.py` sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place


class IncomingMessages(NamedTuple):
    """Messages as columns. Terms ascend within a message, each once."""

    ids: np.ndarray  # int64[n]
    places: np.ndarray  # float64[n,2]  x, y
    times: np.ndarray  # int64[n]    microseconds, or NO_TIME
    terms: np.ndarray  # int32[...]
    values: np.ndarray  # float64[...]  tf * weight^2 / norm of the message
    term_starts: np.ndarray  # int64[n+1]

    @property
    def size(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> IncomingMessages:
        """Messages start..stop-1, without copying."""
        first, last = self.term_starts[start], self.term_starts[stop]
        return IncomingMessages(
            self.ids[start:stop],
            self.places[start:stop],
            self.times[start:stop],
            self.terms[first:last],
            self.values[first:last],
            self.term_starts[start : stop + 1] - first,
        )


def weighed(terms: np.ndarray, starts: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(terms, values, starts) of messages whose tokens, repeats included, have these terms.

    `weights` (float64, by term) are scaled so that the largest is 1.
    """
    out_terms, out_values = np.empty(len(terms), np.int32), np.empty(len(terms))
    out_starts = np.zeros(len(starts), np.int64)
    n = _weigh(terms, starts, weights, out_terms, out_values, out_starts)
    return out_terms[:n], out_values[:n], out_starts


@kernel
def _weigh(terms, starts, weights, out_terms, out_values, out_starts):
    n = 0
    for row in range(len(starts) - 1):
        own = terms[starts[row] : starts[row + 1]].copy()
        sort_in_place(own, 0, len(own))
        first = n
        for k in range(len(own)):
            if k > 0 and own[k] == own[k - 1]:
                out_values[n - 1] += 1.0
            else:
                out_terms[n] = own[k]
                out_values[n] = 1.0
                n += 1
        _times_become_values(out_terms, out_values, first, n, weights)
        out_starts[row + 1] = n
    return n


@kernel
def _times_become_values(terms, out_values, first, stop, weights):
    """Turn the counts of one message's terms into values."""
    total = 0.0
    for k in range(first, stop):
        total += (out_values[k] * weights[terms[k]]) ** 2
    norm = np.sqrt(total)
    for k in range(first, stop):
        weight = weights[terms[k]]
        out_values[k] = out_values[k] * weight * weight / norm if norm > 0.0 else 0.0
