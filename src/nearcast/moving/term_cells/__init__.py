"""Term-cells: no stored results; one list of messages for each (term, cell), rows in loose cells of their rarest term.

Paper      nearcast
Idea       A result is found again when it is needed: a move reads the messages under its row's rarest term, in the
           cells of the old and the new box. A message is under each of its terms.
Layout     a posting is 12 bytes: place in 2 x 16 bits, a signature of the terms in 32 bits, the message's number; a row
           is 16 bytes in one list. Lists grow in one arena; dead messages are skipped, and removed by a sweep.
Cost       a move O(postings in the cells of both boxes); an arrival O(its terms + the rows near it); no memory for
           results.
Deviates   nothing.

entry_lists has the arena of lists and the codes of coordinates; points.py and boxes.py are the two kinds of lists;
search.py reads them and change.py writes them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.moving.entry_lists.lists import (
    BOX_WIDTH,
    IN_PLACE,
    POINT_WIDTH,
    REFILED,
    empty_lists,
    list_bytes,
    with_lacking_room,
    with_terms,
)
from nearcast.moving.entry_lists.place_codes import place_codes
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.method import EVERYWHERE, MovingMethod
from nearcast.moving.pairs import Pairs, SignedPairs
from nearcast.moving.term_cells.boxes import KEY, sweep_boxes
from nearcast.moving.term_cells.change import file_rows, post_everywhere, post_messages, unfile_rows
from nearcast.moving.term_cells.move import BEGINS, move_rows
from nearcast.moving.term_cells.points import sweep_points
from nearcast.moving.term_cells.search import Cells, find_messages, find_rows

_FINEST_POINTS, _FINEST_BOXES = 7, 6
_SAMPLE = 100_000


class TermCells(MovingMethod):
    name = "term-cells"
    paper = "nearcast"
    checked_with = ({}, {"messages_per_cell": 1, "rows_per_cell": 1, "dead_share": 0.0})

    def __init__(
        self,
        store: RowStore,
        messages: LiveMessages,
        space: Space,
        messages_per_cell: int = 16,
        rows_per_cell: int = 8,
        dead_share: float = 0.25,
    ) -> None:
        super().__init__(store, messages, space)
        self._targets = (messages_per_cell, rows_per_cell)
        self._dead_share = dead_share
        self._posts_everywhere = False

    def build(self, rows: np.ndarray, slots: np.ndarray) -> None:
        per_cell, rows_per_cell = self._targets
        self._posts_everywhere = False
        self._cells = Cells(
            empty_lists(POINT_WIDTH, per_cell, _FINEST_POINTS),
            empty_lists(BOX_WIDTH, per_cell, _FINEST_BOXES),
            empty_lists(BOX_WIDTH, rows_per_cell, _FINEST_BOXES),
            np.zeros((0, 3), np.int32),
            place_codes(self._sample(rows, slots), self.space.bounds),
        )
        self._post(slots)
        self.insert(rows)

    def _sample(self, rows: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Places to fit the codes to: messages if there are many, rows otherwise."""
        numbers, boxes = (
            (slots, self.messages.arrays.boxes) if len(slots) > len(rows) else (rows, self.store.arrays.boxes)
        )
        return np.asarray(boxes[numbers[:: max(1, len(numbers) // _SAMPLE)]])

    def insert(self, rows: np.ndarray) -> None:
        if len(rows) == 0:
            return
        store = self.store.arrays
        cells = self._cells._replace(own=with_terms(self._cells.own, self.store.n_terms))
        self._cells = cells._replace(spots=grown(cells.spots, len(store.flags), fill=0))
        done = 0
        while True:
            done = file_rows(self._cells, store, self.store.frequencies, rows, done)
            if done == len(rows):
                break
            self._cells = self._cells._replace(own=with_lacking_room(self._cells.own))
        if not self._posts_everywhere and (self._cells.spots[rows, KEY] == EVERYWHERE).any():
            self._posts_everywhere = True
            self._run_posting(post_everywhere, self.messages.slots())

    def remove(self, rows: np.ndarray) -> None:
        unfile_rows(self._cells, rows)

    def find(self, rows: np.ndarray) -> Pairs:
        return _unpacked(*find_messages(self._cells, self.store.arrays, self.messages.arrays, rows))

    def arrive(self, slots: np.ndarray) -> Pairs:
        pairs = self.leave(slots)
        self._post(slots)
        return pairs

    def leave(self, slots: np.ndarray) -> Pairs:
        return _unpacked(*find_rows(self._cells, self.store.arrays, self.messages.arrays, slots))

    def _post(self, slots: np.ndarray) -> None:
        n_terms, cells = self.messages.n_terms, self._cells
        self._cells = cells._replace(points=with_terms(cells.points, n_terms), ranges=with_terms(cells.ranges, n_terms))
        first_term = EVERYWHERE if self._posts_everywhere else EVERYWHERE + 1
        self._run_posting(
            lambda cells, messages, these, cursor: post_messages(cells, messages, these, first_term, cursor), slots
        )

    def _run_posting(self, post: Callable[..., bool], slots: np.ndarray) -> None:
        """Run a posting kernel until all is posted; it stops where the arena lacks room."""
        cursor = np.zeros(2, np.int64)
        while not post(self._cells, self.messages.arrays, slots, cursor):
            cells = self._cells
            points, ranges = with_lacking_room(cells.points), with_lacking_room(cells.ranges)
            self._cells = cells._replace(points=points, ranges=ranges)

    def move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        order = np.argsort(self._cells.spots[rows, KEY], kind="stable")  # the lists of a term stay in the cache
        rows, boxes = rows[order], np.ascontiguousarray(boxes[order])
        parts, done = [], 0
        while True:
            out, n, done = move_rows(self._cells, self.store.arrays, self.messages.arrays, rows, boxes, done)
            parts.append(out[:n])
            if done == len(rows):
                break
            self._cells = self._cells._replace(own=with_lacking_room(self._cells.own))
        packed = parts[0] if len(parts) == 1 else np.concatenate(parts)
        signs = np.where(packed & BEGINS, 1, -1).astype(np.int8)
        return SignedPairs((packed >> 32).astype(np.int32), (packed & (BEGINS - 1)).astype(np.int32), signs)

    def sweep(self) -> bool:
        if self.messages.n_dead <= self._dead_share * len(self.messages):
            return False
        is_live = self.messages.arrays.is_live
        sweep_points(self._cells.points, is_live)
        sweep_boxes(self._cells.ranges, is_live)
        return True

    @property
    def nbytes(self) -> int:
        cells = self._cells
        return sum(list_bytes(each) for each in (cells.points, cells.ranges, cells.own)) + int(cells.spots.nbytes)

    @property
    def report(self) -> dict[str, int]:
        control = self._cells.own.control
        return {"moves in place": int(control[IN_PLACE]), "moves filed anew": int(control[REFILED])}


def _unpacked(out: np.ndarray, n: int) -> Pairs:
    return Pairs((out[:n] >> 32).astype(np.int32), (out[:n] & 0xFFFFFFFF).astype(np.int32))
