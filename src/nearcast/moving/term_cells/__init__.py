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
search.py and move.py read them, change.py writes them. batch.py sorts the postings of arriving messages by term.
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
    LACKING_WORDS,
    POINT_WIDTH,
    REFILED,
    empty_lists,
    list_bytes,
    sweep_terms,
    with_lacking_room,
    with_terms,
)
from nearcast.moving.entry_lists.packed_pairs import unpacked, unpacked_changes
from nearcast.moving.entry_lists.place_codes import place_codes
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.method import DEAD_SHARE, EVERYWHERE, MovingMethod
from nearcast.moving.pairs import Pairs, SignedPairs
from nearcast.moving.term_cells.batch import Batch, batch_of
from nearcast.moving.term_cells.boxes import FINEST_BOXES, KEY, MOST_NEAR
from nearcast.moving.term_cells.change import file_rows, post_messages, unfile_rows
from nearcast.moving.term_cells.move import Moves, move_rows
from nearcast.moving.term_cells.search import Cells, find_messages, find_rows

_FINEST_POINTS = 7
_SAMPLE = 100_000
_AT_ONCE = 32  # postings whose lists are prefetched before they are scanned
_FIRST_OUT, _LONGEST_OUT = 1 << 12, 1 << 22  # packed pairs that a kernel may write at once


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
        dead_share: float = DEAD_SHARE,
    ) -> None:
        super().__init__(store, messages, space)
        self._targets = (messages_per_cell, rows_per_cell)
        self._dead_share = dead_share
        self._posts_everywhere = False
        self._out = np.empty(_FIRST_OUT, np.int64)

    def build(self, rows: np.ndarray, slots: np.ndarray) -> None:
        per_cell, rows_per_cell = self._targets
        self._posts_everywhere = False
        self._cells = Cells(
            empty_lists(POINT_WIDTH, per_cell, _FINEST_POINTS),
            empty_lists(BOX_WIDTH, per_cell, FINEST_BOXES),
            empty_lists(BOX_WIDTH, rows_per_cell, FINEST_BOXES),
            np.zeros((0, 3), np.int32),
            place_codes(self._sample(rows, slots), self.space.bounds),
            np.empty(2 * MOST_NEAR, np.int64),
            np.empty(_AT_ONCE, np.int64),
        )
        self._post(self._batch(slots))
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
            self._post_everywhere()

    def remove(self, rows: np.ndarray) -> None:
        unfile_rows(self._cells, rows)

    def find(self, rows: np.ndarray) -> Pairs:
        arrays, own = self.store.arrays, self.messages.arrays
        return unpacked(
            self._packed(lambda done: find_messages(self._cells, arrays, own, rows, self._out, done), len(rows))
        )

    def arrive(self, slots: np.ndarray) -> Pairs:
        batch = self._batch(slots)
        pairs = self._rows_of(batch)
        self._post(batch)
        return pairs

    def leave(self, slots: np.ndarray) -> Pairs:
        return self._rows_of(self._batch(slots))

    def _batch(self, slots: np.ndarray) -> Batch:
        return batch_of(self.messages.arrays, slots, self._cells.codes, self.messages.n_terms)

    def _rows_of(self, batch: Batch) -> Pairs:
        stores, n = (self.store.arrays, self.messages.arrays), len(batch.terms)
        return unpacked(self._packed(lambda done: find_rows(self._cells, stores, batch, self._out, done), n))

    def _packed(self, search: Callable[[int], tuple[int, int]], total: int) -> np.ndarray:
        """The packed pairs of a kernel that stops where its output, or the arena of rows, is full."""
        parts, done = [np.empty(0, np.int64)], 0
        while done < total:
            n, done = search(done)
            parts.append(self._out[:n].copy())
            if self._cells.own.control[LACKING_WORDS]:
                self._cells = self._cells._replace(own=with_lacking_room(self._cells.own))
            elif done < total:
                self._out = np.empty(min(2 * len(self._out), _LONGEST_OUT) if n else 2 * len(self._out), np.int64)
        return np.concatenate(parts)

    def _post(self, batch: Batch) -> None:
        """Write postings; the kernel stops where an arena lacks room."""
        n_terms, cells = self.messages.n_terms, self._cells
        self._cells = cells._replace(points=with_terms(cells.points, n_terms), ranges=with_terms(cells.ranges, n_terms))
        skipped, done = -1 if self._posts_everywhere else EVERYWHERE, 0
        while done < len(batch.terms):
            done = post_messages(self._cells, batch, skipped, done)
            cells = self._cells
            points, ranges = with_lacking_room(cells.points), with_lacking_room(cells.ranges)
            self._cells = cells._replace(points=points, ranges=ranges)

    def _post_everywhere(self) -> None:
        """Post all live messages under EVERYWHERE: the first row without terms has come."""
        self._posts_everywhere = True
        batch = self._batch(self.messages.slots())
        is_everywhere = batch.terms == EVERYWHERE
        self._post(batch._replace(terms=batch.terms[is_everywhere], owners=batch.owners[is_everywhere]))

    def move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        order = np.argsort(self._cells.spots[rows, KEY], kind="stable")  # the lists of a term stay in the cache
        moves = Moves(rows[order], np.ascontiguousarray(boxes[order]))
        arrays, own = self.store.arrays, self.messages.arrays
        packed = self._packed(lambda done: move_rows(self._cells, arrays, own, moves, self._out, done), len(rows))
        return unpacked_changes(packed)

    def sweep(self) -> bool:
        if self.messages.n_dead <= self._dead_share * len(self.messages):
            return False
        is_live = self.messages.arrays.is_live
        sweep_terms(self._cells.points, is_live)
        sweep_terms(self._cells.ranges, is_live)
        return True

    @property
    def nbytes(self) -> int:
        cells = self._cells
        return sum(list_bytes(each) for each in (cells.points, cells.ranges, cells.own)) + int(cells.spots.nbytes)

    @property
    def report(self) -> dict[str, int]:
        control = self._cells.own.control
        return {"moves in place": int(control[IN_PLACE]), "moves filed anew": int(control[REFILED])}
