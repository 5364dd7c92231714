"""Posting lists by term: each row is filed under its rarest term.

Used by the method `keyword-first` and by the young part of `pyramid`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.predicate import mark_terms
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.postings import (
    FULL,
    NO_LIST,
    PostingArrays,
    Postings,
    append_entry,
    list_of,
    scan_list,
)
from nearcast.structures.structure_method import run_search
from nearcast.structures.term_order import NO_TERM, TERMLESS_KEY, filing_terms, rarest_pair


class KeywordLists:
    """One posting list a term. An entry has the second rarest term of its row as pivot."""

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._lists = Postings()

    @property
    def arrays(self) -> PostingArrays:
        return self._lists.arrays

    @property
    def nbytes(self) -> int:
        return self._lists.nbytes

    def build(self, rows: np.ndarray) -> None:
        self._lists = Postings()
        rarest, second = filing_terms(self._store, rows)
        entries, boxes = (rarest, rows, second), self._store.arrays.boxes[rows]
        self._lists.build(entries, boxes, max(1, self._store.n_terms), self._store.high)

    def insert(self, rows: np.ndarray) -> None:
        arrays, frequencies = self._store.arrays, self._store.frequencies
        self._lists.extend(
            lambda lists, done, used: _file_rows(lists, arrays, frequencies, rows, done, used),
            max(1, self._store.n_terms),
            self._store.high,
        )

    def remove(self, rows: np.ndarray) -> None:
        self._lists.remove(rows)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        return self._lists.state()

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, int]) -> None:
        self._lists.restore(arrays, header)


@kernel
def _file_rows(lists, arrays, frequencies, rows, done, used):
    """Append these rows to the lists of their rarest terms, from `done` on until the arena is full: see Append."""
    for i in range(done, len(rows)):
        rarest, second = rarest_pair(arrays, frequencies, rows[i])
        which = TERMLESS_KEY if rarest == NO_TERM else rarest
        stop = append_entry(lists, which, rows[i], second, arrays.boxes, rows[i], used)
        if stop == FULL:
            return i, used, np.int64(which)
        used = stop
    return len(rows), used, NO_LIST


class KeywordListsView(NamedTuple):
    """A version of the lists, for readers."""

    lists: PostingArrays
    store: StoreView

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return search_lists(self.lists, self.store, messages)


def search_lists(lists: PostingArrays, store: StoreView, messages: MessageBatch) -> tuple[Hits, Work]:
    """The rows of the lists that match each message."""
    return run_search(match_lists, (lists,), store, messages)


@kernel
def match_lists(lists, store, messages, marks, starts):
    """Fill starts; return the rows that match, the number of lists read and of entries compared."""
    out = np.empty(1024, np.int32)
    n = nodes = seen = 0
    n_lists = len(lists.heads)
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        mark_terms(marks, messages, m, 1)
        for k in range(messages.term_starts[m], messages.term_starts[m + 1]):
            term = messages.terms[k]
            if term < n_lists and list_of(lists, term)[1] > 0:
                out, n, count = scan_list(lists, term, store, marks, box, out, n)
                seen += count
                nodes += 1
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen
