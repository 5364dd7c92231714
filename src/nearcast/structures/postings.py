"""Posting lists whose entries contain what a scan needs: the row, its box (float32, rounded outward) and one more term.

Each row is in exactly one list, so no pair is compared twice. All lists lie in one arena. A full list moves to the end
of the arena with half as much room again, and the arena is packed once a third of it is holes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.arrays.ragged import starts_of
from nearcast.matching.predicate import row_holds
from nearcast.structures.arena import has_many_holes, larger_room
from nearcast.structures.boxes import outward, rounded_down

NO_LIST = -1


class PostingArrays(NamedTuple):
    """One row a list (three arrays), the arena (three arrays), and one row a row (two arrays); saved by these names."""

    offsets: np.ndarray  # int64[n_lists]  first entry in the arena
    counts: np.ndarray  # int32[n_lists]
    rooms: np.ndarray  # int32[n_lists]  how many entries fit before the list must move
    rows: np.ndarray  # int32[arena]
    pivots: np.ndarray  # int32[arena]    a term that must occur in the message, or NO_TERM
    boxes: np.ndarray  # float32[arena,4]
    lists: np.ndarray  # int32[n_rows]   the row's list, or NO_LIST
    places: np.ndarray  # int32[n_rows]   its position in the list


class Postings:
    """Posting lists that change. Kernels of methods scan them with `scan_list`."""

    def __init__(self) -> None:
        self.arrays = _laid_out(np.zeros(0, np.int64), 0)
        self._used = 0
        self._live = 0

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)

    def build(
        self, entries: tuple[np.ndarray, np.ndarray, np.ndarray], boxes: np.ndarray, n_lists: int, n_rows: int
    ) -> None:
        """Replace all lists by `entries` = (lists, rows, pivots), with the exact boxes of the rows."""
        lists, rows, pivots = entries
        self.arrays = _laid_out(np.bincount(lists, minlength=n_lists), n_rows)
        self._used = self._live = len(rows)
        _append(self.arrays, entries, outward(boxes), 0, 0)

    def append(
        self, entries: tuple[np.ndarray, np.ndarray, np.ndarray], boxes: np.ndarray, n_lists: int, n_rows: int
    ) -> None:
        """Append entries to lists, which may be new."""
        self._make_lists(n_lists, n_rows)
        rounded, done = outward(boxes), 0
        while True:
            done, self._used = _append(self.arrays, entries, rounded, done, self._used)
            if done == len(entries[0]):
                break
            self._make_room(int(self.arrays.rooms[entries[0][done]]) * 2 + 4)
        self._live += len(rounded)

    def remove(self, rows: np.ndarray) -> None:
        """Remove rows from their lists, each in constant time: the last entry of the list takes its place."""
        _remove(self.arrays, rows)
        self._live -= len(rows)

    def _make_lists(self, n_lists: int, n_rows: int) -> None:
        old = self.arrays
        self.arrays = old._replace(
            offsets=grown(old.offsets, n_lists, fill=0),
            counts=grown(old.counts, n_lists, fill=0),
            rooms=grown(old.rooms, n_lists, fill=0),
            lists=grown(old.lists, n_rows, fill=NO_LIST),
            places=grown(old.places, n_rows),
        )

    def _make_room(self, needed: int) -> None:
        """Make room for `needed` more entries at the end of the arena: pack it if it has many holes, then grow it."""
        if has_many_holes(self._used, int(self.arrays.rooms.sum(dtype=np.int64))):
            self._pack()
        a = self.arrays
        size = self._used + needed
        self.arrays = a._replace(rows=grown(a.rows, size), pivots=grown(a.pivots, size), boxes=grown(a.boxes, size))

    def _pack(self) -> None:
        old = self.arrays
        new = _laid_out(old.counts, 0)
        _copy_lists(old, new)
        self.arrays = new._replace(lists=old.lists, places=old.places)
        self._used = len(new.rows)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        arrays = self.arrays._asdict()
        for name in ("rows", "pivots", "boxes"):
            arrays[name] = arrays[name][: self._used]
        return {f"posting_{name}": array for name, array in arrays.items()}, {"live": self._live}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, int]) -> None:
        self.arrays = PostingArrays(*(arrays[f"posting_{name}"] for name in PostingArrays._fields))
        self._used, self._live = len(self.arrays.rows), header["live"]


def _laid_out(counts: np.ndarray, n_rows: int) -> PostingArrays:
    """Empty lists with room for exactly `counts` entries."""
    starts = starts_of(counts)
    return PostingArrays(
        starts[:-1].copy(),
        np.zeros(len(counts), np.int32),
        counts.astype(np.int32),
        np.empty(starts[-1], np.int32),
        np.empty(starts[-1], np.int32),
        np.empty((starts[-1], 4), np.float32),
        np.full(n_rows, NO_LIST, np.int32),
        np.empty(n_rows, np.int32),
    )


@kernel
def _append(lists, entries, boxes, done, used):
    """Append entries from `done` on until the arena is full; return how many are done, and the end of the arena."""
    wanted, rows, pivots = entries
    for i in range(done, len(wanted)):
        which = wanted[i]
        if lists.counts[which] == lists.rooms[which]:
            room = larger_room(lists.counts[which])
            if used + room > len(lists.rows):
                return i, used
            _copy_list(lists, which, lists, used)
            lists.offsets[which] = used
            lists.rooms[which] = room
            used += room
        place = lists.counts[which]
        target = lists.offsets[which] + place
        lists.rows[target] = rows[i]
        lists.pivots[target] = pivots[i]
        lists.boxes[target] = boxes[i]
        lists.lists[rows[i]] = which
        lists.places[rows[i]] = place
        lists.counts[which] = place + 1
    return len(wanted), used


@lean_kernel
def _copy_list(old, which, new, target):
    """Copy the entries of a list to the arena of `new`, from `target` on.

    Counting the references of both tuples took 0.25 us for each list that moves, as long as the rest of an insert.
    """
    source = old.offsets[which]
    for k in range(old.counts[which]):
        new.rows[target + k] = old.rows[source + k]
        new.pivots[target + k] = old.pivots[source + k]
        for side in range(4):
            new.boxes[target + k, side] = old.boxes[source + k, side]


@kernel
def _copy_lists(old, new):
    for which in range(len(old.counts)):
        new.counts[which] = old.counts[which]
        _copy_list(old, which, new, new.offsets[which])


@kernel
def _remove(lists, rows):
    for i in range(len(rows)):
        which = lists.lists[rows[i]]
        gap = lists.offsets[which] + lists.places[rows[i]]
        last = lists.offsets[which] + lists.counts[which] - 1
        moved = lists.rows[last]
        lists.rows[gap] = moved
        lists.pivots[gap] = lists.pivots[last]
        lists.boxes[gap] = lists.boxes[last]
        lists.places[moved] = lists.places[rows[i]]
        lists.lists[rows[i]] = NO_LIST
        lists.counts[which] -= 1


@kernel
def scan_list(lists, which, store, marks, box, out, n):
    """Write the rows of one list that match to out[n:]; return (out, n), with a larger `out` where it was too small."""
    first = lists.offsets[which]
    out = with_room(out, n, lists.counts[which] + 1)
    stop = overlapping(lists.boxes, first, first + lists.counts[which], box, out, n)
    stop = _marked(lists.pivots, first, marks, out, n, stop)
    for j in range(n, stop):
        row = lists.rows[first + out[j]]
        if row_holds(store, row, marks, box):
            out[n] = row
            n += 1
    return out, n


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
