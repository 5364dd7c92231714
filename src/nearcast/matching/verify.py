"""The steps after a method: NOT terms, expiry and exact shapes drop rows; rows become sorted subscription ids."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.radix import sort_each
from nearcast.arrays.ragged import drop_repeats, sort_in_place, starts_of
from nearcast.arrays.vector import prefetch
from nearcast.geo.shapes.arrays import HEAD, locate, shape_overlaps
from nearcast.matching.predicate import (
    FLAG_EXPIRES,
    FLAG_LEAVING,
    FLAG_LIVE,
    FLAG_NEGATIVE,
    FLAG_SHAPED,
    NEEDS_VERIFYING,
)
from nearcast.matching.store import StoreView, scatter
from nearcast.model import NO_TIME, Found, Hits, MessageBatch

_AHEAD = 16
_FEW = 16  # values that are compared one by one
_DOUBTS = NEEDS_VERIFYING | FLAG_LEAVING | FLAG_LIVE  # with FLAG_LIVE alone, a row that a method found holds in full


def verified(store: StoreView, messages: MessageBatch, hits: Hits) -> Hits:
    """The hits that hold in full. The arrays of unscored hits are used again."""
    if not store.needs_verifying or len(hits.rows) == 0:
        return hits
    place, own = np.empty(4), (store.arrays, store.details, store.shapes, messages)
    if hits.scores is None:
        unsure = np.empty(int(np.diff(hits.starts).max()), np.int32)
        n = _keep_delivered(*own, hits, unsure, place)
        return Hits(hits.rows[:n], hits.starts)
    keep = np.empty(len(hits.rows), np.bool_)
    _find_delivered(*own, hits, keep, place)
    return Hits(hits.rows[keep], np.asarray(starts_of(keep)[hits.starts]), hits.scores[keep])


@lean_kernel
def _keep_delivered(rows, details, shapes, messages, hits, unsure, place):
    """Move the hits that hold in full to the front, and adapt the starts; return how many there are.

    The rows of a message that need a test are gathered first, so that what their tests read can be prefetched.
    """
    hit_rows, hit_starts, flags = hits.rows, hits.starts, rows.flags
    n = first = 0
    for m in range(len(hit_starts) - 1):
        stop, n_unsure, any_flags = hit_starts[m + 1], 0, 0
        for k in range(first, stop):
            row = hit_rows[k]
            if k + _AHEAD < len(hit_rows):
                prefetch(flags, hit_rows[k + _AHEAD])
            hit_rows[n], unsure[n_unsure] = row, row
            is_sure = flags[row] & _DOUBTS == FLAG_LIVE
            n += is_sure
            n_unsure += not is_sure
            any_flags |= flags[row]
        if any_flags & FLAG_SHAPED:
            locate(shapes, messages.boxes, m, place)
        for k in range(-_AHEAD, n_unsure):
            _prefetch_tests(rows, details.shapes, shapes, unsure[:n_unsure], k)
            if k >= 0:
                hit_rows[n] = unsure[k]
                n += is_delivered(rows, details, shapes, unsure[k], messages, m, place)
        hit_starts[m + 1] = n
        first = stop
    return n


@lean_kernel
def _find_delivered(rows, details, shapes, messages, hits, keep, place):
    """Write whether each hit holds in full."""
    for m in range(len(hits.starts) - 1):
        locate(shapes, messages.boxes, m, place)
        for k in range(hits.starts[m], hits.starts[m + 1]):
            keep[k] = is_delivered(rows, details, shapes, hits.rows[k], messages, m, place)


@inline_kernel
def _prefetch_tests(rows, row_shapes, shapes, unsure, k):
    """Prefetch what the tests of later rows read: NOT terms; the shape, then a polygon's words. k begins at -_AHEAD.

    At a million subscriptions this halves the time of the tests.
    """
    flags, n = rows.flags, len(unsure)
    if k + _AHEAD < n:
        row = unsure[k + _AHEAD]
        if flags[row] & FLAG_NEGATIVE:
            prefetch(rows.offsets, row)
            prefetch(rows.n_terms, row)
            prefetch(rows.n_not, row)
        if flags[row] & FLAG_SHAPED:
            prefetch(row_shapes, row)
    if 0 <= k + _AHEAD // 2 < n:
        row = unsure[k + _AHEAD // 2]
        if flags[row] & FLAG_NEGATIVE:
            prefetch(rows.terms, rows.offsets[row])
        if flags[row] & FLAG_SHAPED:
            prefetch(shapes.blocks, row_shapes[row])
            prefetch(shapes.heads, HEAD * np.int64(row_shapes[row]))
    if 0 <= k + _AHEAD // 4 < n and flags[unsure[k + _AHEAD // 4]] & FLAG_SHAPED:
        block = max(0, shapes.blocks[row_shapes[unsure[k + _AHEAD // 4]]])
        prefetch(shapes.words, block)
        prefetch(shapes.words, block + 16)


@inline_kernel
def is_delivered(rows, details, shapes, row, messages, message, place):
    """Whether a row that a method has found holds in full. `place` is what `locate` wrote for the message."""
    flags = rows.flags[row]
    if flags & _DOUBTS == FLAG_LIVE:
        return True
    if flags & FLAG_LIVE == 0 or (flags & FLAG_LEAVING and _has_value(details.hidden, 0, len(details.hidden), row)):
        return False
    time = messages.times[message]
    if flags & FLAG_EXPIRES and time != NO_TIME and time >= details.expires[row]:
        return False
    if flags & FLAG_NEGATIVE and _has_not_term(rows, row, messages, message):
        return False
    return flags & FLAG_SHAPED == 0 or shape_overlaps(shapes, details.shapes[row], messages.boxes, message, place)


@inline_kernel
def _has_not_term(rows, row, messages, message):
    """Whether a negative term of the row occurs in the message. They lie behind the positive ones."""
    first = rows.offsets[row] + rows.n_terms[row]
    start, stop = messages.term_starts[message], messages.term_starts[message + 1]
    for k in range(first, first + rows.n_not[row]):
        if _has_value(messages.terms, start, stop, rows.terms[k]):
            return True
    return False


@inline_kernel
def _has_value(values, low, high, value):
    """Whether a value is in values[low:high], which ascends."""
    while high - low > _FEW:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle
        else:
            high = middle
    found = False
    for k in range(low, high):  # without branches: those of a bisection follow no pattern
        found |= values[k] == value
    return found


def joined(first: Hits, second: Hits) -> Hits:
    """The hits of both, message by message. Neither has scores."""
    if len(second.rows) == 0:
        return first
    starts = first.starts + second.starts
    rows = np.empty(starts[-1], np.int32)
    scatter(first.rows, first.starts, starts[:-1], rows)
    scatter(second.rows, second.starts, starts[:-1] + np.diff(first.starts), rows)
    return Hits(rows, starts)


def owners_sorted(store: StoreView, hits: Hits, has_chains: bool) -> Found:
    """The subscriptions of each message, sorted by id. Where rows share owners, each id once, with its best score."""
    if hits.scores is not None:
        return _scored_owners(store, hits)
    if store.in_id_order:
        sort_each(hits.rows, hits.starts)
    ids = _owners(store, hits.rows)
    if store.in_id_order and not has_chains:
        return Found(ids, hits.starts)
    n = _sort_ids(ids, hits.starts, store.in_id_order, has_chains)
    return Found(ids[:n], hits.starts)


def _scored_owners(store: StoreView, hits: Hits) -> Found:
    ids, scores, starts = store.details.owner_ids[hits.rows], np.asarray(hits.scores), hits.starts
    falls = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if np.isin(falls, starts).all():
        return Found(ids, starts, scores)
    message_rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((-scores, ids, message_rows))
    ids, scores, message_rows = ids[order], scores[order], message_rows[order]
    is_best = np.ones(len(ids), bool)
    is_best[1:] = (ids[1:] != ids[:-1]) | (message_rows[1:] != message_rows[:-1])
    return Found(ids[is_best], np.asarray(starts_of(is_best)[starts]), scores[is_best])


def _owners(store: StoreView, rows: np.ndarray) -> np.ndarray:
    """The owner of each row. A lookup is a cache miss, 8 ns a row; consecutive ids need none."""
    if store.id_step is not None:
        return rows + np.int64(store.id_step)
    ids = np.empty(len(rows), np.int64)
    _gather(store.details.owner_ids, rows, ids)
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
