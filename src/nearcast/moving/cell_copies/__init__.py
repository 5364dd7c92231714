"""What the competitors of the AP+-tree share: rows and messages copied into the cells of a grid or of a quadtree.

A row is under its rarest term in every cell that it overlaps; a message is under each of its terms. A move compares the
cells of the old and the new box by the four cases of the paper.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap, IntMapArrays
from nearcast.arrays.ragged import distinct
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.moving.cell_copies.kernels import (
    LACKING,
    USED,
    CellLists,
    find_messages,
    insert_rows,
    levels_of,
    match_messages,
    move_rows,
    post_messages,
    remove_rows,
)
from nearcast.moving.entry_lists.lists import (
    BOX_WIDTH,
    COUNT,
    IN_PLACE,
    REFILED,
    drop_dead_of_heads,
    empty_lists,
    list_bytes,
    with_lacking_room,
)
from nearcast.moving.entry_lists.packed_pairs import unpacked, unpacked_changes
from nearcast.moving.entry_lists.place_codes import place_codes
from nearcast.moving.live_messages import LiveMessages
from nearcast.moving.method import DEAD_SHARE, MovingMethod
from nearcast.moving.pairs import Pairs, SignedPairs


class CellCopies(MovingMethod):
    """A method over cells. Subclasses say which, and whether words or places come first."""

    paper = "ap-tree"
    side = 40
    finest = 0
    words_first: bool = False

    def build(self, rows: np.ndarray, slots: np.ndarray) -> None:
        shape = np.array([self.side, self.finest, self.words_first], np.int64)
        codes = place_codes(self.store.arrays.boxes[rows[:: max(1, len(rows) // 20_000)]], self.space.bounds)
        bounds, no_rows = np.array(self.space.bounds), np.zeros(0, np.int32)
        lists = (empty_lists(BOX_WIDTH, 0, 0), empty_lists(BOX_WIDTH, 0, 0))
        table = IntMap(64).arrays
        self._lists = CellLists(*table, np.zeros(2, np.int64), np.zeros((0, 4)), no_rows, bounds, shape, *lists, codes)
        self._levels = 1 if self.finest == 0 else 0
        if self._levels:
            self._post(slots, self._levels)
        self._insert(rows, slots)

    def insert(self, rows: np.ndarray) -> None:
        self._insert(rows, self.messages.slots())

    def _insert(self, rows: np.ndarray, slots: np.ndarray) -> None:
        self._use_levels(self.store.arrays.boxes[rows], slots)
        self._learn_terms(rows)
        done = 0
        while done < len(rows):
            done = insert_rows(self._lists, self.store.arrays, rows, done)
            self._make_room(done < len(rows))

    def _learn_terms(self, rows: np.ndarray) -> None:
        """Choose the term of each row."""
        row_terms = grown(self._lists.row_terms, len(self.store.arrays.flags))
        row_terms[rows] = self._rarest(rows)
        self._lists = self._lists._replace(row_terms=row_terms)

    def _rarest(self, rows: np.ndarray) -> np.ndarray:
        """int32[n]: the rarest term of each row among the rows."""
        store, frequencies = self.store.arrays, self.store.frequencies
        best = store.terms[store.offsets[rows]].copy()
        for k in range(1, int(store.n_terms[rows].max()) if len(rows) else 1):
            has = np.flatnonzero(store.n_terms[rows] > k)
            terms = store.terms[store.offsets[rows[has]] + k]
            rarer = frequencies[terms] < frequencies[best[has]]
            best[has[rarer]] = terms[rarer]
        return np.asarray(best)

    def _use_levels(self, boxes: np.ndarray, slots: np.ndarray) -> None:
        """Post the live messages on levels that rows come to for the first time."""
        new = int(levels_of(self._lists, np.ascontiguousarray(boxes))) & ~self._levels
        if new:
            self._levels |= new
            self._post(slots, new)

    def _post(self, slots: np.ndarray, levels: int) -> None:
        done = 0
        while done < len(slots):
            done = post_messages(self._lists, self.messages.arrays, slots, levels, done)
            self._make_room(done < len(slots))

    def _make_room(self, is_lacking: bool) -> None:
        if not is_lacking:
            return
        lists = self._lists
        rows, messages = with_lacking_room(lists.rows), with_lacking_room(lists.messages)
        if lists.used[LACKING]:
            lists.used[LACKING] = 0
            n = 2 * int(lists.used[USED]) + 64
            rows = rows._replace(heads=grown(rows.heads, n, fill=0))
            messages = messages._replace(heads=grown(messages.heads, n, fill=0))
            table = IntMap.from_arrays(IntMapArrays(lists.keys, lists.values))
            table.reserve(n)
            lists = lists._replace(keys=table.arrays.keys, values=table.arrays.values)
            lists = lists._replace(regions=grown(lists.regions, n))
        self._lists = lists._replace(rows=rows, messages=messages)

    def remove(self, rows: np.ndarray) -> None:
        remove_rows(self._lists, self.store.arrays, rows)

    def find(self, rows: np.ndarray) -> Pairs:
        return _pairs(*find_messages(self._lists, self.store.arrays, self.messages.arrays, rows))

    def arrive(self, slots: np.ndarray) -> Pairs:
        self._post(slots, self._levels)
        return self.leave(slots)

    def leave(self, slots: np.ndarray) -> Pairs:
        return _pairs(*match_messages(self._lists, self.store.arrays, self.messages.arrays, slots, self._levels))

    def move(self, rows: np.ndarray, boxes: np.ndarray) -> SignedPairs:
        boxes = np.ascontiguousarray(boxes)
        self._use_levels(boxes, self.messages.slots())
        parts, done = [np.empty(0, np.int64)], 0
        while done < len(rows):
            out, n, done = move_rows(self._lists, self.store.arrays, self.messages.arrays, rows, boxes, done)
            parts.append(out[:n])
            self._make_room(done < len(rows))
        packed = distinct(np.concatenate(parts))
        return unpacked_changes(packed)

    def sweep(self) -> bool:
        if self.messages.n_dead <= DEAD_SHARE * len(self.messages):
            return False
        drop_dead_of_heads(self._lists.messages, int(self._lists.used[USED]), self.messages.arrays.is_live)
        return True

    @property
    def report(self) -> dict[str, int]:
        lists, n = self._lists, int(self._lists.used[USED])
        return {
            "copies of messages": int(lists.messages.heads[:n, COUNT].sum(dtype=np.int64)),
            "moves in place": int(lists.rows.control[IN_PLACE]),
            "moves filed anew": int(lists.rows.control[REFILED]),
        }

    @property
    def nbytes(self) -> int:
        lists = self._lists
        own = (lists.keys, lists.values, lists.regions, lists.row_terms)
        return sum(int(array.nbytes) for array in own) + list_bytes(lists.rows) + list_bytes(lists.messages)


class MessagesByCell(CellCopies):
    """Messages alone, for methods that index rows in another way. A row is named before it is searched for."""

    def __init__(self, store: RowStore, messages: LiveMessages, space: Space, words_first: bool) -> None:
        super().__init__(store, messages, space)
        self.words_first = words_first  # an attribute of the object here

    def insert(self, rows: np.ndarray) -> None:
        self._learn_terms(rows)

    def remove(self, rows: np.ndarray) -> None:
        pass

    def _insert(self, rows: np.ndarray, slots: np.ndarray) -> None:
        self._learn_terms(rows)

    def arrive(self, slots: np.ndarray) -> Pairs:
        self._post(slots, self._levels)
        return Pairs(np.zeros(0, np.int32), np.zeros(0, np.int32))


def _pairs(out: np.ndarray, n: int) -> Pairs:
    packed = distinct(out[:n])
    return unpacked(packed)
