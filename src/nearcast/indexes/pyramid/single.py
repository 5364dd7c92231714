"""One message at a time: the same kernels, their arrays handed over as a ticket."""

from __future__ import annotations

import threading

import numpy as np

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.ticket import ticket_for
from nearcast.indexes.pyramid.run import RunArrays
from nearcast.indexes.pyramid.scan import match_run
from nearcast.matching.store import RowArrays
from nearcast.model import MessageBatch

if not JIT_DISABLED:
    from nearcast.arrays.ticket import (
        unsafe_boxes,
        unsafe_floats,
        unsafe_int32,
        unsafe_int64,
        unsafe_uint8,
        unsafe_uint16,
        unsafe_uint32,
        unsafe_word_pairs,
        unsafe_words,
    )

    @kernel
    def _match_ticket(ticket, terms, place, room):  # type: ignore[no-untyped-def]
        """The rows of one run that hold on one message: (rows, lists read, entries looked at)."""
        run = RunArrays(
            unsafe_word_pairs(ticket, 0),
            unsafe_uint32(ticket, 1),
            unsafe_words(ticket, 2),
            unsafe_words(ticket, 3),
            unsafe_floats(ticket, 4),
            unsafe_floats(ticket, 5),
        )
        store = RowArrays(
            unsafe_boxes(ticket, 6),
            unsafe_int64(ticket, 7),
            unsafe_uint16(ticket, 8),
            unsafe_uint16(ticket, 9),
            unsafe_uint8(ticket, 10),
            unsafe_int32(ticket, 11),
        )
        nothing = unsafe_int64(ticket, 13)
        starts = np.zeros(2, np.int64)
        starts[1] = len(terms)
        message = MessageBatch(nothing, terms, starts, place, nothing)
        return match_run(run, store, message, unsafe_words(ticket, 12), np.zeros(2, np.int64), room)


class Tickets(threading.local):
    """A ticket for each run, of this thread's own: it names the marks on which a message is worked."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[RunArrays, RowArrays, np.ndarray, np.ndarray]] = {}
        self._nothing = np.zeros(1, np.int64)
        self._room = np.empty(4096, np.int32)

    def match(
        self, run: RunArrays, store: RowArrays, n_terms: int, message: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, int, int]:
        """The rows of a run that hold on a message = (terms, place float64[1,4]), and the work: lists, entries."""
        known = self._made.get(id(run))
        if known is None or known[0] is not run or known[1] is not store or len(known[2]) * 64 < n_terms:
            marks = np.zeros((n_terms >> 6) + 1, np.uint64)
            known = (run, store, marks, ticket_for((*run, *store, marks, self._nothing)))
            self._made = {key: made for key, made in self._made.items() if made[1] is store}  # forget the outdated
            self._made[id(run)] = known
        rows, nodes, seen = _match_ticket(known[3], message[0], message[1], self._room)
        if len(rows) > len(self._room):
            self._room = np.empty(2 * len(rows), np.int32)
        return rows, nodes, seen
