"""Brute force: the oracle.

Paper      baseline; the meaning of matching itself.
Idea       Compare every message with every row, by the exact predicate (or score) and nothing else.
Layout     none: the scan reads the row store and skips numbers without a live row.
Cost       insert O(1); match O(n) a message, n = rows; no memory of its own.
Deviates   nothing.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.matching.exact_scan import ExactScan
from nearcast.matching.predicate import FLAG_LIVE, mark_terms, row_holds
from nearcast.matching.row_params import RankParams
from nearcast.matching.score import score_of
from nearcast.model import MessageBatch


class Brute(ExactScan):
    name = "brute"

    def scan(self, messages: MessageBatch, marks: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, None]:
        return _match(self.store.arrays, messages, marks, starts), None


class BruteRank(ExactScan):
    kind = "rank"
    name = "brute"

    def scan(self, messages: MessageBatch, marks: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        params = cast(RankParams, self.store.params)
        return _rank(self.store.arrays, params.arrays, messages, marks, starts)


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
def _rank(rows, rank_params, messages, marks, starts):
    out, scores = np.empty(1024, np.int32), np.empty(1024, np.float64)
    delivered = np.empty(len(rows.flags), np.float64)
    n = 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        count = _score_all(rows, rank_params, marks, messages.boxes[m], delivered)
        mark_terms(marks, messages, m, 0)
        out, scores = with_room(out, n, count), with_room(scores, n, count)
        for row in range(len(delivered)):
            if delivered[row] >= 0.0:
                out[n], scores[n] = row, delivered[row]
                n += 1
        starts[m + 1] = n
    return out[:n].copy(), scores[:n].copy()


@kernel
def _score_all(rows, rank_params, marks, box, delivered):
    """The score of each live row that reaches its threshold, else -1; returns how many do."""
    count = 0
    for row in range(len(delivered)):
        delivered[row] = -1.0
        if rows.flags[row] & FLAG_LIVE:
            score = score_of(rows, rank_params, row, marks, box)
            if score >= rank_params.thresholds[row]:
                delivered[row] = score
                count += 1
    return count
