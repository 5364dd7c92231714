"""Pairs of rows and live messages: exact tests beyond terms and boxes, and the net changes of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.matching.predicate import FLAG_CHAINED, FLAG_NEGATIVE, FLAG_SHAPED
from nearcast.matching.store import RowStore
from nearcast.model import Changes
from nearcast.moving.live_messages import LiveMessages

_LARGEST_PACKED = (1 << 31) - 1


class Pairs(NamedTuple):
    """(row, message slot) pairs, in any order."""

    rows: np.ndarray  # int32[n]
    slots: np.ndarray  # int32[n]


class SignedPairs(NamedTuple):
    """(row, message slot) pairs that begin (+1) or cease (-1) to hold."""

    rows: np.ndarray  # int32[n]
    slots: np.ndarray  # int32[n]
    signs: np.ndarray  # int8[n]


class IdPairs(NamedTuple):
    """(message, subscription) pairs by id, each once, with the same sign for all or one for each."""

    message_ids: np.ndarray  # int64[n]
    subscription_ids: np.ndarray  # int64[n]
    signs: np.ndarray  # int8[n]


def holds_in_full(store: RowStore, messages: LiveMessages, pairs: Pairs | SignedPairs) -> np.ndarray:
    """bool[n]: whether NOT terms and the exact shape let each pair hold, of which terms and box are known to hold."""
    flags = store.arrays.flags[pairs.rows]
    keep = np.ones(len(pairs.rows), bool)
    negative = np.flatnonzero(flags & FLAG_NEGATIVE)
    if len(negative):
        rows, slots = pairs.rows[negative], pairs.slots[negative]
        keep[negative] = ~_have_not_terms(store.arrays, messages.arrays, rows, slots)
    shaped = np.flatnonzero(keep & (flags & FLAG_SHAPED > 0))
    if len(shaped):
        numbers = store.shapes_of(pairs.rows[shaped])
        keep[shaped] = store.shape_table.overlaps(numbers, messages.arrays.boxes[pairs.slots[shaped]])
    return keep


def distinct_id_pairs(store: RowStore, messages: LiveMessages, pairs: Pairs, sign: int) -> IdPairs:
    """The pairs by id. A pair that several rows of one subscription make comes once."""
    subscriptions, ids = store.owner_ids[pairs.rows], messages.ids[pairs.slots]
    if not (store.arrays.flags[pairs.rows] & FLAG_CHAINED).any():
        return IdPairs(ids, subscriptions, np.full(len(ids), sign, np.int8))
    order = np.lexsort((subscriptions, ids))
    ids, subscriptions = ids[order], subscriptions[order]
    is_first = np.ones(len(ids), bool)
    is_first[1:] = (ids[1:] != ids[:-1]) | (subscriptions[1:] != subscriptions[:-1])
    ids, subscriptions = ids[is_first], subscriptions[is_first]
    return IdPairs(ids, subscriptions, np.full(len(ids), sign, np.int8))


def net_changes(parts: list[IdPairs], time: int) -> Changes:
    """The changes of a step, sorted by (message, subscription): pairs that come and go within the step cancel."""
    ids = np.concatenate([np.empty(0, np.int64), *(part.message_ids for part in parts)])
    subscriptions = np.concatenate([np.empty(0, np.int64), *(part.subscription_ids for part in parts)])
    signs = np.concatenate([np.empty(0, np.int8), *(part.signs for part in parts)])
    if len(ids) > 1:
        ids, subscriptions, signs = _summed(*_sorted(ids, subscriptions, signs))
    n = len(ids)
    return Changes(ids, subscriptions, signs, np.full(n, np.nan), np.full(n, time, np.int64))


def _sorted(ids: np.ndarray, subscriptions: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs by (message, subscription). Ids below 2^31 are packed with the sign: 30 ns a pair instead of 200."""
    if min(ids.min(), subscriptions.min()) < 0 or max(ids.max(), subscriptions.max()) > _LARGEST_PACKED:
        order = np.lexsort((subscriptions, ids))
        return ids[order], subscriptions[order], signs[order]
    packed = np.sort(ids << 32 | subscriptions << 1 | (signs > 0))
    return packed >> 32, packed >> 1 & _LARGEST_PACKED, np.where(packed & 1, 1, -1).astype(np.int8)


def _summed(ids: np.ndarray, subscriptions: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    is_first = np.ones(len(ids), bool)
    is_first[1:] = (ids[1:] != ids[:-1]) | (subscriptions[1:] != subscriptions[:-1])
    if is_first.all():
        return ids, subscriptions, signs
    firsts = np.flatnonzero(is_first)
    sums = np.add.reduceat(signs, firsts)
    kept = firsts[sums != 0]
    return ids[kept], subscriptions[kept], sums[sums != 0].astype(np.int8)


@lean_kernel
def has_terms(rows, row, messages, slot):
    """Whether all positive terms of a row are among the terms of a message. Both are sorted."""
    at = messages.offsets[slot]
    stop = at + messages.n_terms[slot]
    first = rows.offsets[row]
    for k in range(first, first + rows.n_terms[row]):
        while at < stop and messages.terms[at] < rows.terms[k]:
            at += 1
        if at == stop or messages.terms[at] != rows.terms[k]:
            return False
    return True


@lean_kernel
def boxes_overlap(boxes, i, others, k):
    """Whether closed boxes i and k share a point."""
    return (
        boxes[i, 0] <= others[k, 2]
        and boxes[i, 2] >= others[k, 0]
        and boxes[i, 1] <= others[k, 3]
        and boxes[i, 3] >= others[k, 1]
    )


@kernel
def _have_not_terms(rows, messages, pair_rows, pair_slots):
    """bool[n]: whether the message of each pair has a negative term of the row."""
    out = np.zeros(len(pair_rows), np.bool_)
    for i in range(len(pair_rows)):
        row, slot = pair_rows[i], pair_slots[i]
        first = rows.offsets[row] + rows.n_terms[row]
        at = messages.offsets[slot]
        stop = at + messages.n_terms[slot]
        for k in range(first, first + rows.n_not[row]):
            while at < stop and messages.terms[at] < rows.terms[k]:
                at += 1
            if at < stop and messages.terms[at] == rows.terms[k]:
                out[i] = True
                break
    return out
