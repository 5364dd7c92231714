"""One message at a time: the same kernels, all their arrays handed over as one ticket."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.ticket import ticket_for
from nearcast.indexes.pyramid.run import RunArrays
from nearcast.indexes.pyramid.scan import match_run
from nearcast.matching.keyword_lists import match_lists
from nearcast.matching.postings import PostingArrays
from nearcast.matching.store import RowArrays, RowStore
from nearcast.model import MessageBatch

# A ticket names the store's arrays, the owners, the marks of both parts, the young part's arrays, then each run's.
_OWNERS, _WORD_MARKS, _BYTE_MARKS, _YOUNG, _RUNS = 6, 7, 8, 9, 17
_RUN_SIZE = len(RunArrays._fields)

if not JIT_DISABLED:
    from nearcast.arrays.ticket import (
        unsafe_floats,
        unsafe_int32,
        unsafe_int64,
        unsafe_small_boxes,
        unsafe_uint8,
        unsafe_uint32,
        unsafe_word_pairs,
        unsafe_words,
    )
    from nearcast.matching.row_ticket import unsafe_rows

    @kernel
    def _match_ticket(ticket, terms, x, y, room):  # type: ignore[no-untyped-def]
        """The owners of all rows that hold on one message at a point, unordered; lists read; entries looked at."""
        starts = np.array((0, len(terms)))
        message = MessageBatch(starts, terms, starts, np.array(((x, y, x, y),)), starts)  # ids and times are not read
        store, owners, young = unsafe_rows(ticket), unsafe_int64(ticket, _OWNERS), _young_of(ticket)
        bounds = np.zeros(2, np.int64)
        ids, nodes, seen = np.empty(0, np.int64), 0, 0
        for first in range(_RUNS, len(ticket), _RUN_SIZE):
            marks = unsafe_words(ticket, _WORD_MARKS)
            rows, run_nodes, run_seen = match_run(_run_of(ticket, first), store, message, marks, bounds, room)
            ids, nodes, seen = _with_owners(ids, owners, rows), nodes + run_nodes, seen + run_seen
        if len(young.counts):
            marks = unsafe_uint8(ticket, _BYTE_MARKS)
            rows, run_nodes, run_seen = match_lists(young, store, message, marks, bounds)
            ids, nodes, seen = _with_owners(ids, owners, rows), nodes + run_nodes, seen + run_seen
        return ids, nodes, seen

    @kernel
    def _young_of(ticket):  # type: ignore[no-untyped-def]
        return PostingArrays(
            unsafe_int64(ticket, _YOUNG),
            unsafe_int32(ticket, _YOUNG + 1),
            unsafe_int32(ticket, _YOUNG + 2),
            unsafe_int32(ticket, _YOUNG + 3),
            unsafe_int32(ticket, _YOUNG + 4),
            unsafe_small_boxes(ticket, _YOUNG + 5),
            unsafe_int32(ticket, _YOUNG + 6),
            unsafe_int32(ticket, _YOUNG + 7),
        )

    @kernel
    def _run_of(ticket, first):  # type: ignore[no-untyped-def]
        return RunArrays(
            unsafe_word_pairs(ticket, first),
            unsafe_uint32(ticket, first + 1),
            unsafe_uint32(ticket, first + 2),
            unsafe_floats(ticket, first + 3),
            unsafe_floats(ticket, first + 4),
        )

    @kernel
    def _with_owners(ids, owners, rows):  # type: ignore[no-untyped-def]
        """A new array of these ids and the owners of these rows."""
        out = np.empty(len(ids) + len(rows), np.int64)
        out[: len(ids)] = ids
        for k in range(len(rows)):
            out[len(ids) + k] = owners[rows[k]]
        return out


class _Desk(NamedTuple):
    """What a thread matches with: the ticket, the arrays that it names, and by what to tell that they are outdated."""

    store: RowArrays
    n_terms: int
    ticket: np.ndarray
    named: tuple[np.ndarray, ...]
    room: np.ndarray


def _laid(runs: Iterable[RunArrays], young: PostingArrays, store: RowStore) -> _Desk:
    marks = np.zeros((store.n_terms >> 6) + 1, np.uint64), np.zeros(store.n_terms, np.uint8)
    named = (*store.arrays, store.owner_ids, *marks, *young, *(array for run in runs for array in run))
    return _Desk(store.arrays, store.n_terms, ticket_for(named), named, np.empty(4096, np.int32))


class Tickets(threading.local):
    """A ticket for each thread, since it names the marks on which a message is worked.

    The method takes new tickets whenever its rows change; here it is only seen when rows elsewhere change the store.
    """

    desk: _Desk | None = None

    def match(
        self, runs: dict[int, RunArrays], young: PostingArrays, store: RowStore, terms: np.ndarray, x: float, y: float
    ) -> tuple[np.ndarray, int, int]:
        """The owners of the rows that hold on a message, unordered, and the work: lists, entries."""
        desk = self.desk
        if desk is None or desk.store is not store.arrays or desk.n_terms != store.n_terms:
            desk = self.desk = _laid(runs.values(), young, store)
        return _match_ticket(desk.ticket, terms, float(x), float(y), desk.room)  # type: ignore[no-any-return]
