"""Distances and matched words of pairs, from the rows of the subscriptions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct, starts_of
from nearcast.geo.distance import great_circle_km
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import MessageBatch
from nearcast.tables.ids.gather import order_within
from nearcast.text.vocabulary import Vocabulary


class RowsOfPairs:
    """The rows of the subscription of each pair, in one set of subscriptions. The caller keeps changes out."""

    def __init__(self, own: SubscriptionSet, numbers: np.ndarray) -> None:
        self.store = own.store
        wanted = distinct(np.sort(numbers))
        rows = own.owners.rows(wanted)
        owners = own.store.owner_ids[rows]
        by_owner = np.argsort(owners, kind="stable")
        self.rows, owners = rows[by_owner], owners[by_owner]
        self.starts = np.searchsorted(owners, numbers, "left")
        self.stops = np.searchsorted(owners, numbers, "right")


def distances_km(sets: Iterable[SubscriptionSet], batch: MessageBatch, at: np.ndarray, numbers: np.ndarray) -> pa.Array:
    """float64[n]: kilometres from the centre of each message to that of the subscription's circle or box, the nearest
    where it has several. Null for the whole world.

    Args:
        at: the position of each pair's message in the batch.
    """
    boxes = batch.boxes[at]
    centres = np.ascontiguousarray(boxes[:, :2] / 2 + boxes[:, 2:] / 2)
    best = np.full(len(at), np.inf)
    for own in sets:
        found = RowsOfPairs(own, numbers)
        middles = _middles(own, found.rows)
        _nearest(centres, middles, found.starts, found.stops, best)
    return pa.array(best, mask=np.isinf(best))


def _middles(own: SubscriptionSet, rows: np.ndarray) -> np.ndarray:
    """float64[n,2]: the centre of each row's circle or box; NaN where the box is the whole world."""
    batch, shapes = own.store.batch(rows)
    middles = batch.boxes[:, :2] / 2 + batch.boxes[:, 2:] / 2
    middles[(batch.boxes == own.space.bounds).all(axis=1)] = np.nan
    shaped = np.flatnonzero(batch.shapes >= 0)
    radii = shapes.circles[batch.shapes[shaped], 2]
    circles = shaped[radii > 0]
    middles[circles] = shapes.circles[batch.shapes[circles], :2]
    return np.ascontiguousarray(middles)


@kernel
def _nearest(centres, middles, starts, stops, out):
    for i in range(len(starts)):
        for k in range(starts[i], stops[i]):
            if not np.isnan(middles[k, 0]):
                out[i] = min(out[i], great_circle_km(centres[i, 0], centres[i, 1], middles[k, 0], middles[k, 1]))


def matched_words(
    sets: Iterable[SubscriptionSet], vocabulary: Vocabulary, batch: MessageBatch, at: np.ndarray, numbers: np.ndarray
) -> pa.Array:
    """list<string>[n]: the words of each pair's message that its subscription asks for, in alphabetical order."""
    counts, parts = np.zeros(len(at), np.int64), []
    for own in sets:
        found = RowsOfPairs(own, numbers)
        starts = np.zeros(len(at) + 1, np.int64)
        terms = np.empty(_most(found.store.arrays, found.rows, found.starts, found.stops), np.int32)
        n = _common(found.store.arrays, found.rows, (found.starts, found.stops), batch, at, (terms, starts))
        parts.append((terms[:n], starts))
        counts += np.diff(starts)
    pairs = np.concatenate([np.repeat(np.arange(len(at)), np.diff(starts)) for _, starts in parts])
    terms = np.concatenate([own for own, _ in parts])
    return _as_lists(vocabulary, terms[np.argsort(pairs, kind="stable")], starts_of(counts))


def _as_lists(vocabulary: Vocabulary, terms: np.ndarray, starts: np.ndarray) -> pa.Array:
    known = distinct(np.sort(terms))
    tokens = vocabulary.tokens(known)
    ranks = np.empty(len(known), np.int32)
    ranks[np.asarray(pc.array_sort_indices(tokens))] = np.arange(len(known))
    entries = np.searchsorted(known, terms)
    order = np.empty(len(terms), np.int64)
    order_within(ranks[entries], starts, order)
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), tokens.take(pa.array(entries[order])))


@kernel
def _most(rows, own, starts, stops):
    """How many words the pairs have at most."""
    n = 0
    for i in range(len(starts)):
        for k in range(starts[i], stops[i]):
            n += rows.n_terms[own[k]]
    return n


@kernel
def _common(rows, own, runs, batch, at, out):
    """Write for each pair the terms that its message and the subscription's rows have in common; return how many."""
    (begins, ends), (terms, starts) = runs, out
    n = 0
    for i in range(len(at)):
        first, stop = batch.term_starts[at[i]], batch.term_starts[at[i] + 1]
        begin = n
        for k in range(begins[i], ends[i]):
            offset = rows.offsets[own[k]]
            for t in range(offset, offset + rows.n_terms[own[k]]):
                place = first + np.searchsorted(batch.terms[first:stop], rows.terms[t])
                if place < stop and batch.terms[place] == rows.terms[t] and not _has(terms, begin, n, rows.terms[t]):
                    terms[n] = rows.terms[t]
                    n += 1
        starts[i + 1] = n
    return n


@kernel
def _has(terms, first, stop, term):
    for k in range(first, stop):
        if terms[k] == term:
            return True
    return False
