"""What several shards found for the same messages, put together."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import drop_repeats, sort_in_place, starts_of, take
from nearcast.model import Found


def merged(runs: Found, rows: np.ndarray, n_rows: int) -> Found:
    """Runs of ids, each of some message (`rows`), put together message by message, sorted, each id once."""
    order = np.argsort(rows, kind="stable")
    ids, starts = take(runs.ids, runs.starts, order)
    n_runs = np.bincount(rows, minlength=n_rows)
    message_starts = starts[starts_of(n_runs)]
    if runs.scores is None:
        n = _sort_where_several(ids, message_starts, n_runs)
        return Found(ids[:n], message_starts)
    scores = take(runs.scores, runs.starts, order)[0]
    n = _sort_scored(ids, scores, message_starts, n_runs)
    return Found(ids[:n], message_starts, scores[:n])


@kernel
def _sort_where_several(ids, starts, n_runs):
    """Sort the ids of messages that came in several runs, and drop repeats; return how many ids are left."""
    n = first = 0
    for m in range(len(n_runs)):
        stop = starts[m + 1]
        kept = stop
        if n_runs[m] > 1:
            sort_in_place(ids, first, stop)
            kept = drop_repeats(ids, first, stop)
        if n != first:
            for k in range(kept - first):
                ids[n + k] = ids[first + k]
        n += kept - first
        starts[m + 1] = n
        first = stop
    return n


@kernel
def _sort_scored(ids, scores, starts, n_runs):
    """The same with scores, which are equal where ids are."""
    n = first = 0
    for m in range(len(n_runs)):
        stop = starts[m + 1]
        own_ids, own_scores = ids[first:stop].copy(), scores[first:stop].copy()
        order = np.argsort(own_ids, kind="mergesort") if n_runs[m] > 1 else np.arange(stop - first)
        for k in range(len(order)):
            at = order[k]
            if n > starts[m] and ids[n - 1] == own_ids[at]:
                continue
            ids[n] = own_ids[at]
            scores[n] = own_scores[at]
            n += 1
        starts[m + 1] = n
        first = stop
    return n
