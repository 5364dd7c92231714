"""Brute force: the oracle of moving subscriptions.

Paper      baseline; the meaning of the changes themselves.
Idea       Compare every row with every live message, before and after a change.
Layout     none: the scans read both stores.
Cost       a move O(messages), an arrival or expiry O(rows); no memory of its own.
Deviates   nothing.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.moving.method import MovingMethod
from nearcast.moving.pairs import Pairs, boxes_overlap, has_terms


class Brute(MovingMethod):
    name = "brute"
    paper = "baseline"

    def build(self, rows: np.ndarray, slots: np.ndarray) -> None:
        pass

    def insert(self, rows: np.ndarray) -> None:
        pass

    def remove(self, rows: np.ndarray) -> None:
        pass

    def find(self, rows: np.ndarray) -> Pairs:
        return Pairs(*_compare(self.store.arrays, self.messages.arrays, rows, self.messages.slots()))

    def arrive(self, slots: np.ndarray) -> Pairs:
        return Pairs(*_compare(self.store.arrays, self.messages.arrays, self.store.live_rows(), slots))

    def leave(self, slots: np.ndarray) -> Pairs:
        return self.arrive(slots)

    @property
    def nbytes(self) -> int:
        return 0


@kernel
def _compare(rows, messages, wanted_rows, wanted_slots):
    """All pairs of these rows and messages that hold."""
    found_rows, found_slots = np.empty(1024, np.int32), np.empty(1024, np.int32)
    n = 0
    for row in wanted_rows:
        for slot in wanted_slots:
            if boxes_overlap(rows.boxes, row, messages.boxes, slot) and has_terms(rows, row, messages, slot):
                found_rows, found_slots = with_room(found_rows, n, 1), with_room(found_slots, n, 1)
                found_rows[n], found_slots[n] = row, slot
                n += 1
    return found_rows[:n].copy(), found_slots[:n].copy()
