"""What readers of one version search: the runs, the young part, and the rows of the store."""

from __future__ import annotations

import threading

import numpy as np

from nearcast.arrays.pointers import PackedArrays
from nearcast.indexes.pyramid.run import RunArrays
from nearcast.indexes.pyramid.search import match_run
from nearcast.indexes.pyramid.single import PointMemory
from nearcast.matching.store import StoreView
from nearcast.matching.verify import joined
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.keyword_lists import search_lists
from nearcast.structures.postings import PostingArrays
from nearcast.structures.row_pointers import store_arrays
from nearcast.structures.term_order import TERMLESS_KEY

_KEYS = np.array([TERMLESS_KEY], np.int32)


class RoomHint(threading.local):
    """The size of the next result buffer of this thread."""

    hits_a_message = 0.0  # of its last batch


class PyramidView:
    """A version of a pyramid. Threads may share it."""

    def __init__(
        self,
        runs: tuple[RunArrays, ...],
        young: PostingArrays,
        store: StoreView,
        hint: RoomHint,
        memory: PointMemory,
    ) -> None:
        self._runs, self._young, self._store, self._hint, self._memory = runs, young, store, hint, memory
        self._packed = PackedArrays((*store_arrays(store), *young, *(array for run in runs for array in run)))

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        parts = [self._match_run(run, messages) for run in self._runs]
        if len(self._young.heads) or not parts:
            parts.append(search_lists(self._young, self._store, messages))
        hits, work = parts[0]
        for more_hits, more_work in parts[1:]:
            hits, work = joined(hits, more_hits), work.plus(more_work)
        return hits, work

    def _match_run(self, run: RunArrays, messages: MessageBatch) -> tuple[Hits, Work]:
        marks = np.zeros((self._store.n_terms >> 6) + 1, np.uint64)
        starts = np.zeros(messages.size + 1, np.int64)
        room = np.empty(1024 + int(self._hint.hits_a_message * messages.size * 1.25), np.int32)
        rows, nodes, seen = match_run(run, self._store.arrays, messages, marks, starts, room)
        self._hint.hits_a_message = len(rows) / max(1, messages.size)
        return Hits(rows, starts), Work(nodes, seen, len(rows))

    def match_point(self, terms: np.ndarray, x: float, y: float, time: int) -> tuple[np.ndarray, int, int]:
        """The subscriptions of one point message, ascending; lists read; entries compared."""
        return self._memory.match(self._packed, self._store.n_terms, (terms, x, y, time), terms)


class TermlessView(PyramidView):
    """A version of a pyramid over rows without terms. Every message reads the lists of one key."""

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        keys, starts = np.full(messages.size, TERMLESS_KEY, np.int32), np.arange(messages.size + 1)
        return super().match(messages._replace(terms=keys, term_starts=starts))

    def match_point(self, terms: np.ndarray, x: float, y: float, time: int) -> tuple[np.ndarray, int, int]:
        return self._memory.match(self._packed, self._store.n_terms, (terms, x, y, time), _KEYS)
