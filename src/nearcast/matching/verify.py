"""The steps after a method: NOT terms, expiry and exact shapes drop rows; rows become sorted subscription ids."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.radix import sort_each
from nearcast.arrays.ragged import drop_repeats, sort_in_place, starts_of
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import FLAG_EXPIRES, FLAG_NEGATIVE, FLAG_SHAPED, has_any_not_term, mark_terms
from nearcast.matching.store import RowStore, scatter
from nearcast.model import NO_TIME, Found, Hits, MessageBatch

_AHEAD = 16


def verified(store: RowStore, messages: MessageBatch, hits: Hits) -> Hits:
    """The hits that hold in full."""
    if store.live_unverified == 0 or len(hits.rows) == 0:
        return hits
    keep = np.ones(len(hits.rows), bool)
    marks = np.zeros(store.n_terms, np.uint8)
    _check_negatives_and_expiry(store.arrays, store.expires, messages, hits.rows, hits.starts, marks, keep)
    _check_shapes(store, messages, hits, keep)
    starts = np.asarray(starts_of(keep)[hits.starts])
    return Hits(hits.rows[keep], starts, None if hits.scores is None else hits.scores[keep])


def _check_shapes(store: RowStore, messages: MessageBatch, hits: Hits, keep: np.ndarray) -> None:
    shaped = np.flatnonzero(keep & (store.arrays.flags[hits.rows] & FLAG_SHAPED > 0))
    if len(shaped):
        message_rows = np.searchsorted(hits.starts, shaped, side="right") - 1
        shapes = store.shapes_of(hits.rows[shaped])
        keep[shaped] = store.shape_table.overlaps(shapes, messages.boxes[message_rows])


@kernel
def _check_negatives_and_expiry(rows, expires, messages, hit_rows, hit_starts, marks, keep):
    for m in range(len(hit_starts) - 1):
        mark_terms(marks, messages, m, 1)
        for k in range(hit_starts[m], hit_starts[m + 1]):
            row = hit_rows[k]
            if rows.flags[row] & FLAG_NEGATIVE and has_any_not_term(rows, row, marks):
                keep[k] = False
            elif rows.flags[row] & FLAG_EXPIRES and messages.times[m] != NO_TIME:
                keep[k] = messages.times[m] < expires[row]
        mark_terms(marks, messages, m, 0)


def joined(first: Hits, second: Hits) -> Hits:
    """The hits of both, message by message. Neither has scores."""
    if len(second.rows) == 0:
        return first
    starts = first.starts + second.starts
    rows = np.empty(starts[-1], np.int32)
    scatter(first.rows, first.starts, starts[:-1], rows)
    scatter(second.rows, second.starts, starts[:-1] + np.diff(first.starts), rows)
    return Hits(rows, starts)


def owners_sorted(store: RowStore, hits: Hits, has_chains: bool) -> Found:
    """The subscriptions of each message, sorted by id. Where rows share owners, each id once, with its best score."""
    if hits.scores is not None:
        return _scored_owners(store, hits)
    if store.in_id_order:
        sort_each(hits.rows, hits.starts)
    ids = _owners(store, hits.rows)
    if store.in_id_order and not has_chains:
        return Found(ids, hits.starts)
    starts = hits.starts.copy()
    n = _sort_ids(ids, starts, store.in_id_order, has_chains)
    return Found(ids[:n], starts)


def _scored_owners(store: RowStore, hits: Hits) -> Found:
    ids, scores, starts = store.owner_ids[hits.rows], np.asarray(hits.scores), hits.starts
    falls = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if np.isin(falls, starts).all():
        return Found(ids, starts, scores)
    message_rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((-scores, ids, message_rows))
    ids, scores, message_rows = ids[order], scores[order], message_rows[order]
    is_best = np.ones(len(ids), bool)
    is_best[1:] = (ids[1:] != ids[:-1]) | (message_rows[1:] != message_rows[:-1])
    return Found(ids[is_best], np.asarray(starts_of(is_best)[starts]), scores[is_best])


def _owners(store: RowStore, rows: np.ndarray) -> np.ndarray:
    """The owner of each row. A lookup is a cache miss, 8 ns a row; consecutive ids need none."""
    if store.id_step is not None:
        return rows + np.int64(store.id_step)
    ids = np.empty(len(rows), np.int64)
    _gather(store.owner_ids, rows, ids)
    return ids


@kernel
def _gather(owner_ids, rows, out):
    """The owner of each row. Each lookup is a cache miss, so the owners of later rows are prefetched."""
    for k in range(len(rows)):
        if k + _AHEAD < len(rows):
            prefetch(owner_ids, rows[k + _AHEAD])
        out[k] = owner_ids[np.uint64(rows[k])]


@kernel
def _sort_ids(ids, starts, is_sorted, has_chains):
    """Sort each message's ids, and drop repeats; return how many are left."""
    n = first = 0
    for m in range(len(starts) - 1):
        stop = starts[m + 1]
        if not is_sorted:
            sort_in_place(ids, first, stop)
        kept = drop_repeats(ids, first, stop) if has_chains else stop
        if n != first:
            for k in range(kept - first):
                ids[n + k] = ids[first + k]
        n += kept - first
        starts[m + 1] = n
        first = stop
    return n


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
