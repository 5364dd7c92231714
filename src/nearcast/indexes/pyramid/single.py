"""Matching of one point message: the same kernels as for a batch, with all arrays passed as pointers."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.pointers import (
    pointers_to,
    unsafe_boxes,
    unsafe_floats,
    unsafe_int32,
    unsafe_int64,
    unsafe_small_boxes,
    unsafe_uint8,
    unsafe_uint32,
    unsafe_word_pairs,
    unsafe_words,
)
from nearcast.indexes.pyramid.run import RunArrays
from nearcast.indexes.pyramid.search import Scratch, match_points, match_run, new_scratch
from nearcast.matching.store import RowArrays, RowStore
from nearcast.model import MessageBatch
from nearcast.structures.keyword_lists import KeywordLists, match_lists
from nearcast.structures.postings import PostingArrays
from nearcast.structures.row_pointers import FIRST_OWN, store_arrays, unsafe_owners, unsafe_rows

# Positions after the store's arrays: the marks of both parts, the arrays of the young part, the arrays that
# `_match_short` works with (a Scratch, the message, and its results), and the arrays of each run.
_BIT_MARKS, _BYTE_MARKS, _YOUNG = range(FIRST_OWN, FIRST_OWN + 3)
_SHORT = _YOUNG + len(PostingArrays._fields)
_LISTS, _PLACES, _COUNTS, _NUMBERS, _BOX, _PICKS, _UNVERIFIED, _ROWS, _IDS, _RUNS = range(_SHORT, _SHORT + 10)
_RUN_SIZE = len(RunArrays._fields)
_MOST_TERMS, _MOST_ENTRIES = 64, 2048  # of a message that `_match_short` takes


@kernel
def _match_any(pointers, terms, x, y, room):
    """The owners of all rows that match one point message, unordered; lists read; entries compared."""
    starts = np.array((0, len(terms)))
    message = MessageBatch(starts, terms, starts, np.array(((x, y, x, y),)), starts)  # ids and times are not read
    store, owners, young = unsafe_rows(pointers), unsafe_owners(pointers), _unsafe_young(pointers)
    bounds = np.zeros(2, np.int64)
    ids, nodes, seen = np.empty(0, np.int64), 0, 0
    for first in range(_RUNS, len(pointers), _RUN_SIZE):
        marks = unsafe_words(pointers, _BIT_MARKS)
        rows, run_nodes, run_seen = match_run(_unsafe_run(pointers, first), store, message, marks, bounds, room)
        ids, nodes, seen = _with_owners(ids, owners, rows), nodes + run_nodes, seen + run_seen
    if len(young.counts):
        marks = unsafe_uint8(pointers, _BYTE_MARKS)
        rows, run_nodes, run_seen = match_lists(young, store, message, marks, bounds)
        ids, nodes, seen = _with_owners(ids, owners, rows), nodes + run_nodes, seen + run_seen
    return ids, nodes, seen


@kernel
def _match_short(pointers, terms, x, y):
    """The same without allocating, where there is no young part: the ids are written to the array _IDS. Return how
    many there are, or -1 if the message or its result is too long; lists read; entries compared.
    """
    if len(terms) > _MOST_TERMS:
        return -1, 0, 0
    store, owners, scratch = unsafe_rows(pointers), unsafe_owners(pointers), _unsafe_scratch(pointers)
    rows, ids = unsafe_int32(pointers, _ROWS), unsafe_int64(pointers, _IDS)
    numbers, box = unsafe_int64(pointers, _NUMBERS), unsafe_boxes(pointers, _BOX)
    term_starts, starts = numbers[:2], numbers[2:4]
    box[0, 0], box[0, 1], box[0, 2], box[0, 3] = x, y, x, y
    term_starts[1], scratch.work[0], scratch.work[1] = len(terms), 0, 0
    message, n = MessageBatch(starts, terms, term_starts, box, starts), 0  # ids and times are not read
    for first in range(_RUNS, len(pointers), _RUN_SIZE):
        done = match_points(_unsafe_run(pointers, first), store, message, -4, scratch, starts, rows)
        if done < 1 or n + starts[1] > len(ids):
            return -1, 0, 0
        for k in range(starts[1]):
            ids[n + k] = owners[rows[k]]
        n += starts[1]
    return n, scratch.work[0], scratch.work[1]


@kernel
def _unsafe_scratch(pointers):
    return Scratch(
        unsafe_int64(pointers, _LISTS).reshape((4, -1, 3)),
        unsafe_int64(pointers, _PLACES).reshape((4, -1)),
        unsafe_int64(pointers, _COUNTS).reshape((4, -1)),
        unsafe_int64(pointers, _NUMBERS)[4:],
        unsafe_words(pointers, _BIT_MARKS),
        unsafe_uint32(pointers, _PICKS),
        unsafe_words(pointers, _UNVERIFIED),
    )


@kernel
def _unsafe_young(pointers):
    return PostingArrays(
        unsafe_int64(pointers, _YOUNG),
        unsafe_int32(pointers, _YOUNG + 1),
        unsafe_int32(pointers, _YOUNG + 2),
        unsafe_int32(pointers, _YOUNG + 3),
        unsafe_int32(pointers, _YOUNG + 4),
        unsafe_small_boxes(pointers, _YOUNG + 5),
        unsafe_int32(pointers, _YOUNG + 6),
        unsafe_int32(pointers, _YOUNG + 7),
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


@kernel
def _with_owners(ids, owners, rows):
    """A new array of these ids and the owners of these rows."""
    out = np.empty(len(ids) + len(rows), np.int64)
    out[: len(ids)] = ids
    for k in range(len(rows)):
        out[len(ids) + k] = owners[rows[k]]
    return out


class PackedArguments(NamedTuple):
    """The arguments of the kernels for one thread. They are outdated when the store has other arrays or more terms."""

    store: RowArrays
    n_terms: int
    pointers: np.ndarray
    arrays: tuple[np.ndarray, ...]  # what the pointers point to: keeps the memory alive
    room: np.ndarray  # int32[...]  where `_match_any` writes the rows of a run
    ids: np.ndarray | None  # where `_match_short` writes the ids; None while there is a young part


def _packed(runs: Iterable[RunArrays], young: PostingArrays, store: RowStore) -> PackedArguments:
    marks = np.zeros((store.n_terms >> 6) + 1, np.uint64)
    short = _short_arrays(marks)
    byte_marks = np.zeros(store.n_terms, np.uint8)
    arrays = (*store_arrays(store), marks, byte_marks, *young, *short, *(array for run in runs for array in run))
    ids = None if len(young.counts) else short[-1]
    return PackedArguments(store.arrays, store.n_terms, pointers_to(arrays), arrays, np.empty(4096, np.int32), ids)


def _short_arrays(marks: np.ndarray) -> tuple[np.ndarray, ...]:
    """The arrays _LISTS to _IDS."""
    scratch = new_scratch(np.array((0, _MOST_TERMS)), marks)
    assert scratch.lists.shape[::2] == (4, 3)  # the shape that `_unsafe_scratch` gives them
    rows = (np.zeros(_MOST_ENTRIES, dtype) for dtype in (np.uint32, np.uint64, np.int32, np.int64))
    return *(each.reshape(-1) for each in scratch[:3]), np.zeros(6, np.int64), np.zeros((1, 4)), *rows


class PointMatcher(threading.local):
    """Matches one point message at a time. Each thread has its own packed arguments: they contain marks and buffers.

    The method makes a new matcher whenever its rows change. Rows of other structures also change the store's arrays,
    so `match` compares these on every call.
    """

    arguments: PackedArguments | None = None

    def match(
        self, runs: dict[int, RunArrays], young: KeywordLists, store: RowStore, terms: np.ndarray, x: float, y: float
    ) -> tuple[np.ndarray, int, int]:
        """The owners of the rows that match, unordered; lists read; entries compared."""
        arguments = self.arguments
        if arguments is None or arguments.store is not store.arrays or arguments.n_terms != store.n_terms:
            arguments = self.arguments = _packed(runs.values(), young.arrays, store)
        if arguments.ids is not None:
            n, nodes, seen = _match_short(arguments.pointers, terms, float(x), float(y))
            if n >= 0:
                return arguments.ids[:n].copy(), nodes, seen
        return _match_any(arguments.pointers, terms, float(x), float(y), arguments.room)
