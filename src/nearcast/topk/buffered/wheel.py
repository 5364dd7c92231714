"""The rows that have a message of the window as the oldest of their buffer: a linked list for each message.

When a message expires, its list names the rows to look at. A row is in one list at most. Its list may be that of an
older message than the oldest left, since buffers also lose entries without the wheel; the row is then looked at in vain
once, and linked again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import lean_kernel
from nearcast.topk.buffered.buffers import BufferArrays, oldest_entry

UNLINKED = -1
_FIRST = -2  # the previous row of the first row in the list at position p is _FIRST - p


class WheelArrays(NamedTuple):
    """A position is an arrival number modulo the length of `heads`, as in the window's ring."""

    heads: np.ndarray  # int32[c]  the first row of each list, or UNLINKED
    nexts: np.ndarray  # int32[n]  the row after each row, or UNLINKED
    previous: np.ndarray  # int32[n]  the row before, _FIRST - position, or UNLINKED


class Wheel:
    """The lists."""

    def __init__(self) -> None:
        self.arrays = WheelArrays(*(np.empty(0, np.int32) for _ in WheelArrays._fields))

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self.arrays))

    def add_rows(self, high: int) -> None:
        """Make room for row numbers below `high`."""
        nexts, previous = (grown(array, high, fill=UNLINKED) for array in self.arrays[1:])
        self.arrays = WheelArrays(self.arrays.heads, nexts, previous)

    def fit(self, capacity: int, buffers: BufferArrays) -> None:
        """Link all rows anew if the window's ring has another length."""
        if len(self.arrays.heads) == capacity:
            return
        self.arrays.nexts[:] = UNLINKED
        self.arrays.previous[:] = UNLINKED
        self.arrays = self.arrays._replace(heads=np.full(capacity, UNLINKED, np.int32))
        link_all(self.arrays, buffers, np.arange(len(buffers.counts)))

    def link(self, rows: np.ndarray, buffers: BufferArrays) -> None:
        """Link rows that are in no list by the oldest messages of their buffers."""
        link_all(self.arrays, buffers, rows)

    def unlink(self, rows: np.ndarray) -> None:
        unlink_all(self.arrays, rows)


@lean_kernel
def link(wheel, row, arrival):
    """Put an unlinked row first in the list of a message."""
    at = arrival & (len(wheel.heads) - 1)
    following = wheel.heads[at]
    wheel.heads[at] = row
    wheel.nexts[row] = following
    wheel.previous[row] = _FIRST - at
    if following >= 0:
        wheel.previous[following] = row


@lean_kernel
def link_oldest(wheel, buffers, row):
    """Link an unlinked row by the oldest message of its buffer, if it has one."""
    if buffers.counts[row] > 0:
        link(wheel, row, oldest_entry(buffers, row))


@lean_kernel
def link_all(wheel, buffers, rows):
    for row in rows:
        link_oldest(wheel, buffers, row)


@lean_kernel
def unlink_all(wheel, rows):
    for row in rows:
        before, following = wheel.previous[row], wheel.nexts[row]
        if before == UNLINKED:
            continue
        if before >= 0:
            wheel.nexts[before] = following
        else:
            wheel.heads[_FIRST - before] = following
        if following >= 0:
            wheel.previous[following] = before
        wheel.nexts[row] = UNLINKED
        wheel.previous[row] = UNLINKED
