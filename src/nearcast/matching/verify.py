"""The steps after a method: NOT terms, expiry and exact shapes drop rows; rows become sorted subscription ids.

One kernel takes the hits of a batch message by message, so that all that lies between a hit and an id stays in the
first-level cache: with an array for each step a batch of 2,000 messages of `mixed` took a third longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.radix import MOST_COUNTS, sort_each, sort_rows
from nearcast.arrays.ragged import drop_repeats, sort_in_place, starts_of
from nearcast.arrays.vector import prefetch
from nearcast.geo.shapes.arrays import HEAD, circle_overlaps, locate, polygon_overlaps, shape_overlaps
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
_TOGETHER = 32  # rows whose tests are prefetched together
_DOUBTS = NEEDS_VERIFYING | FLAG_LEAVING | FLAG_LIVE  # with FLAG_LIVE alone, a row that a method found holds in full

_STAYS_SHAPED = FLAG_LIVE | FLAG_LEAVING | FLAG_SHAPED


class Lists(NamedTuple):
    """The rows of one message on their way. A list is as long as the most hits of a message, and one more."""

    sure: np.ndarray  # int32[...]  rows that hold in full
    shaped: np.ndarray  # int32[...]  rows with a circle or polygon
    others: np.ndarray  # int32[...]  rows that may have expired, have NOT terms, or are removed
    circles: np.ndarray  # int32[_TOGETHER]  rows with a circle, of those that are tested together
    polygons: np.ndarray  # int32[_TOGETHER]
    counts: np.ndarray  # int32[MOST_COUNTS]  for sorting
    place: np.ndarray  # float64[4]  what `locate` writes


def found(store: StoreView, messages: MessageBatch, hits: Hits, more: Hits | None, has_chains: bool) -> Found:
    """The subscriptions of each message, sorted by id, each once.

    Args:
        more: further hits, of rows without terms. Only hits without scores have them.
        has_chains: some subscriptions have several rows. Where scores are given the best one counts.
    """
    if hits.scores is not None:
        return _scored_owners(store, _scored_hits(store, messages, hits))
    if more is None and not store.needs_verifying:
        return _owners_sorted(store, hits, has_chains)
    more = more or Hits(hits.rows[:0], np.zeros_like(hits.starts))
    starts = np.zeros_like(hits.starts)
    most = int((np.diff(hits.starts) + np.diff(more.starts)).max(initial=0))
    ids = np.empty(len(hits.rows) + len(more.rows), np.int64)
    parts, own = (hits[:2], more[:2]), (store.arrays, store.details, store.shapes)
    n = _find_owners(own, messages, parts, _new_lists(most), store.in_id_order, (ids, starts))
    if not store.in_id_order:
        n = _sort_ids(ids, starts, False, has_chains)
    return Found(ids[:n], starts)


def _new_lists(most: int) -> Lists:
    sure, shaped, others = np.empty((3, most + 1), np.int32)
    circles, polygons = np.empty((2, _TOGETHER), np.int32)
    return Lists(sure, shaped, others, circles, polygons, np.empty(MOST_COUNTS, np.int32), np.empty(4))


@lean_kernel
def _find_owners(store, messages, parts, lists, in_id_order, out):
    """Write the subscriptions of each message to `out`, ids and starts; return how many there are in all. They ascend,
    each once, if rows are in the order of ids.
    """
    (rows, details, _), (ids, starts) = store, out
    n = 0
    for m in range(len(starts) - 1):
        n_sure, n_shaped, n_others = _divide(rows.flags, details.shapes, parts, m, lists)
        if n_shaped:
            n_sure, n_others = _test_shapes(store, messages, m, lists, (n_sure, n_shaped, n_others))
        if n_others:
            n_sure = _test_others(store, messages, m, lists, (n_sure, n_others))
        own = lists.sure[:n_sure]
        if in_id_order:
            sort_rows(own, lists.shaped[:n_sure], lists.counts)
        n = _write_owners(details.owner_ids, own, ids, n)
        starts[m + 1] = n
    return n


@inline_kernel
def _divide(flags, row_shapes, parts, m, lists):
    """Divide the hits of a message: rows that hold in full, rows with a shape, others; return how many of each.

    Removed rows are others, with a shape or without: a writer may discard the shape of a row that is hidden here.
    """
    n_sure = n_shaped = n_others = 0
    for rows, starts in parts:
        for k in range(starts[m], starts[m + 1]):
            row = rows[k]
            if k + _AHEAD < len(rows):
                prefetch(flags, rows[k + _AHEAD])
                prefetch(row_shapes, rows[k + _AHEAD])
            lists.sure[n_sure] = lists.shaped[n_shaped] = lists.others[n_others] = row
            is_sure, is_shaped = (
                flags[row] & _DOUBTS == FLAG_LIVE,
                flags[row] & _STAYS_SHAPED == FLAG_LIVE | FLAG_SHAPED,
            )
            n_sure += is_sure
            n_shaped += is_shaped
            n_others += not is_sure and not is_shaped
    return n_sure, n_shaped, n_others


@inline_kernel
def _test_shapes(store, messages, m, lists, sizes):
    """Append the rows whose circle or polygon holds to lists.sure, or to lists.others if they need another test too;
    return the lengths of both.

    What the tests of a group of rows read is prefetched together. Circles and polygons are tested apart, so that few
    branches follow no pattern.
    """
    rows, details, shapes = store
    n, n_shaped, n_others, is_located = sizes[0], sizes[1], sizes[2], False
    for first in range(0, n_shaped, _TOGETHER):
        group = lists.shaped[first : min(first + _TOGETHER, n_shaped)]
        n_circles, n_polygons = _divide_shapes(details.shapes, shapes, group, lists)
        if n_circles and not is_located:
            locate(shapes, messages.boxes, m, lists.place)
            is_located = True
        for row in lists.circles[:n_circles]:
            holds = circle_overlaps(shapes, details.shapes[row], messages.boxes, m, lists.place)
            is_sure = rows.flags[row] & _DOUBTS == FLAG_LIVE | FLAG_SHAPED
            lists.sure[n] = lists.others[n_others] = row
            n += holds and is_sure
            n_others += holds and not is_sure
        for row in lists.polygons[:n_polygons]:
            holds = polygon_overlaps(shapes, details.shapes[row], messages.boxes, m)
            is_sure = rows.flags[row] & _DOUBTS == FLAG_LIVE | FLAG_SHAPED
            lists.sure[n] = lists.others[n_others] = row
            n += holds and is_sure
            n_others += holds and not is_sure
    return n, n_others


@inline_kernel
def _divide_shapes(row_shapes, shapes, group, lists):
    """Divide rows by their shapes, and prefetch what the tests read; return the numbers of circles and polygons."""
    for row in group:
        prefetch(shapes.blocks, row_shapes[row])
        prefetch(shapes.heads, HEAD * np.int64(row_shapes[row]))
    n_circles = n_polygons = 0
    for row in group:
        is_circle = shapes.blocks[row_shapes[row]] < 0
        lists.circles[n_circles] = lists.polygons[n_polygons] = row
        n_circles += is_circle
        n_polygons += not is_circle
    for row in lists.polygons[:n_polygons]:
        prefetch(shapes.words, shapes.blocks[row_shapes[row]])
        prefetch(shapes.words, shapes.blocks[row_shapes[row]] + 16)
    return n_circles, n_polygons


@inline_kernel
def _test_others(store, messages, m, lists, sizes):
    """Append the other rows that hold in full to lists.sure; return its length. Of shapes only those of removed rows
    are left to test, for readers of a version that still has them.
    """
    rows, details, shapes = store
    n, n_others = sizes[0], sizes[1]
    for row in lists.others[:n_others]:
        prefetch(rows.offsets, row)
        prefetch(rows.n_terms, row)
        prefetch(rows.n_not, row)
    for row in lists.others[:n_others]:
        prefetch(rows.terms, rows.offsets[row])
    for row in lists.others[:n_others]:
        lists.sure[n] = row
        holds = _holds_but_for_shape(rows, details, row, messages, m)
        if holds and rows.flags[row] & _STAYS_SHAPED == _STAYS_SHAPED:
            locate(shapes, messages.boxes, m, lists.place)
            holds = shape_overlaps(shapes, details.shapes[row], messages.boxes, m, lists.place)
        n += holds
    return n


@inline_kernel
def _write_owners(owner_ids, rows, ids, n):
    """Append the owners of these rows to ids[:n], those of neighbours once; return the new n."""
    for k in range(min(_AHEAD, len(rows))):
        prefetch(owner_ids, rows[k])
    last = np.int64(0)
    for k in range(len(rows)):
        if k + _AHEAD < len(rows):
            prefetch(owner_ids, rows[k + _AHEAD])
        owner = owner_ids[np.uint64(rows[k])]
        ids[n] = owner
        n += k == 0 or owner != last
        last = owner
    return n


@inline_kernel
def is_delivered(rows, details, shapes, row, messages, message, place):
    """Whether a row that a method has found holds in full. `place` is what `locate` wrote for the message."""
    flags = rows.flags[row]
    if flags & _DOUBTS == FLAG_LIVE:
        return True
    if not _holds_but_for_shape(rows, details, row, messages, message):
        return False
    return flags & FLAG_SHAPED == 0 or shape_overlaps(shapes, details.shapes[row], messages.boxes, message, place)


@inline_kernel
def _holds_but_for_shape(rows, details, row, messages, message):
    """Whether a row that a method has found is there, has not expired, and has no NOT term in the message."""
    flags = rows.flags[row]
    if flags & FLAG_LIVE == 0 or (flags & FLAG_LEAVING and _has_value(details.hidden, 0, len(details.hidden), row)):
        return False
    time = messages.times[message]
    if flags & FLAG_EXPIRES and time != NO_TIME and time >= details.expires[row]:
        return False
    return flags & FLAG_NEGATIVE == 0 or not _has_not_term(rows, row, messages, message)


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


def _owners_sorted(store: StoreView, hits: Hits, has_chains: bool) -> Found:
    """The subscriptions of hits that all hold in full. Their rows are sorted in place."""
    if store.in_id_order:
        sort_each(hits.rows, hits.starts)
    ids = _owners(store, hits.rows)
    if store.in_id_order and not has_chains:
        return Found(ids, hits.starts)
    n = _sort_ids(ids, hits.starts, store.in_id_order, has_chains)
    return Found(ids[:n], hits.starts)


def _scored_hits(store: StoreView, messages: MessageBatch, hits: Hits) -> Hits:
    """The hits that hold in full."""
    if not store.needs_verifying or len(hits.rows) == 0:
        return hits
    keep = np.empty(len(hits.rows), np.bool_)
    _find_delivered(store.arrays, store.details, store.shapes, messages, hits, keep, np.empty(4))
    return Hits(hits.rows[keep], np.asarray(starts_of(keep)[hits.starts]), np.asarray(hits.scores)[keep])


@lean_kernel
def _find_delivered(rows, details, shapes, messages, hits, keep, place):
    """Write whether each hit holds in full."""
    for m in range(len(hits.starts) - 1):
        locate(shapes, messages.boxes, m, place)
        for k in range(hits.starts[m], hits.starts[m + 1]):
            keep[k] = is_delivered(rows, details, shapes, hits.rows[k], messages, m, place)


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
