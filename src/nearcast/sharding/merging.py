"""Merges what several shards found for the same messages."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import drop_repeats, sort_in_place, starts_of, take
from nearcast.model import Found


def merge_runs(runs: Found, rows: np.ndarray, n_rows: int) -> Found:
    """One sorted list of distinct ids per message. Run k of `runs` belongs to message rows[k]."""
    order = np.argsort(rows, kind="stable")
    ids, starts = take(runs.ids, runs.starts, order)
    n_runs = np.bincount(rows, minlength=n_rows)
    message_starts = starts[starts_of(n_runs)]
    if runs.scores is None:
        n = _sort_ids(ids, message_starts, n_runs)
        return Found(ids[:n], message_starts)
    scores = take(runs.scores, runs.starts, order)[0]
    n = _sort_scored_ids(ids, scores, message_starts, n_runs)
    return Found(ids[:n], message_starts, scores[:n])


@kernel
def _sort_ids(ids, starts, n_runs):
    """Sort the ids of messages that have several runs and drop repeats; return how many ids are left."""
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
def _sort_scored_ids(ids, scores, starts, n_runs):
    """The same with scores. Equal ids of one message have equal scores."""
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
