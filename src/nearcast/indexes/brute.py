"""Brute force: the oracle.

Paper      baseline; the meaning of matching itself.
Idea       Compare every message with every row, by the exact predicate (or score) and nothing else.
Layout     none: it reads the row store, and skips numbers that hold no live row.
Cost       insert O(1); match O(n) a message, n = rows; no memory of its own.
Deviates   nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.matching.method import Method, RowMethod
from nearcast.matching.predicate import FLAG_LIVE, mark_terms, row_holds
from nearcast.matching.rank_method import RankHits, RankMethod
from nearcast.matching.score import score_of
from nearcast.model import Hits, MessageBatch, Work


class _Stateless(RowMethod):
    """Nothing to build, to change or to save: the row store is all."""

    effort_ceiling = 1.0

    def build(self, rows: np.ndarray) -> None:
        pass

    def insert(self, rows: np.ndarray) -> None:
        pass

    def remove(self, rows: np.ndarray) -> None:
        pass

    @property
    def nbytes(self) -> int:
        return 0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        pass


class Brute(_Stateless, Method):
    name = "brute"
    paper = "baseline"
    kinds = ("match", "rank")
    takes_termless_rows = True

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        marks = np.zeros(self.store.n_terms, np.uint8)
        starts = np.zeros(messages.size + 1, np.int64)
        rows = _match(self.store.arrays, messages, marks, starts)
        return Hits(rows, starts), Work(messages.size, messages.size * self.store.live, len(rows))


class RankBrute(_Stateless, RankMethod):
    name = "brute"
    paper = "baseline"

    def match(self, messages: MessageBatch) -> tuple[RankHits, Work]:
        marks = np.zeros(self.store.n_terms, np.uint8)
        starts = np.zeros(messages.size + 1, np.int64)
        rows, scores = _rank(self.store.arrays, self.asked.arrays, messages, marks, starts)
        return RankHits(rows, scores, starts), Work(messages.size, messages.size * self.store.live, len(rows))


@kernel
def _match(rows, messages, marks, starts):
    out = np.empty(1024, np.int32)
    flags = rows.flags
    n = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        mark_terms(marks, messages, m, 1)
        for row in range(len(flags)):
            if flags[row] & FLAG_LIVE and row_holds(rows, row, marks, box):
                out = with_room(out, n, 1)
                out[n] = row
                n += 1
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy()


@kernel
def _rank(rows, asked, messages, marks, starts):
    out, scores = np.empty(1024, np.int32), np.empty(1024, np.float64)
    delivered = np.empty(len(rows.flags), np.float64)
    n = 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        count = _score_all(rows, asked, marks, messages.boxes[m], delivered)
        mark_terms(marks, messages, m, 0)
        out, scores = with_room(out, n, count), with_room(scores, n, count)
        for row in range(len(delivered)):
            if delivered[row] >= 0.0:
                out[n], scores[n] = row, delivered[row]
                n += 1
        starts[m + 1] = n
    return out[:n].copy(), scores[:n].copy()


@kernel
def _score_all(rows, asked, marks, box, delivered):
    """The score of each live row that reaches its threshold, else -1; returns how many do."""
    count = 0
    for row in range(len(delivered)):
        delivered[row] = -1.0
        if rows.flags[row] & FLAG_LIVE:
            score = score_of(rows, asked, row, marks, box)
            if score >= asked.thresholds[row]:
                delivered[row] = score
                count += 1
    return count
