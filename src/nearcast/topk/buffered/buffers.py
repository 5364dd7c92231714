"""The buffer of each row: its best messages, best first, and runners-up that may replace them.

A row has a cut, a place in the order (score, arrival). Its buffer has every live message of the window from the cut on,
except messages that cannot matter: a message is dominated when k newer messages are better, since all of those expire
later. While a buffer has k entries, its first k are the best k of the window. The column `theta` of a row is the score
of its cut, so a new message belongs into the buffer if its score is at least theta. A row whose theta is COMPLETE has
no cut: its buffer needs no refill, however few entries it has.

A policy says when a buffer is full. Then dominated entries go first; if too few were, the cut rises and the buffer
keeps its best entries. So a buffer has a size limit under any stream. Policies that count dominators drop dominated
entries at once; a buffer of theirs that has a cut is never full, and one that is complete gets a cut when it is full.

An entry takes 6 bytes: the arrival number and the score rounded to 16 bits; 10 where dominators are counted. Rounding
keeps the order of scores; where two rounded scores are equal, and for what is reported, the exact score is computed
again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.topk.buffered.exact import exact_score
from nearcast.topk.score import THETA

COMPLETE = -1.0
"""The theta of a row whose buffer has every message of the window that shares a term with it, but dominated ones."""

NO_LIMIT = 1 << 30

UNIT = 4
"""The room of a buffer is a multiple of it."""

N_CLASSES = 64
"""Rooms of up to so many units are used again for other buffers when a buffer leaves them."""

END, USED, FREE = range(3)
"""Positions in `head`: the end of the entries; entries in rooms that are in use; from FREE on, by units, the start of
the first free room of that size, or -1. The start of the next one is in its first two arrivals.
"""

HOLES_SHARE = 16
"""Buffers are packed, instead of their arrays growing, when holes take more than a sixteenth of the room in use."""


class BufferArrays(NamedTuple):
    """Entries of all rows, each row's in one stretch. A row is a row of `TopRows`."""

    rounded: np.ndarray  # uint16[...]  scores, see `rounded_score`
    arrivals: np.ndarray  # int32[...]
    dominators: np.ndarray  # int32[...]  newer and better messages so far; empty if they are counted only when needed
    starts: np.ndarray  # int64[n]  where a row's entries start
    rooms: np.ndarray  # int32[n]  entries that fit
    counts: np.ndarray  # int32[n]
    sizes: np.ndarray  # int32[n,2]  a full buffer has more than [0] entries; it then keeps [1]


class Buffers:
    """The buffers of all rows."""

    def __init__(self, counts_dominators: bool) -> None:
        self.counts_dominators = counts_dominators
        entries = (np.empty(0, np.uint16), np.empty(0, np.int32), np.empty(0, np.int32))
        columns = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))
        self.arrays = BufferArrays(*entries, *columns, np.empty((0, 2), np.int32))
        self.head = np.full(FREE + N_CLASSES + 1, -1, np.int64)
        self.head[:FREE] = 0

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self.arrays))

    def add_rows(self, rows: np.ndarray, high: int, sizes: np.ndarray) -> None:
        """Empty buffers for new rows; `high` is the number of row numbers, `sizes` int32[n,2] as in BufferArrays."""
        arrays = self.arrays
        self.arrays = arrays._replace(
            **{name: grown(getattr(arrays, name), high, fill=0) for name in ("starts", "rooms", "counts", "sizes")}
        )
        self.arrays.counts[rows] = 0
        self.arrays.rooms[rows] = 0
        self.arrays.sizes[rows] = sizes

    def remove_rows(self, rows: np.ndarray) -> None:
        free_rooms(self.arrays, self.head, rows)

    def make_room(self, rows: np.ndarray, extra: int) -> None:
        """Make sure that each of these rows can take `extra` more entries without the arrays growing."""
        self.reserve(int(room_needed(self.arrays, rows, extra)))

    def reserve(self, needed: int) -> None:
        """Make sure that so many entries fit behind the last one."""
        if self.head[END] + needed <= len(self.arrays.rounded):
            return
        if self.head[END] - self.head[USED] > self.head[USED] // HOLES_SHARE:
            self._pack(needed + int(self.head[USED]) // 32)
        end = int(self.head[END]) + needed
        if end > len(self.arrays.rounded):
            self._resize(end + end // 32)

    def _resize(self, n: int) -> None:
        """Make the arrays of entries longer. Half as much again, as elsewhere, would be a third of all memory."""
        old, end = self.arrays, int(self.head[END])
        rounded, arrivals = np.empty(n, np.uint16), np.empty(n, np.int32)
        dominators = np.empty(n if self.counts_dominators else 0, np.int32)
        for new, column in ((rounded, old.rounded), (arrivals, old.arrivals), (dominators, old.dominators)):
            new[:end] = column[:end]
        self.arrays = old._replace(rounded=rounded, arrivals=arrivals, dominators=dominators)

    def _pack(self, needed: int) -> None:
        """Copy the entries into arrays without holes."""
        old = self.arrays
        end = int(self.head[USED]) + needed
        dominators = np.empty(end if self.counts_dominators else 0, np.int32)
        entries = old._replace(
            rounded=np.empty(end, np.uint16), arrivals=np.empty(end, np.int32), dominators=dominators
        )
        self.head[:FREE] = copy_entries(old, entries)
        self.head[FREE:] = -1
        self.arrays = entries

    def restore(self, rows: np.ndarray, rounded: np.ndarray, arrivals: np.ndarray, starts: np.ndarray) -> None:
        """Fill the empty buffers of these rows; the entries of row r are those from starts[r] to starts[r + 1]."""
        self.reserve(len(rounded) + (UNIT + 1) * len(rows))
        restore_all(self.arrays, self.head, rows, rounded, arrivals, starts)

    def pack(self) -> None:
        """Give back the room that no buffer uses, but for some that buffers will soon need."""
        self._pack(int(self.head[USED]) // 32 + 64)

    def renumber(self, shift: int) -> None:
        """Subtract from all arrival numbers."""
        self.arrays.arrivals[: self.head[END]] -= shift
        self.pack()  # free rooms had their links there


@inline_kernel
def rounded_score(score):
    """A score in units of 1 / 65535, rounded down. It is at most 1, but for an error of its last bit."""
    return np.uint16(min(score, 1.0) * 65535.0)


@lean_kernel
def room_needed(buffers, rows, extra):
    """Entries to allot so that each of these rows can take `extra` more."""
    needed = 0
    for row in rows:
        count = buffers.counts[row] + extra
        if count > buffers.rooms[row]:
            needed += room_for(count)
    return needed


@inline_kernel
def room_for(count):
    """The room of a buffer that gets `count` entries: whole units, and one entry to spare.

    Packing must not take the room that `room_needed` has counted on.
    """
    return (count + UNIT) // UNIT * UNIT


@lean_kernel
def _release(buffers, head, start, room):
    """Let other buffers use a room."""
    head[USED] -= room
    units = room // UNIT
    if 0 < units <= N_CLASSES:
        following = head[FREE + units]
        buffers.arrivals[start] = following >> 31
        buffers.arrivals[start + 1] = following & 0x7FFFFFFF
        head[FREE + units] = start


@lean_kernel
def _allot(buffers, head, room):
    """The start of a room: a free one of this size, or a new one at the end, where there is space for it."""
    units = room // UNIT
    start = head[FREE + units] if units <= N_CLASSES else np.int64(-1)
    if start >= 0:
        head[FREE + units] = np.int64(buffers.arrivals[start]) << 31 | buffers.arrivals[start + 1]
    else:
        start = head[END]
        head[END] += room
    head[USED] += room
    return start


@lean_kernel
def free_rooms(buffers, head, rows):
    """Empty the buffers of these rows, and free their rooms."""
    for row in rows:
        _release(buffers, head, buffers.starts[row], buffers.rooms[row])
        buffers.counts[row] = 0
        buffers.rooms[row] = 0


@lean_kernel
def copy_entries(old, buffers):
    """Copy the stretches of all rows, one after another, with little spare room; return the end, twice.

    `starts`, `rooms` and `counts` of both are the same arrays.
    """
    end = 0
    for row in range(len(old.starts)):
        start = old.starts[row]
        for k in range(old.counts[row]):
            buffers.rounded[end + k] = old.rounded[start + k]
            buffers.arrivals[end + k] = old.arrivals[start + k]
            if len(old.dominators):
                buffers.dominators[end + k] = old.dominators[start + k]
        buffers.starts[row] = end
        buffers.rooms[row] = min(old.rooms[row], room_for(old.counts[row]))
        end += buffers.rooms[row]
    return end, end


@lean_kernel
def _fit(buffers, head, row, count):
    """Move the row's entries to a larger room unless `count` entries fit. `Buffers.make_room` was called."""
    if count > buffers.rooms[row]:
        _move(buffers, head, row, room_for(count))


@lean_kernel
def _trim(buffers, head, row):
    """Give back what is much too large in a row's room: by moving to a free room, or by dividing its own.

    The end of the entries stays where it is: `Buffers.make_room` has counted on it for others.
    """
    room = room_for(buffers.counts[row])
    if buffers.rooms[row] < room + 2 * UNIT:
        return
    if room <= UNIT * N_CLASSES and head[FREE + room // UNIT] >= 0:
        _move(buffers, head, row, room)
        return
    _release(buffers, head, buffers.starts[row] + room, buffers.rooms[row] - room)
    buffers.rooms[row] = room


@lean_kernel
def _move(buffers, head, row, room):
    """Move the row's entries to another room. There is space for it."""
    start, target = buffers.starts[row], _allot(buffers, head, room)
    for k in range(buffers.counts[row]):
        buffers.rounded[target + k] = buffers.rounded[start + k]
        buffers.arrivals[target + k] = buffers.arrivals[start + k]
        if len(buffers.dominators):
            buffers.dominators[target + k] = buffers.dominators[start + k]
    _release(buffers, head, start, buffers.rooms[row])
    buffers.starts[row] = target
    buffers.rooms[row] = room


@lean_kernel
def insert_entry(buffers, head, inputs, row, score, arrival):
    """Put the newest message into a buffer; return its position. It is better than all entries of an equal score."""
    count = buffers.counts[row]
    _fit(buffers, head, row, count + 1)
    start = buffers.starts[row]
    target = _position(buffers, inputs, row, score)
    for k in range(start + count, target, -1):
        buffers.rounded[k] = buffers.rounded[k - 1]
        buffers.arrivals[k] = buffers.arrivals[k - 1]
        if len(buffers.dominators):
            buffers.dominators[k] = buffers.dominators[k - 1] + 1
    buffers.rounded[target] = rounded_score(score)
    buffers.arrivals[target] = arrival
    if len(buffers.dominators):
        buffers.dominators[target] = 0
    buffers.counts[row] = count + 1
    return target - start


@lean_kernel
def _position(buffers, inputs, row, score):
    """The position of the first entry whose score is at most this one, or the end."""
    start, rounded = buffers.starts[row], rounded_score(score)
    last = start + buffers.counts[row]
    while last > start and buffers.rounded[last - 1] < rounded:
        last -= 1
    first = last
    while first > start and buffers.rounded[first - 1] == rounded:
        first -= 1
    while first < last:  # equal when rounded: most often all of them are really equal
        middle = first if exact_score(inputs, row, buffers.arrivals[first]) <= score else (first + last) >> 1
        if exact_score(inputs, row, buffers.arrivals[middle]) <= score:
            last = middle
        else:
            first = middle + 1
    return last


@lean_kernel
def shrink(buffers, head, inputs, row):
    """Drop what a buffer need not keep; return whether its theta rose."""
    rows = inputs.rows
    if len(buffers.dominators):
        _drop_counted(buffers, row, rows.ks[row])
        if rows.numbers[row, THETA] >= 0.0:
            return False
    if buffers.counts[row] <= buffers.sizes[row, 0]:
        return False
    keep = buffers.sizes[row, 1]
    if len(buffers.dominators) == 0 and keep < buffers.sizes[row, 0]:
        start = buffers.starts[row]
        buffers.counts[row] = drop_dominated(
            buffers.rounded, buffers.arrivals, start, buffers.counts[row], rows.ks[row]
        )
        if buffers.counts[row] <= (keep + buffers.sizes[row, 0]) // 2:
            _trim(buffers, head, row)
            return False
    buffers.counts[row] = keep
    _trim(buffers, head, row)
    rows.numbers[row, THETA] = exact_score(inputs, row, buffers.arrivals[buffers.starts[row] + keep - 1])
    return True


@lean_kernel
def _drop_counted(buffers, row, k):
    """Drop the entries with k dominators or more."""
    start, n = buffers.starts[row], 0
    for i in range(start, start + buffers.counts[row]):
        if buffers.dominators[i] < k:
            buffers.rounded[start + n] = buffers.rounded[i]
            buffers.arrivals[start + n] = buffers.arrivals[i]
            buffers.dominators[start + n] = buffers.dominators[i]
            n += 1
    buffers.counts[row] = n


@lean_kernel
def drop_dominated(scores, arrivals, start, count, k):
    """Drop entries to which k kept entries are better and newer; return how many stay.

    The `count` entries from `start` on are sorted, best first.
    """
    n = 0
    for i in range(start, start + count):
        newer = 0
        for j in range(start, start + n):
            if arrivals[j] > arrivals[i]:
                newer += 1
        if newer < k:
            scores[start + n] = scores[i]
            arrivals[start + n] = arrivals[i]
            n += 1
    return n


@lean_kernel
def count_dominators(buffers, row):
    """Set the dominators of all entries of a row, after a refill."""
    start = buffers.starts[row]
    for i in range(start, start + buffers.counts[row]):
        newer = 0
        for j in range(start, i):
            if buffers.arrivals[j] > buffers.arrivals[i]:
                newer += 1
        buffers.dominators[i] = newer


@lean_kernel
def drop_expired(buffers, row, first):
    """Drop the entries that arrived before `first`."""
    start, n = buffers.starts[row], 0
    for i in range(start, start + buffers.counts[row]):
        if buffers.arrivals[i] >= first:
            buffers.rounded[start + n] = buffers.rounded[i]
            buffers.arrivals[start + n] = buffers.arrivals[i]
            if len(buffers.dominators):
                buffers.dominators[start + n] = buffers.dominators[i]
            n += 1
    buffers.counts[row] = n


@lean_kernel
def refilled(buffers, head, row, scores, arrivals, n):
    """Replace the entries of a row by the first n of these, which are sorted, best first."""
    _fit(buffers, head, row, n)
    start = buffers.starts[row]
    for k in range(n):
        buffers.rounded[start + k] = rounded_score(scores[k])
        buffers.arrivals[start + k] = arrivals[k]
    _complete_refill(buffers, head, row, n)


@lean_kernel
def _complete_refill(buffers, head, row, n):
    """Count the new entries of a row and their dominators."""
    buffers.counts[row] = n
    if len(buffers.dominators):
        count_dominators(buffers, row)
    _trim(buffers, head, row)


@lean_kernel
def restore_all(buffers, head, rows, rounded, arrivals, starts):
    """Fill empty buffers; the entries of row r are those from starts[r] to starts[r + 1]."""
    for row in rows:
        n = starts[row + 1] - starts[row]
        _fit(buffers, head, row, n)
        for k in range(n):
            buffers.rounded[buffers.starts[row] + k] = rounded[starts[row] + k]
            buffers.arrivals[buffers.starts[row] + k] = arrivals[starts[row] + k]
        _complete_refill(buffers, head, row, n)


@lean_kernel
def oldest_entry(buffers, row):
    """The smallest arrival number in a buffer that has entries."""
    start = buffers.starts[row]
    oldest = buffers.arrivals[start]
    for k in range(start + 1, start + buffers.counts[row]):
        oldest = min(oldest, buffers.arrivals[k])
    return oldest
