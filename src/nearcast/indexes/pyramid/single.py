"""Matching of one point message: the same kernels as for a batch, with all arrays passed as pointers."""

from __future__ import annotations

import threading

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.pointers import (
    PackedArrays,
    unsafe_boxes,
    unsafe_floats,
    unsafe_int32,
    unsafe_int64,
    unsafe_uint8,
    unsafe_uint32,
    unsafe_word_pairs,
    unsafe_words,
)
from nearcast.indexes.pyramid.run import RunArrays
from nearcast.indexes.pyramid.search import Scratch, match_points, match_run, new_scratch
from nearcast.model import MessageBatch
from nearcast.structures.keyword_lists import match_lists
from nearcast.structures.postings import PostingArrays, unsafe_postings
from nearcast.structures.row_pointers import (
    FIRST_OWN,
    delivered_ids,
    in_order,
    one_message,
    unsafe_rows,
    write_delivered,
)

# Positions after the store's arrays: the young part, then the arrays of each run.
YOUNG = FIRST_OWN
_RUNS = YOUNG + len(PostingArrays._fields)
_RUN_SIZE = len(RunArrays._fields)

# Positions of a thread's working memory: the marks of both parts, a Scratch, the message, and its results.
_BIT_MARKS, _BYTE_MARKS, _LISTS, _PLACES, _COUNTS, _NUMBERS, _BOX, _PICKS, _UNVERIFIED, _ROWS, _IDS = range(11)
_MOST_TERMS, _MOST_ENTRIES = 64, 2048  # of a message that `_match_short` takes


@kernel
def match_any(pointers, memory, terms, keys, x, y, time):
    """The subscriptions of one point message, ascending; lists read; entries compared. `keys` are the terms whose lists
    are read: the message's terms, or the key of rows without terms.
    """
    message, store, young = one_message(keys, x, y, time), unsafe_rows(pointers), unsafe_postings(pointers, YOUNG)
    bounds, room = np.zeros(2, np.int64), np.empty(4096, np.int32)
    found, nodes, seen = np.empty(0, np.int32), 0, 0
    for first in range(_RUNS, len(pointers), _RUN_SIZE):
        marks = unsafe_words(memory, _BIT_MARKS)
        rows, run_nodes, run_seen = match_run(_unsafe_run(pointers, first), store, message, marks, bounds, room)
        found, nodes, seen = np.concatenate((found, rows)), nodes + run_nodes, seen + run_seen
    if len(young.heads):
        marks = unsafe_uint8(memory, _BYTE_MARKS)
        rows, run_nodes, run_seen = match_lists(young, store, message, marks, bounds)
        found, nodes, seen = np.concatenate((found, rows)), nodes + run_nodes, seen + run_seen
    return delivered_ids(pointers, one_message(terms, x, y, time), found), nodes, seen


@kernel
def match_short(pointers, memory, terms, keys, x, y, time):
    """The same almost without allocating: the ids are written to the array _IDS. Return how many there are, or -1 if
    the message or its result is too long; lists read; entries compared.
    """
    if len(keys) > _MOST_TERMS:
        return -1, 0, 0
    store, scratch, young = unsafe_rows(pointers), _unsafe_scratch(memory), unsafe_postings(pointers, YOUNG)
    rows, ids = unsafe_int32(memory, _ROWS), unsafe_int64(memory, _IDS)
    message, starts = _message_in(memory, keys, x, y, time), unsafe_int64(memory, _NUMBERS)[2:4]
    whole = _with_terms(memory, message, terms)
    scratch.work[0], scratch.work[1], n = 0, 0, 0
    for first in range(_RUNS, len(pointers), _RUN_SIZE):
        done = match_points(_unsafe_run(pointers, first), store, message, -4, scratch, starts, rows)
        if done < 1 or n + starts[1] > len(ids):
            return -1, 0, 0
        n = write_delivered(pointers, whole, rows, starts[1], ids, n)
    if len(young.heads):
        own, nodes, seen = match_lists(young, store, message, unsafe_uint8(memory, _BYTE_MARKS), starts)
        if n + len(own) > len(ids):
            return -1, 0, 0
        n = write_delivered(pointers, whole, own, len(own), ids, n)
        scratch.work[0] += nodes
        scratch.work[1] += seen
    return in_order(ids, n), scratch.work[0], scratch.work[1]


@kernel
def _message_in(memory, terms, x, y, time):
    """The message as a batch, in a thread's working memory. Its id is not read."""
    numbers, box = unsafe_int64(memory, _NUMBERS), unsafe_boxes(memory, _BOX)
    box[0, 0], box[0, 1], box[0, 2], box[0, 3] = x, y, x, y
    numbers[1], numbers[6] = len(terms), time
    return MessageBatch(numbers, terms, numbers[:2], box, numbers[6:7])


@kernel
def _with_terms(memory, message, terms):
    """The message with these terms."""
    starts = unsafe_int64(memory, _NUMBERS)[7:9]
    starts[1] = len(terms)
    return MessageBatch(message.ids, terms, starts, message.boxes, message.times)


@kernel
def _unsafe_scratch(memory):
    return Scratch(
        unsafe_int64(memory, _LISTS).reshape((4, -1, 3)),
        unsafe_int64(memory, _PLACES).reshape((4, -1)),
        unsafe_int64(memory, _COUNTS).reshape((4, -1)),
        unsafe_int64(memory, _NUMBERS)[4:6],
        unsafe_words(memory, _BIT_MARKS),
        unsafe_uint32(memory, _PICKS),
        unsafe_words(memory, _UNVERIFIED),
    )


@kernel
def _unsafe_run(pointers, first):
    return RunArrays(
        unsafe_word_pairs(pointers, first),
        unsafe_uint32(pointers, first + 1),
        unsafe_uint32(pointers, first + 2),
        unsafe_floats(pointers, first + 3),
        unsafe_floats(pointers, first + 4),
    )


PointMessage = tuple[np.ndarray, float, float, int]
"""Terms, x, y, time."""


class PointMemory(threading.local):
    """The working memory of each thread, for all versions of a pyramid. Searches leave the marks zero."""

    _n_terms = -1

    def match(
        self, packed: PackedArrays, n_terms: int, message: PointMessage, keys: np.ndarray
    ) -> tuple[np.ndarray, int, int]:
        """The subscriptions of one point message, ascending; lists read; entries compared."""
        if self._n_terms < n_terms:
            self._allocate(n_terms + n_terms // 2)
        pointers, memory = packed.pointers, self._memory
        terms, x, y, time = message
        n, nodes, seen = match_short(pointers, memory, terms, keys, float(x), float(y), time)
        if n >= 0:
            return self._ids[:n].copy(), nodes, seen
        return match_any(pointers, memory, terms, keys, float(x), float(y), time)

    def _allocate(self, n_terms: int) -> None:
        marks = np.zeros((n_terms >> 6) + 1, np.uint64)
        scratch = new_scratch(np.array((0, _MOST_TERMS)), marks)
        assert scratch.lists.shape[::2] == (4, 3)  # the shape that `_unsafe_scratch` gives them
        self._ids = np.zeros(_MOST_ENTRIES, np.int64)
        results = (*(np.zeros(_MOST_ENTRIES, dtype) for dtype in (np.uint32, np.uint64, np.int32)), self._ids)
        slots, message = (each.reshape(-1) for each in scratch[:3]), (np.zeros(9, np.int64), np.zeros((1, 4)))
        self._packed = PackedArrays((marks, np.zeros(n_terms + 1, np.uint8), *slots, *message, *results))
        self._memory, self._n_terms = self._packed.pointers, n_terms
