"""The index of rows that the default method uses: lists by term and number of later terms, in buckets by norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.structures.arena import has_many_holes
from nearcast.topk.buffered.exact import ScoreInputs
from nearcast.topk.dissemination.contract import Concerned, Dissemination
from nearcast.topk.dissemination.norm_lists.filing import (
    Scales,
    allot,
    clear_tables,
    count_slots,
    file_rows,
    refile_rows,
    slack_of,
    unfile_rows,
)
from nearcast.topk.dissemination.norm_lists.lists import (
    CLASSES,
    END,
    N_LISTS,
    N_TABLES,
    NEVER,
    NONE,
    USED,
    Lists,
    Slots,
)
from nearcast.topk.dissemination.norm_lists.scan import (
    N_PROBE,
    SCANNED,
    SCORED,
    STRIDE,
    NormIndex,
    Scratch,
    find_rows,
    message_of,
)
from nearcast.topk.embedding import Embedding
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window

_SLOT_TYPES: tuple[Any, ...] = (
    *(np.uint16, np.uint16, np.int16, np.uint16),
    *(np.int16, np.int16, np.int16),
    *(np.int32, np.uint16),
)


_LIST_COLUMNS = ("starts", "rooms", "counts", "tables")


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
        by_row = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
        self.scratch = Scratch(np.zeros(N_PROBE, np.float32), np.zeros(STRIDE, np.uint8), *by_row, counters)
        self.message = message_of(64)
        self._scores = np.empty(0)

    def _clear(self) -> None:
        """Forget all lists."""
        self.lists = Lists(
            directory=np.empty(0, np.int32),
            starts=np.empty(0, np.int64),
            rooms=np.empty(0, np.int32),
            counts=np.empty(0, np.int32),
            tables=np.empty(0, np.int32),
            ends=np.empty((0, NEVER + 1), np.int32),
            own=np.empty(0, np.int32),
        )
        self.slots = Slots(*(np.empty(1, dtype) for dtype in _SLOT_TYPES))
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
        self._weights, lists = weights, self.lists
        self.lists = lists._replace(
            directory=grown(lists.directory, CLASSES * len(weights), fill=NONE),
            own=grown(lists.own, len(self.rows.arrays.terms)),
        )
        high = self.rows.high
        self.scratch = self.scratch._replace(
            seen=grown(self.scratch.seen, high, fill=NONE),
            candidates=grown(self.scratch.candidates, high),
            squares=grown(self.scratch.squares, high),
        )
        self._scores = grown(self._scores, high)
        self._row_terms = grown(self._row_terms, int(self.rows.arrays.n_terms.max(initial=0)))

    def _build(self, rows: np.ndarray) -> None:
        """Make all lists anew, each with room for its rows."""
        self._clear()
        self._fit(self._weights)
        while not count_slots(self.lists, self.rows.arrays, rows, self._weights, self._head):
            n_lists = int(self._head[N_LISTS])
            self.lists.directory[:] = NONE
            self.lists.counts[:] = 0
            self._head[:] = 0
            self._grow_lists(2 * n_lists + int(self.rows.arrays.n_terms[rows].max()) + 1024)
        allot(self.lists, self._head)
        self._trim_lists()
        clear_tables(self.lists, self._head)
        self._grow_slots(int(self._head[END]) + 2)
        self._file(rows)

    def _grow_lists(self, n: int) -> None:
        lists = self.lists
        more = {name: grown(getattr(lists, name), n, fill=0) for name in _LIST_COLUMNS}
        n_tables = int(self._head[N_TABLES]) + max(64, n // 64)
        self.lists = lists._replace(**more, ends=grown(lists.ends, n_tables, fill=0))

    def _trim_lists(self) -> None:
        """Give back what `_build` reserved for lists that there are not, but for a few."""
        n_lists, lists = int(self._head[N_LISTS]), self.lists
        n = min(n_lists + n_lists // 16 + 64, len(lists.starts))
        fitted = {name: getattr(lists, name)[:n].copy() for name in _LIST_COLUMNS}
        n_tables = int(self._head[N_TABLES]) + 64
        self.lists = lists._replace(**fitted, ends=np.zeros((n_tables, NEVER + 1), np.int32))

    def _grow_slots(self, n: int) -> None:
        """Make the slots so many. Half as many again, as elsewhere, would be a fifth of all memory."""
        old = self.slots
        if n > len(old.rows):
            self.slots = Slots(*(np.empty(n, column.dtype) for column in old))
            for new, column in zip(self.slots, old, strict=True):
                new[: len(column)] = column

    def _file(self, numbers: np.ndarray) -> None:
        done, arrays, scales = 0, self.rows.arrays, Scales(self._weights, self.embedding)
        while True:
            done += int(file_rows(self.lists, self.slots, self._head, arrays, numbers[done:], scales))
            if done == len(numbers):
                return
            extra = int(arrays.n_terms[numbers[done]])
            self._grow_lists(int(self._head[N_LISTS]) * 9 // 8 + extra + 64)
            self._grow_slots(len(self.slots.rows) * 9 // 8 + 2 * int(self._longest()) + 8 * extra)

    def _longest(self) -> int:
        return int(self.lists.counts[: self._head[N_LISTS]].max(initial=0))

    def remove(self, numbers: np.ndarray) -> None:
        unfile_rows(self.lists, self.slots, self.rows.arrays, numbers, self._weights)

    def thetas_changed(self, numbers: np.ndarray) -> None:
        arrays, slack = self.rows.arrays, slack_of(self.embedding)
        refile_rows(self.lists, self.slots, arrays, numbers, self._weights, slack, self._row_terms)

    def terms_moved(self, kept: np.ndarray) -> None:
        self.lists.own[: len(kept)] = self.lists.own[kept]

    def renumber(self) -> None:
        self.scratch.seen[:] = NONE

    # -- messages

    def expect(self, weights: np.ndarray, n_terms: int) -> None:
        """Make room for messages of up to so many terms, with terms that have weights."""
        if len(weights) * CLASSES > len(self.lists.directory):
            self._fit(weights)
        if n_terms > len(self.message.terms):
            self.message = message_of(2 * n_terms)

    def find(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        ring = window.ring
        self.expect(weights, int(ring.counts[arrival & (len(ring.ids) - 1)]))
        inputs = ScoreInputs(ring, self.rows.arrays, self.metric)
        n = int(find_rows(self.index(weights), inputs, arrival))
        return Concerned(self.scratch.candidates[:n], self._scores[:n])

    def index(self, weights: np.ndarray) -> NormIndex:
        """What a search reads. `expect` was called for its messages."""
        own = (self.message, self.scratch, self.values_of(len(weights)), self._scores, self._row_terms)
        return NormIndex(self.lists, self.slots, weights, self.embedding, *own)

    @property
    def nbytes(self) -> int:
        arrays = (*self.lists, *self.slots, self.scratch.seen)
        return int(sum(array.nbytes for array in arrays))

    @property
    def stats(self) -> dict[str, int]:
        counters = self.scratch.counters
        return {"scanned": int(counters[SCANNED]), "scored": int(counters[SCORED])}
