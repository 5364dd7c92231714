"""The index of rows that the default method uses: lists by term and number of later terms, in buckets by norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.structures.arena import has_many_holes
from nearcast.topk.dissemination.contract import Concerned, Dissemination
from nearcast.topk.dissemination.norm_lists.filing import (
    Scales,
    allot,
    clear_tables,
    count_slots,
    file_rows,
    refile_rows,
    unfile_rows,
)
from nearcast.topk.dissemination.norm_lists.lists import CLASSES, END, N_LISTS, NEVER, NONE, USED, Lists, Slots
from nearcast.topk.dissemination.norm_lists.scan import (
    N_PROBE,
    SCANNED,
    SCORED,
    STRIDE,
    MessageTerms,
    Scratch,
    read_message,
    search_lists,
    set_probe,
)
from nearcast.topk.dissemination.verify import keep_concerned
from nearcast.topk.embedding import Embedding
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric, clear_values, set_values
from nearcast.topk.window import Window

_SLOT_TYPES: tuple[Any, ...] = (*[np.float32] * 7, np.int32, np.uint16)


class NormLists(Dissemination):
    """Lists of slots; see lists.py."""

    name = "norm-lists"

    def __init__(self, rows: TopRows, metric: Metric, embedding: Embedding) -> None:
        super().__init__(rows, metric)
        self.embedding = embedding
        self._weights = np.empty(0)
        self._row_terms = np.empty(0, np.int32)  # scratch: the terms of one row
        self._clear()
        counters = np.zeros(2, np.int64)
        hits, rows_seen, candidates = np.zeros(STRIDE, np.uint8), np.empty(0, np.int32), np.empty(1024, np.int32)
        self._scratch = Scratch(np.zeros(N_PROBE, np.float32), hits, rows_seen, candidates, counters)
        self._message = _message_of(64)
        self._scores = np.empty(0)

    def _clear(self) -> None:
        """Forget all lists."""
        self._lists = Lists(
            directory=np.empty(0, np.int32),
            starts=np.empty(0, np.int64),
            rooms=np.empty(0, np.int32),
            counts=np.empty(0, np.int32),
            weights=np.empty(0, np.float32),
            tables=np.empty(0, np.int32),
            ends=np.empty((0, NEVER + 1), np.int32),
            own=np.empty(0, np.int32),
        )
        self._slots = Slots(*(np.empty(1, dtype) for dtype in _SLOT_TYPES))
        self._head = np.zeros(4, np.int64)

    # -- rows

    def add(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        self._fit(weights)
        is_many = 2 * len(numbers) > len(self.rows)
        if is_many or has_many_holes(int(self._head[END]), int(self._head[USED])):
            self._build(self.rows.live_rows())
        else:
            self._file(numbers)

    def _fit(self, weights: np.ndarray) -> None:
        """Make room for the terms and rows that there are."""
        self._weights, lists = weights, self._lists
        self._lists = lists._replace(
            directory=grown(lists.directory, CLASSES * len(weights), fill=NONE),
            own=grown(lists.own, len(self.rows.arrays.terms)),
        )
        self._scratch = self._scratch._replace(seen=grown(self._scratch.seen, self.rows.high, fill=NONE))
        self._row_terms = grown(self._row_terms, int(self.rows.arrays.n_terms.max(initial=0)))

    def _build(self, rows: np.ndarray) -> None:
        """Make all lists anew, each with room for its rows."""
        self._clear()
        self._fit(self._weights)
        while not count_slots(self._lists, self.rows.arrays, rows, self._weights, self._head):
            n_lists = int(self._head[N_LISTS])
            self._lists.directory[:] = NONE
            self._lists.counts[:] = 0
            self._head[:] = 0
            self._grow_lists(2 * n_lists + int(self.rows.arrays.n_terms[rows].max()) + 1024)
        allot(self._lists, self._head)
        self._grow_lists(len(self._lists.starts))
        clear_tables(self._lists, self._head)
        self._grow_slots(int(self._head[END]) + 2)
        self._file(rows)

    def _grow_lists(self, n: int) -> None:
        lists = self._lists
        names = ("starts", "rooms", "counts", "weights", "tables")
        more = {name: grown(getattr(lists, name), n, fill=0) for name in names}
        n_tables = int(self._head[1]) + max(64, n // 64)
        self._lists = lists._replace(**more, ends=grown(lists.ends, n_tables, fill=0))

    def _grow_slots(self, n: int) -> None:
        self._slots = Slots(*(grown(column, n) for column in self._slots))

    def _file(self, numbers: np.ndarray) -> None:
        done, arrays, scales = 0, self.rows.arrays, Scales(self._weights, self.embedding)
        while True:
            done += int(file_rows(self._lists, self._slots, self._head, arrays, numbers[done:], scales))
            if done == len(numbers):
                return
            extra = int(arrays.n_terms[numbers[done]])
            self._grow_lists(int(self._head[N_LISTS]) * 3 // 2 + extra + 64)
            self._grow_slots(len(self._slots.rows) * 3 // 2 + 2 * int(self._longest()) + 8 * extra)

    def _longest(self) -> int:
        return int(self._lists.counts[: self._head[N_LISTS]].max(initial=0))

    def remove(self, numbers: np.ndarray) -> None:
        unfile_rows(self._lists, self._slots, self.rows.arrays, numbers, self._weights)

    def thetas_changed(self, numbers: np.ndarray) -> None:
        arrays, slack = self.rows.arrays, self.embedding.slack
        refile_rows(self._lists, self._slots, arrays, numbers, self._weights, slack, self._row_terms)

    def terms_moved(self, kept: np.ndarray) -> None:
        self._lists.own[: len(kept)] = self._lists.own[kept]

    def renumber(self) -> None:
        self._scratch.seen[:] = NONE

    # -- messages

    def find(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        ring, at = window.ring, arrival & (len(window.ring.ids) - 1)
        if len(weights) * CLASSES > len(self._lists.directory):
            self._fit(weights)
        n_terms, place = int(ring.counts[at]), ring.places[at]
        if n_terms > len(self._message.terms):
            self._message = _message_of(2 * n_terms)
        read_message(ring, arrival, weights, self._message)
        set_probe(self.embedding, place[0], place[1], self._scratch.probe)
        n = self._search(n_terms, arrival)
        values = self.values_of(len(weights))
        set_values(ring, arrival, values)
        self._scores = grown(self._scores, n)
        candidates = self._scratch.candidates
        n = keep_concerned(self.rows.arrays, self.metric, values, place, candidates, n, self._scores)
        clear_values(ring, arrival, values)
        return Concerned(candidates[:n], self._scores[:n])

    def _search(self, n_terms: int, arrival: int) -> int:
        while True:
            n = int(search_lists(self._lists, self._slots, self._message, n_terms, arrival, self._scratch))
            if n >= 0:
                self._scratch.counters[SCORED] += n
                return n
            candidates = np.empty(2 * len(self._scratch.candidates), np.int32)
            self._scratch = self._scratch._replace(candidates=candidates)
            self._scratch.seen[:] = NONE

    @property
    def nbytes(self) -> int:
        arrays = (*self._lists, *self._slots, self._scratch.seen)
        return int(sum(array.nbytes for array in arrays))

    @property
    def stats(self) -> dict[str, int]:
        counters = self._scratch.counters
        return {"scanned": int(counters[SCANNED]), "scored": int(counters[SCORED])}


def _message_of(n: int) -> MessageTerms:
    return MessageTerms(np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty((n, CLASSES)))
