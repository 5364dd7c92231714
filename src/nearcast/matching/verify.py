"""After the method: drop rows whose NOT terms, expiry or exact shape say no; turn rows into subscription ids, sorted,
once.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.radix import sort_each
from nearcast.arrays.ragged import drop_repeats, sort_in_place, starts_of
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import FLAG_EXPIRES, FLAG_NEGATIVE, FLAG_SHAPED, has_any_not_term, mark_terms
from nearcast.matching.store import RowStore
from nearcast.model import NO_TIME, Hits, MessageBatch

_AHEAD = 16


def verified(store: RowStore, messages: MessageBatch, hits: Hits) -> Hits:
    """The hits that hold in full."""
    keep = verdicts(store, messages, hits)
    return hits if keep is None else Hits(hits.rows[keep], starts_kept(keep, hits.starts))


def verdicts(store: RowStore, messages: MessageBatch, hits: Hits) -> np.ndarray | None:
    """bool for each hit: does it hold in full? None where all do."""
    if store.live_late == 0 or len(hits.rows) == 0:
        return None
    keep = np.ones(len(hits.rows), bool)
    marks = np.zeros(store.n_terms, np.uint8)
    _check_negatives_and_expiry(store.arrays, store.expires, messages, hits, marks, keep)
    _check_shapes(store, messages, hits, keep)
    return keep


def starts_kept(keep: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Where each message's hits start once only those to keep are left."""
    return np.asarray(starts_of(keep)[starts])


def _check_shapes(store: RowStore, messages: MessageBatch, hits: Hits, keep: np.ndarray) -> None:
    shaped = np.flatnonzero(keep & (store.arrays.flags[hits.rows] & FLAG_SHAPED > 0))
    if len(shaped):
        message_rows = np.searchsorted(hits.starts, shaped, side="right") - 1
        shapes = store.shapes_of(hits.rows[shaped])
        keep[shaped] = store.shape_table.overlaps(shapes, messages.boxes[message_rows])


@kernel
def _check_negatives_and_expiry(rows, expires, messages, hits, marks, keep):
    for m in range(len(hits.starts) - 1):
        mark_terms(marks, messages, m, 1)
        for k in range(hits.starts[m], hits.starts[m + 1]):
            row = hits.rows[k]
            if rows.flags[row] & FLAG_NEGATIVE and has_any_not_term(rows, row, marks):
                keep[k] = False
            elif rows.flags[row] & FLAG_EXPIRES and messages.times[m] != NO_TIME:
                keep[k] = messages.times[m] < expires[row]
        mark_terms(marks, messages, m, 0)


def joined(first: Hits, second: Hits) -> Hits:
    """The hits of both, message by message."""
    if len(second.rows) == 0:
        return first
    starts = first.starts + second.starts
    rows = np.empty(starts[-1], np.int32)
    _join(first, second, starts, rows)
    return Hits(rows, starts)


@kernel
def _join(first, second, starts, out):
    for m in range(len(starts) - 1):
        n = starts[m]
        for k in range(first.starts[m], first.starts[m + 1]):
            out[n] = first.rows[k]
            n += 1
        for k in range(second.starts[m], second.starts[m + 1]):
            out[n] = second.rows[k]
            n += 1


def owners_sorted(store: RowStore, hits: Hits, has_chains: bool) -> tuple[np.ndarray, np.ndarray]:
    """Subscription ids and starts: sorted within each message; where rows share owners, each id once."""
    if store.in_id_order:
        sort_each(hits.rows, hits.starts)
    ids = _owners(store, hits.rows)
    if store.in_id_order and not has_chains:
        return ids, hits.starts
    starts = hits.starts.copy()
    n = _sort_ids(ids, starts, store.in_id_order, has_chains)
    return ids[:n], starts


def _owners(store: RowStore, rows: np.ndarray) -> np.ndarray:
    """A lookup is a cache miss, 8 ns a row: ids that were given by counting need none."""
    if store.id_step is not None:
        return rows + np.int64(store.id_step)
    ids = np.empty(len(rows), np.int64)
    _gather(store.owner_ids, rows, ids)
    return ids


@kernel
def _gather(owner_ids, rows, out):
    """The owner of each row: each is a cache miss, so those of the next rows are on their way meanwhile."""
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
