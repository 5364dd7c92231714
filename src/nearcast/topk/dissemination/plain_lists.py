"""Plain inverted lists: every row that shares a term with the message is scored. The baseline of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.topk.dissemination.contract import Concerned, Dissemination
from nearcast.topk.dissemination.verify import keep_concerned
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric, clear_values, set_values
from nearcast.topk.window import Window

NONE = -1


class ListArrays(NamedTuple):
    """Doubly linked lists of postings, one list a term. A posting is a position in `TopRows.terms`."""

    heads: np.ndarray  # int32[n_terms]  the first posting of each term, or NONE
    nexts: np.ndarray  # int32[...]
    previous: np.ndarray  # int32[...]  the posting before, or NONE
    rows: np.ndarray  # int32[...]  the row of each posting


class PlainLists(Dissemination):
    """Lists without bounds."""

    name = "plain"

    def __init__(self, rows: TopRows, metric: Metric) -> None:
        super().__init__(rows, metric)
        self._lists = ListArrays(*(np.empty(0, np.int32) for _ in ListArrays._fields))
        self._seen = np.empty(0, np.int32)
        self._is_own = np.empty(0, bool)  # by row number: other rows may be in another index
        self._candidates, self._scores = np.empty(0, np.int32), np.empty(0)
        self._n_scored = 0

    def add(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        arrays, old = self.rows.arrays, self._lists
        heads = grown(old.heads, len(weights), fill=NONE)
        self._lists = ListArrays(heads, *(grown(column, len(arrays.terms), fill=NONE) for column in old[1:]))
        self._seen = grown(self._seen, self.rows.high, fill=NONE)
        self._is_own = grown(self._is_own, self.rows.high, fill=0)
        self._is_own[numbers] = True
        _link(arrays, self._lists, numbers)

    def remove(self, numbers: np.ndarray) -> None:
        self._is_own[numbers] = False
        _unlink(self.rows.arrays, self._lists, numbers)

    def terms_moved(self, kept: np.ndarray) -> None:
        """Link the rows of these lists anew."""
        for column in self._lists:
            column[:] = NONE
        _link(self.rows.arrays, self._lists, np.flatnonzero(self._is_own).astype(np.int32))

    def renumber(self) -> None:
        self._seen[:] = NONE

    def thetas_changed(self, numbers: np.ndarray) -> None:
        pass

    def find(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        self._lists = self._lists._replace(heads=grown(self._lists.heads, len(weights), fill=NONE))
        ring, values = window.ring, self.values_of(len(weights))
        self._candidates = grown(self._candidates, self.rows.high)
        self._scores = grown(self._scores, self.rows.high)
        n = _collect(ring, arrival, self._lists, self._seen, self._candidates)
        self._n_scored += n
        set_values(ring, arrival, values)
        place = ring.places[arrival & (len(ring.ids) - 1)]
        n = keep_concerned(self.rows.arrays, self.metric, values, place, self._candidates, n, self._scores)
        clear_values(ring, arrival, values)
        return Concerned(self._candidates[:n], self._scores[:n])

    @property
    def nbytes(self) -> int:
        return int(sum(column.nbytes for column in self._lists)) + self._seen.nbytes

    @property
    def stats(self) -> dict[str, int]:
        return {"scanned": self._n_scored, "scored": self._n_scored}


@kernel
def _link(rows, lists, numbers):
    for row in numbers:
        for k in range(rows.offsets[row], rows.offsets[row] + rows.n_terms[row]):
            term = rows.terms[k]
            following = lists.heads[term]
            lists.heads[term] = k
            lists.nexts[k] = following
            lists.previous[k] = NONE
            lists.rows[k] = row
            if following != NONE:
                lists.previous[following] = k


@kernel
def _unlink(rows, lists, numbers):
    for row in numbers:
        for k in range(rows.offsets[row], rows.offsets[row] + rows.n_terms[row]):
            before, following = lists.previous[k], lists.nexts[k]
            if before == NONE:
                lists.heads[rows.terms[k]] = following
            else:
                lists.nexts[before] = following
            if following != NONE:
                lists.previous[following] = before


@kernel
def _collect(ring, arrival, lists, seen, out_candidates):
    """Write the rows that share a term with a message, each once; return how many."""
    at, mask, n = arrival & (len(ring.ids) - 1), len(ring.terms) - 1, 0
    for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
        posting = lists.heads[ring.terms[k & mask]]
        while posting != NONE:
            row = lists.rows[posting]
            if seen[row] != arrival:
                seen[row] = arrival
                out_candidates[n] = row
                n += 1
            posting = lists.nexts[posting]
    return n
