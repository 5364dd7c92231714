"""One message at a time: the same kernels, all their arrays handed over as one pointers."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.pointers import pointers_to
from nearcast.indexes.pyramid.run import RunArrays
from nearcast.indexes.pyramid.scan import Desks, match_points, match_run, new_desks
from nearcast.matching.store import RowArrays, RowStore
from nearcast.model import MessageBatch
from nearcast.structures.keyword_lists import KeywordLists, match_lists
from nearcast.structures.postings import PostingArrays

# A pointers names the store's arrays, the owners, the marks of both parts, the young part's arrays, what the short way
# works with, then each run's arrays.
_OWNERS, _WORD_MARKS, _BYTE_MARKS, _YOUNG, _LISTS = 6, 7, 8, 9, 17
_PLACES, _COUNTS, _NUMBERS, _BOX, _PICKS, _LATE, _ROWS, _IDS, _RUNS = range(_LISTS + 1, _LISTS + 10)
_RUN_SIZE = len(RunArrays._fields)
_LONGEST, _MOST = 64, 2048  # terms, and entries, of a message that goes the short way

if not JIT_DISABLED:
    from nearcast.arrays.pointers import (
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
    from nearcast.structures.row_pointers import unsafe_rows

    @kernel
    def _match_point(pointers, terms, x, y, room):
        """The owners of all rows that hold on one message at a point, unordered; lists read; entries looked at."""
        starts = np.array((0, len(terms)))
        message = MessageBatch(starts, terms, starts, np.array(((x, y, x, y),)), starts)  # ids and times are not read
        store, owners, young = unsafe_rows(pointers), unsafe_int64(pointers, _OWNERS), _young_of(pointers)
        bounds = np.zeros(2, np.int64)
        ids, nodes, seen = np.empty(0, np.int64), 0, 0
        for first in range(_RUNS, len(pointers), _RUN_SIZE):
            marks = unsafe_words(pointers, _WORD_MARKS)
            rows, run_nodes, run_seen = match_run(_run_of(pointers, first), store, message, marks, bounds, room)
            ids, nodes, seen = _with_owners(ids, owners, rows), nodes + run_nodes, seen + run_seen
        if len(young.counts):
            marks = unsafe_uint8(pointers, _BYTE_MARKS)
            rows, run_nodes, run_seen = match_lists(young, store, message, marks, bounds)
            ids, nodes, seen = _with_owners(ids, owners, rows), nodes + run_nodes, seen + run_seen
        return ids, nodes, seen

    @kernel
    def _match_short(pointers, terms, x, y):
        """The same where nothing is young, without allocating: the ids are left in their buffer. Return how many, or -1
        if they do not fit; lists read; entries looked at.
        """
        if len(terms) > _LONGEST:
            return -1, 0, 0
        store, owners, marks = (
            unsafe_rows(pointers),
            unsafe_int64(pointers, _OWNERS),
            unsafe_words(pointers, _WORD_MARKS),
        )
        picks, late = unsafe_uint32(pointers, _PICKS), unsafe_words(pointers, _LATE)
        rows, ids, numbers = (
            unsafe_int32(pointers, _ROWS),
            unsafe_int64(pointers, _IDS),
            unsafe_int64(pointers, _NUMBERS),
        )
        desks = Desks(
            unsafe_int64(pointers, _LISTS).reshape((4, -1, 3)),
            unsafe_int64(pointers, _PLACES).reshape((4, -1)),
            unsafe_int64(pointers, _COUNTS).reshape((4, -1)),
        )
        term_starts, starts, work, box = numbers[:2], numbers[2:4], numbers[4:], unsafe_boxes(pointers, _BOX)
        box[0, 0], box[0, 1], box[0, 2], box[0, 3] = x, y, x, y
        term_starts[1], work[0], work[1] = len(terms), 0, 0
        message, n = MessageBatch(starts, terms, term_starts, box, starts), 0  # ids and times are not read
        for first in range(_RUNS, len(pointers), _RUN_SIZE):
            run = _run_of(pointers, first)
            done = match_points(run, store, (message, -4), desks, (marks, picks, late), starts, (rows, work))
            if done < 1 or n + starts[1] > len(ids):
                return -1, 0, 0
            for k in range(starts[1]):
                ids[n + k] = owners[rows[k]]
            n += starts[1]
        return n, work[0], work[1]

    @kernel
    def _young_of(pointers):
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
    def _run_of(pointers, first):
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
    """The arguments of the kernels for one thread, and by what to see that they are outdated."""

    store: RowArrays
    n_terms: int
    pointers: np.ndarray
    named: tuple[np.ndarray, ...]
    room: np.ndarray
    ids: np.ndarray | None  # where the short way leaves them; None while there is a young part


def _packed(runs: Iterable[RunArrays], young: PostingArrays, store: RowStore) -> PackedArguments:
    marks = np.zeros((store.n_terms >> 6) + 1, np.uint64), np.zeros(store.n_terms, np.uint8)
    short = _short_room()
    named = (*store.arrays, store.owner_ids, *marks, *young, *short, *(array for run in runs for array in run))
    ids = None if len(young.counts) else short[-1]
    return PackedArguments(store.arrays, store.n_terms, pointers_to(named), named, np.empty(4096, np.int32), ids)


def _short_room() -> tuple[np.ndarray, ...]:
    """The arrays of desks, numbers, a box, picks, late rows, rows and ids."""
    desks = new_desks(np.array((0, _LONGEST)), 1)
    assert desks.lists.shape[::2] == (4, 3)  # as `_match_short` takes them
    rows = (np.zeros(_MOST, dtype) for dtype in (np.uint32, np.uint64, np.int32, np.int64))
    return *(each.reshape(-1) for each in desks), np.zeros(6, np.int64), np.zeros((1, 4)), *rows


class PointMatcher(threading.local):
    """A pointers for each thread, since it names the marks on which a message is worked.

    The method takes new tickets whenever its rows change; here it is only seen when rows elsewhere change the store.
    """

    arguments: PackedArguments | None = None

    def match(
        self, runs: dict[int, RunArrays], young: KeywordLists, store: RowStore, terms: np.ndarray, x: float, y: float
    ) -> tuple[np.ndarray, int, int]:
        """The owners of the rows that hold on a message, unordered, and the work: lists, entries."""
        arguments = self.arguments
        if arguments is None or arguments.store is not store.arrays or arguments.n_terms != store.n_terms:
            arguments = self.arguments = _packed(runs.values(), young.arrays, store)
        if arguments.ids is not None:
            n, nodes, seen = _match_short(arguments.pointers, terms, float(x), float(y))
            if n >= 0:
                return arguments.ids[:n].copy(), nodes, seen
        return _match_point(arguments.pointers, terms, float(x), float(y), arguments.room)
