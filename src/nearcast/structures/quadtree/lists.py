"""The lists of all nodes in one arena. An entry is a row, one of its terms, and its float32 box rounded outward.

Entries of a list are sorted by the rows' numbers. A full list moves to the arena's end with half as much room again.
Unlike in postings.py a row may be in several lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.structures.arena import first_from, has_many_holes, larger_room
from nearcast.structures.boxes import rounded_down

END, RESERVED = range(2)  # places in ListArrays.head


class ListArrays(NamedTuple):
    """The first three by list, the next three by place in the arena."""

    offsets: np.ndarray  # int64[n]  where the list starts
    counts: np.ndarray  # int32[n]
    rooms: np.ndarray  # int32[n]  how many entries fit before the list must move
    rows: np.ndarray  # int32[arena]
    pivots: np.ndarray  # int32[arena]  a term that a message must have
    boxes: np.ndarray  # float32[arena,4]
    head: np.ndarray  # int64[2]  the end of the arena's used part, the sum of all rooms


def empty_lists(counts: np.ndarray, rooms: np.ndarray) -> ListArrays:
    """Lists with these counts and rooms, whose entries are still to be written."""
    starts = starts_of(rooms)
    return ListArrays(
        starts[:-1].copy(),
        counts.astype(np.int32),
        rooms.astype(np.int32),
        np.empty(starts[-1], np.int32),
        np.empty(starts[-1], np.int32),
        np.empty((starts[-1], 4), np.float32),
        np.array([starts[-1], starts[-1]], np.int64),
    )


def filled_lists(counts: np.ndarray, rows: np.ndarray, pivots: np.ndarray, boxes: np.ndarray) -> ListArrays:
    """Lists with these counts and entries, one list behind the other."""
    return empty_lists(counts, counts)._replace(rows=rows, pivots=pivots, boxes=boxes)


def with_arena(lists: ListArrays, needed: int) -> ListArrays:
    """The lists with room for `needed` more entries: packed if the arena is loose, else in a larger arena."""
    end = int(lists.head[END])
    if end + needed <= len(lists.rows):
        return lists
    if has_many_holes(end, int(lists.head[RESERVED])):
        # Without slack each list would move at its next entry, and soon leave as many holes as there were.
        packed = empty_lists(lists.counts, lists.counts + lists.counts // 8)
        _copy_lists(lists, packed)
        lists, end = packed, int(packed.head[END])
    size = end + needed
    return lists._replace(
        rows=grown(lists.rows, size), pivots=grown(lists.pivots, size), boxes=grown(lists.boxes, size)
    )


def with_lists(lists: ListArrays, n: int) -> ListArrays:
    """The lists with room for n lists in all; new ones are empty."""
    return lists._replace(
        offsets=grown(lists.offsets, n, fill=0),
        counts=grown(lists.counts, n, fill=0),
        rooms=grown(lists.rooms, n, fill=0),
    )


@kernel
def _copy_lists(old, new):
    for which in range(len(old.counts)):
        copy_entries(old, old.offsets[which], new, new.offsets[which], old.counts[which])


@kernel
def copy_entries(source, first, target, at, n):
    """Copy n entries. Within one arena the two ranges may overlap."""
    _copy(source.rows, first, target.rows, at, n)
    _copy(source.pivots, first, target.pivots, at, n)
    _copy(source.boxes.reshape(-1), 4 * first, target.boxes.reshape(-1), 4 * at, 4 * n)


@kernel
def _copy(source, first, target, at, n):
    """Copy one array in the order that overwrites nothing. Lists of huge boxes have tens of thousands of entries."""
    if at > first:
        for k in range(n - 1, -1, -1):
            target[np.uint64(at + k)] = source[np.uint64(first + k)]
    else:
        for k in range(n):
            target[np.uint64(at + k)] = source[np.uint64(first + k)]


@kernel
def write_entry(lists, at, row, pivot, box):
    lists.rows[at] = row
    lists.pivots[at] = pivot
    lists.boxes[at, 0], lists.boxes[at, 1] = rounded_down(box[0]), rounded_down(box[1])
    lists.boxes[at, 2], lists.boxes[at, 3] = -rounded_down(-box[2]), -rounded_down(-box[3])


@kernel
def place_of(lists, which, numbers, row):
    """The place in the arena of a row in a sorted list, or where it belongs. Without `numbers`, rows are the order."""
    low = lists.offsets[which]
    high = low + lists.counts[which]
    if len(numbers) > 0:
        return first_from(numbers, lists.rows, low, high, numbers[row])
    return low + np.searchsorted(lists.rows[low:high], row)


@kernel
def space_for_one(lists, which):
    """The space at the arena's end that one more entry in a list takes."""
    count = np.int64(lists.counts[which])
    return larger_room(count + 1) if count == lists.rooms[which] else 0


@kernel
def has_space(lists, needed):
    return lists.head[END] + needed <= len(lists.rows)


@kernel
def open_gap(lists, which, at):
    """Make a list one entry longer, with a gap at a place of the arena; return the gap's place after a move.

    The caller has made space.
    """
    first, count = lists.offsets[which], np.int64(lists.counts[which])
    if count == lists.rooms[which]:
        head, room = lists.head, larger_room(count + 1)
        copy_entries(lists, first, lists, head[END], count)
        at += head[END] - first
        lists.offsets[which] = first = head[END]
        head[END] += room
        head[RESERVED] += room - count
        lists.rooms[which] = room
    copy_entries(lists, at, lists, at + 1, first + count - at)
    lists.counts[which] = count + 1
    return at


@kernel
def close_gap(lists, which, at):
    """Remove the entry at a place of the arena from a list."""
    copy_entries(lists, at + 1, lists, at, lists.offsets[which] + lists.counts[which] - 1 - at)
    lists.counts[which] -= 1


@kernel
def drop_list(lists, which):
    """Empty a list and give up its room."""
    lists.head[RESERVED] -= lists.rooms[which]
    lists.counts[which] = lists.rooms[which] = 0
