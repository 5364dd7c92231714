"""Lists of rows with what a scan needs inline: the box (float32, rounded outward) and one more term to test.

Each row is in exactly one list, so no pair is ever seen twice. A list is a run of one arena; a full list moves to the
end of the arena with half as much room again, and the arena is packed once a third of it is holes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.matching.predicate import row_holds
from nearcast.structures.boxes import outward, overlaps, rounded_down

NO_LIST = -1


class PostingArrays(NamedTuple):
    """The first three by list, the next three by place in the arena, the last two by row."""

    offsets: np.ndarray  # int64[n_lists]  where the list lies
    counts: np.ndarray  # int32[n_lists]
    rooms: np.ndarray  # int32[n_lists]  how many fit before it must move
    rows: np.ndarray  # int32[arena]
    pivots: np.ndarray  # int32[arena]    a term that must occur, or NO_TERM
    boxes: np.ndarray  # float32[arena,4]
    lists: np.ndarray  # int32[n_rows]   the row's list, or NO_LIST
    places: np.ndarray  # int32[n_rows]   its place within the list


class Postings:
    """Builds, appends, removes; scanning is a kernel, for methods to call."""

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
        """Start anew with `entries` = (lists, rows, pivots) and the rows' exact boxes."""
        lists, rows, pivots = entries
        self.arrays = _laid_out(np.bincount(lists, minlength=n_lists), n_rows)
        self._used = self._live = len(rows)
        _append(self.arrays, entries, outward(boxes), 0, 0)

    def append(
        self, entries: tuple[np.ndarray, np.ndarray, np.ndarray], boxes: np.ndarray, n_lists: int, n_rows: int
    ) -> None:
        """Add entries to lists, old or new."""
        self._make_lists(n_lists, n_rows)
        rounded, done = outward(boxes), 0
        while True:
            done, self._used = _append(self.arrays, entries, rounded, done, self._used)
            if done == len(entries[0]):
                break
            self._make_room(int(self.arrays.rooms[entries[0][done]]) * 2 + 4)
        self._live += len(rounded)

    def remove(self, rows: np.ndarray) -> None:
        """Take rows out of their lists, each in constant time: the last of the list takes the place."""
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
        """Room for `needed` more at the arena's end: by packing if a third is holes, else by growing."""
        if self._used > 1024 and 3 * int(self.arrays.rooms.sum(dtype=np.int64)) < 2 * self._used:
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
    """Empty lists with exactly the room that `counts` asks for."""
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
    """Append entries from `done` on until the arena is full; return how many are done, and the arena's end."""
    wanted, rows, pivots = entries
    for i in range(done, len(wanted)):
        which = wanted[i]
        if lists.counts[which] == lists.rooms[which]:
            room = lists.counts[which] + lists.counts[which] // 2 + 2
            if used + room > len(lists.rows):
                return i, used
            _move(lists, which, used)
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


@kernel
def _move(lists, which, target):
    source = lists.offsets[which]
    for k in range(lists.counts[which]):
        lists.rows[target + k] = lists.rows[source + k]
        lists.pivots[target + k] = lists.pivots[source + k]
        lists.boxes[target + k] = lists.boxes[source + k]


@kernel
def _copy_lists(old, new):
    for which in range(len(old.counts)):
        source, target = old.offsets[which], new.offsets[which]
        new.counts[which] = old.counts[which]
        for k in range(old.counts[which]):
            new.rows[target + k] = old.rows[source + k]
            new.pivots[target + k] = old.pivots[source + k]
            new.boxes[target + k] = old.boxes[source + k]


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
    """Write the rows of one list that hold to out[n:]; return (out, n), out being larger where it had to be."""
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
    """Keep those of out[n:stop] whose pivot is marked, or who have none; return the new stop."""
    for j in range(n, stop):
        pivot = pivots[first + out[j]]
        if pivot < 0 or marks[pivot] != 0:
            out[n] = out[j]
            n += 1
    return n


@kernel
def overlapping(boxes, first, stop, box, out, n):
    """Write the places of the rounded boxes that overlap to out[n:], counted from `first`; return the new n.

    Each place is written and kept or not by a sum: 1.7 ns a box, where branches that no machine can foresee cost 6.
    """
    rounded = rounded_down(box[0]), rounded_down(box[1]), -rounded_down(-box[2]), -rounded_down(-box[3])
    for k in range(first, stop):
        out[n] = k - first
        n += np.int64(overlaps(boxes, k, rounded))
    return n
