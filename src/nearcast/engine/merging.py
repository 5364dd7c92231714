"""The subscriptions of two kinds that the same messages concern, as one result."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.model import Found


def merged(first: Found, second: Found) -> Found:
    """The subscriptions of two kinds, message by message in order of ids. No id is in both."""
    starts = first.starts + second.starts
    ids = np.empty(starts[-1], np.int64)
    sources = np.empty(starts[-1], np.int64)
    _merge_ids(first.ids, first.starts, second.ids, second.starts, starts, ids, sources)
    if first.scores is None and second.scores is None:
        return Found(ids, starts)
    return Found(ids, starts, np.concatenate([_scores_or_nan(first), _scores_or_nan(second)])[sources])


def _scores_or_nan(found: Found) -> np.ndarray:
    return np.full(len(found.ids), np.nan) if found.scores is None else found.scores


@kernel
def _merge_ids(first_ids, first_starts, second_ids, second_starts, starts, ids, sources):
    """Merge ascending ids message by message; `sources` are positions in the concatenation of both."""
    for m in range(len(starts) - 1):
        a, b = first_starts[m], second_starts[m]
        for n in range(starts[m], starts[m + 1]):
            from_second = b < second_starts[m + 1] and (a == first_starts[m + 1] or second_ids[b] < first_ids[a])
            if from_second:
                ids[n], sources[n] = second_ids[b], len(first_ids) + b
                b += 1
            else:
                ids[n], sources[n] = first_ids[a], a
                a += 1
