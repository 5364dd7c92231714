"""Posting lists whose entries contain what a scan needs: the row, its box (float32, rounded outward) and one more term.

Each row is in exactly one list, so no pair is compared twice. All lists lie in one arena. A full list moves to the end
of the arena with half as much room again. The arena is packed once a third of it is holes and removed entries.

Readers may scan while one thread changes the lists. Where a list begins and how long it is are one number, which is
written last. An entry never moves within its list: a removed entry stays, with a box that overlaps nothing. A list that
moves leaves its old entries where they are. Packing and growing make new arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.pointers import unsafe_int32, unsafe_int64, unsafe_small_boxes
from nearcast.arrays.ragged import starts_of
from nearcast.arrays.vector import finish_writes
from nearcast.matching.predicate import row_holds
from nearcast.structures.arena import has_many_holes, larger_room
from nearcast.structures.boxes import rounded_down, set_box

NO_LIST = FULL = -1
REMOVED = -1
"""In place of a row: the entry was removed."""
_COUNT_BITS = 28
_COUNT_MASK = (1 << _COUNT_BITS) - 1


class PostingArrays(NamedTuple):
    """One row a list (two arrays), the arena (three arrays), and one row a row (two arrays); saved by these names."""

    heads: np.ndarray  # int64[n_lists]  first entry in the arena << 28 | number of entries
    rooms: np.ndarray  # int32[n_lists]  how many entries fit before the list must move
    rows: np.ndarray  # int32[arena]    or REMOVED
    pivots: np.ndarray  # int32[arena]    a term that must occur in the message, or NO_TERM
    boxes: np.ndarray  # float32[arena,4]
    lists: np.ndarray  # int32[n_rows]   the row's list, or NO_LIST
    places: np.ndarray  # int32[n_rows]   its position in the list


Append = Callable[[PostingArrays, int, int], tuple[int, int, int]]
"""Appends entries to lists: takes the lists, the number of entries that are done, and the end of the arena. Returns the
last two as they are then, and the list for which the arena had no room, or NO_LIST.
"""


class Postings:
    """Posting lists that change. Kernels of methods scan them with `scan_list`."""

    def __init__(self) -> None:
        self.arrays = NO_POSTINGS
        self._used = 0  # entries of the arena, holes and removed ones included
        self._removed = 0

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)

    def build(
        self, entries: tuple[np.ndarray, np.ndarray, np.ndarray], boxes: np.ndarray, n_lists: int, n_rows: int
    ) -> None:
        """Replace all lists by `entries` = (lists, rows, pivots), with the exact boxes of the rows."""
        lists, rows, pivots = entries
        self.arrays = _laid_out(np.bincount(lists, minlength=n_lists), n_rows)
        self._used, self._removed = len(rows), 0
        _append(self.arrays, entries, boxes, 0, 0)

    def append(
        self, entries: tuple[np.ndarray, np.ndarray, np.ndarray], boxes: np.ndarray, n_lists: int, n_rows: int
    ) -> None:
        """Append entries to lists, which may be new."""
        self.extend(lambda lists, done, used: _append(lists, entries, boxes, done, used), n_lists, n_rows)

    def extend(self, append: Append, n_lists: int, n_rows: int) -> None:
        """Append what a kernel appends. It is called again, with more room, until its arena is not full."""
        self._make_lists(n_lists, n_rows)
        done, self._used, full = append(self.arrays, 0, self._used)
        while full != NO_LIST:
            self._make_room(int(self.arrays.rooms[full]) * 2 + 4)
            done, self._used, full = append(self.arrays, done, self._used)

    def remove(self, rows: np.ndarray) -> None:
        """Remove rows from their lists, each in constant time."""
        _remove(self.arrays, rows)
        self._removed += len(rows)
        if self._removed > 1024 and 2 * self._removed > self._used:
            self._pack()

    def _make_lists(self, n_lists: int, n_rows: int) -> None:
        old = self.arrays
        if n_lists <= len(old.heads) and n_rows <= len(old.lists):
            return
        self.arrays = old._replace(
            heads=grown(old.heads, n_lists, fill=0),
            rooms=grown(old.rooms, n_lists, fill=0),
            lists=grown(old.lists, n_rows, fill=NO_LIST),
            places=grown(old.places, n_rows),
        )

    def _make_room(self, needed: int) -> None:
        """Make room for `needed` more entries at the end of the arena: pack it if it has many holes, then grow it."""
        if has_many_holes(self._used, int(self.arrays.rooms.sum(dtype=np.int64)) - self._removed):
            self._pack()
        a, size = self.arrays, self._used + needed
        if size > len(a.rows):
            entries = {"rows": grown(a.rows, size), "pivots": grown(a.pivots, size), "boxes": grown(a.boxes, size)}
            self.arrays = a._replace(heads=a.heads.copy(), **entries)  # old heads go with the old, smaller arena

    def _pack(self) -> None:
        old = self.arrays
        counts = np.zeros(len(old.heads), np.int64)
        _count_live(old, counts)
        new = _laid_out(counts, 0)._replace(lists=old.lists, places=old.places)
        _copy_live(old, new)
        self.arrays, self._used, self._removed = new, len(new.rows), 0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        arrays = self.arrays._asdict()
        for name in ("rows", "pivots", "boxes"):
            arrays[name] = arrays[name][: self._used]
        return {f"posting_{name}": array for name, array in arrays.items()}, {"removed": self._removed}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, int]) -> None:
        self.arrays = PostingArrays(*(arrays[f"posting_{name}"] for name in PostingArrays._fields))
        self._used, self._removed = len(self.arrays.rows), header["removed"]


def _laid_out(counts: np.ndarray, n_rows: int) -> PostingArrays:
    """Empty lists with room for exactly `counts` entries."""
    starts = starts_of(counts)
    return PostingArrays(
        starts[:-1] << _COUNT_BITS,
        counts.astype(np.int32),
        np.empty(starts[-1], np.int32),
        np.empty(starts[-1], np.int32),
        np.empty((starts[-1], 4), np.float32),
        np.full(n_rows, NO_LIST, np.int32),
        np.empty(n_rows, np.int32),
    )


NO_POSTINGS = _laid_out(np.zeros(0, np.int64), 0)


@kernel
def unsafe_postings(pointers, first):
    """Lists whose arrays stand from position `first` on among packed arguments."""
    return PostingArrays(
        unsafe_int64(pointers, first),
        unsafe_int32(pointers, first + 1),
        unsafe_int32(pointers, first + 2),
        unsafe_int32(pointers, first + 3),
        unsafe_small_boxes(pointers, first + 4),
        unsafe_int32(pointers, first + 5),
        unsafe_int32(pointers, first + 6),
    )


@inline_kernel
def list_of(lists, which):
    """(first entry, number of entries) of a list."""
    head = lists.heads[which]
    return head >> _COUNT_BITS, head & _COUNT_MASK


@kernel
def _append(lists, entries, boxes, done, used):
    """Append entries from `done` on until the arena is full: see Append. `boxes` are the exact boxes of the rows."""
    wanted, rows, pivots = entries
    for i in range(done, len(wanted)):
        stop = append_entry(lists, wanted[i], rows[i], pivots[i], boxes, i, used)
        if stop == FULL:
            return i, used, np.int64(wanted[i])
        used = stop
    return len(wanted), used, NO_LIST


@lean_kernel
def append_entry(lists, which, row, pivot, boxes, at, used):
    """Append one row, whose exact box is boxes[at], to a list; return the end of the arena, or FULL."""
    first, place = list_of(lists, which)
    if place == lists.rooms[which]:
        room = larger_room(place)
        if used + room > len(lists.rows):
            return FULL
        _copy_entries(lists, first, place, used)
        first = used
        lists.rooms[which] = room
        used += room
    target = first + place
    lists.rows[target] = row
    lists.pivots[target] = pivot
    lists.boxes[target, 0], lists.boxes[target, 1] = rounded_down(boxes[at, 0]), rounded_down(boxes[at, 1])
    lists.boxes[target, 2], lists.boxes[target, 3] = -rounded_down(-boxes[at, 2]), -rounded_down(-boxes[at, 3])
    lists.lists[row] = which
    lists.places[row] = place
    finish_writes()
    lists.heads[which] = (first << _COUNT_BITS) | (place + 1)
    return used


@lean_kernel
def _copy_entries(lists, source, count, target):
    """Copy entries to another place of the arena.

    Counting the references of the tuple took 0.25 us for each list that moves, as long as the rest of an insert.
    """
    for k in range(count):
        lists.rows[target + k] = lists.rows[source + k]
        lists.pivots[target + k] = lists.pivots[source + k]
        for side in range(4):
            lists.boxes[target + k, side] = lists.boxes[source + k, side]


@kernel
def _count_live(lists, out_counts):
    for which in range(len(out_counts)):
        first, count = list_of(lists, which)
        for k in range(first, first + count):
            out_counts[which] += lists.rows[k] != REMOVED


@kernel
def _copy_live(old, new):
    """Copy the entries that were not removed to the lists of `new`, which have room for exactly these."""
    for which in range(len(old.heads)):
        source, count = list_of(old, which)
        target, place = list_of(new, which)
        for k in range(source, source + count):
            if old.rows[k] != REMOVED:
                new.rows[target + place] = old.rows[k]
                new.pivots[target + place] = old.pivots[k]
                set_box(new.boxes, target + place, old.boxes[k])
                new.places[old.rows[k]] = place
                place += 1
        new.heads[which] = (target << _COUNT_BITS) | place


@kernel
def _remove(lists, rows):
    for i in range(len(rows)):
        which = lists.lists[rows[i]]
        at = list_of(lists, which)[0] + lists.places[rows[i]]
        lists.rows[at] = REMOVED
        lists.boxes[at] = np.nan  # overlaps nothing
        lists.lists[rows[i]] = NO_LIST


@kernel
def scan_list(lists, which, store, marks, box, out, n):
    """Write the rows of one list that match to out[n:]; return (out, n, number of entries), with a larger `out` where
    it was too small. Rows that are not in this view of the store are left out.
    """
    first, count = list_of(lists, which)
    out = with_room(out, n, count + 1)
    stop = overlapping(lists.boxes, first, first + count, box, out, n)
    stop = _marked(lists.pivots, first, marks, out, n, stop)
    for j in range(n, stop):
        row = lists.rows[first + out[j]]
        if 0 <= row < len(store.flags) and row_holds(store, row, marks, box):
            out[n] = row
            n += 1
    return out, n, count


@kernel
def _marked(pivots, first, marks, out, n, stop):
    """Keep the positions in out[n:stop] whose pivot is marked or missing; return the new stop."""
    for j in range(n, stop):
        pivot = pivots[first + out[j]]
        if pivot < 0 or marks[pivot] != 0:
            out[n] = out[j]
            n += 1
    return n


@kernel
def overlapping(boxes, first, stop, box, out, n):
    """Write the positions of the rounded boxes that overlap to out[n:], counted from `first`; return the new n.

    Each position is written, and a sum decides whether it is kept: 1.7 ns a box. Unpredictable branches cost 6 ns.
    """
    xmin, ymin = rounded_down(box[0]), rounded_down(box[1])
    xmax, ymax = -rounded_down(-box[2]), -rounded_down(-box[3])
    for k in range(first, stop):
        out[n] = k - first
        # Four numbers, not `overlaps` with a tuple of them: 103 us instead of 112 for a short message (A, 1 M rows).
        n += np.int64((boxes[k, 0] <= xmax) & (boxes[k, 2] >= xmin) & (boxes[k, 1] <= ymax) & (boxes[k, 3] >= ymin))
    return n
