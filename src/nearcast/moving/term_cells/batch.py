"""A batch of messages in order of their terms: the lists of a term are used while they are in the cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.moving.entry_lists.lists import CORNER, NUMBER, OTHER_CORNER, SIGNATURE, Entry
from nearcast.moving.entry_lists.place_codes import PlaceCodes, corner_code, signature
from nearcast.moving.live_messages import MessageArrays

_FEW = 8  # a batch with fewer postings than one in eight terms is sorted by comparisons


class Batch(NamedTuple):
    """Messages, and their postings sorted by term."""

    slots: np.ndarray  # int32[n]
    entries: np.ndarray  # uint32[n,4]  corner, signature, slot and other corner of each message
    is_point: np.ndarray  # bool[n]
    terms: np.ndarray  # int32[k]  the term of each posting
    owners: np.ndarray  # int32[k]  the message of each posting, as a position in `slots`


def batch_of(messages: MessageArrays, slots: np.ndarray, codes: PlaceCodes, n_terms: int) -> Batch:
    """The batch of these messages, with all their terms."""
    counts = messages.n_terms[slots]
    n, k = len(slots), int(counts.sum(dtype=np.int64))
    terms, owners = np.empty(k, np.int32), np.empty(k, np.int32)
    boxes = messages.boxes[slots]
    is_point = (boxes[:, 0] == boxes[:, 2]) & (boxes[:, 1] == boxes[:, 3])
    batch = Batch(slots, np.empty((n, 4), np.uint32), is_point, terms, owners)
    _fill(messages, codes, batch)
    if _FEW * k < n_terms:
        order = np.argsort(terms, kind="stable")
        return batch._replace(terms=terms[order], owners=owners[order])
    ordered = batch._replace(terms=np.empty(k, np.int32), owners=np.empty(k, np.int32))
    _sort(batch, ordered, np.zeros(n_terms + 1, np.int32))
    return ordered


@lean_kernel
def _fill(messages, codes, batch):
    k = 0
    for i in range(len(batch.slots)):
        slot = batch.slots[i]
        first, count, entry = messages.offsets[slot], messages.n_terms[slot], batch.entries[i]
        entry[CORNER] = corner_code(codes, messages.boxes[slot, 0], messages.boxes[slot, 1])
        entry[OTHER_CORNER] = corner_code(codes, messages.boxes[slot, 2], messages.boxes[slot, 3])
        entry[SIGNATURE], entry[NUMBER] = signature(messages.terms, first, count), slot
        for at in range(first, first + count):
            batch.terms[k], batch.owners[k] = messages.terms[at], i
            k += 1


@inline_kernel
def message_entry(batch, i):
    """The entry of message i of a batch."""
    own = batch.entries[i]
    return Entry(own[CORNER], own[OTHER_CORNER], own[SIGNATURE], own[NUMBER])


@lean_kernel
def _sort(batch, ordered, starts):
    """Counting sort of the postings by term. `starts` is zero, and one longer than there are terms."""
    for k in range(len(batch.terms)):
        starts[batch.terms[k] + 1] += 1
    for term in range(len(starts) - 1):
        starts[term + 1] += starts[term]
    for k in range(len(batch.terms)):
        term = batch.terms[k]
        ordered.terms[starts[term]], ordered.owners[starts[term]] = term, batch.owners[k]
        starts[term] += 1
