"""Pairs of rows and live messages, and exact tests of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.matching.predicate import FLAG_NEGATIVE, FLAG_SHAPED
from nearcast.matching.store import RowStore
from nearcast.moving.live_messages import LiveMessages


class Pairs(NamedTuple):
    """(row, message slot) pairs, in any order."""

    rows: np.ndarray  # int32[n]
    slots: np.ndarray  # int32[n]


class SignedPairs(NamedTuple):
    """(row, message slot) pairs that begin (+1) or cease (-1) to hold."""

    rows: np.ndarray  # int32[n]
    slots: np.ndarray  # int32[n]
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
