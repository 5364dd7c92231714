"""Brute force: the oracle.

Paper      baseline; the meaning of matching itself.
Idea       Compare every message with every row, by the exact predicate and nothing else.
Layout     none: it reads the row store, and skips numbers that hold no live row.
Cost       insert O(1); match O(n) a message, n = rows; no memory of its own.
Deviates   nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.matching.method import Method
from nearcast.matching.predicate import FLAG_LIVE, mark_terms, row_holds
from nearcast.model import Hits, MessageBatch, Work


class Brute(Method):
    name = "brute"
    paper = "baseline"
    takes_termless_rows = True
    effort_ceiling = 1.0

    def build(self, rows: np.ndarray) -> None:
        pass

    def insert(self, rows: np.ndarray) -> None:
        pass

    def remove(self, rows: np.ndarray) -> None:
        pass

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        marks = np.zeros(self.store.n_terms, np.uint8)
        starts = np.zeros(messages.size + 1, np.int64)
        rows = _match(self.store.arrays, messages, marks, starts)
        return Hits(rows, starts), Work(messages.size, messages.size * self.store.live, len(rows))

    @property
    def nbytes(self) -> int:
        return 0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        pass


@kernel
def _match(rows, messages, marks, starts):  # type: ignore[no-untyped-def]
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
