"""The lists of all nodes in one arena, sorted by number: row, one term to test, and box (float32, rounded outward).

A full list moves to the arena's end with half as much room again. Unlike in postings.py a row may be in several lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.structures.boxes import rounded_down

END, HELD = range(2)  # places in ListArrays.head


class ListArrays(NamedTuple):
    """The first three by node, the next three by place in the arena."""

    offsets: np.ndarray  # int64[n]
    counts: np.ndarray  # int32[n]
    rooms: np.ndarray  # int32[n]  how many fit before it must move
    rows: np.ndarray  # int32[arena]
    pivots: np.ndarray  # int32[arena]  the row's rarest term
    boxes: np.ndarray  # float32[arena,4]
    head: np.ndarray  # int64[2]  the arena's end, room held by lists


def laid_out(counts: np.ndarray, rooms: np.ndarray) -> ListArrays:
    """Lists of so many entries each, which are still to be written, with so much room each."""
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


def with_arena(lists: ListArrays, needed: int) -> ListArrays:
    """The lists with room for `needed` more entries: by packing if a third of the arena is holes, else by growing."""
    end, held = int(lists.head[END]), int(lists.head[HELD])
    if end + needed <= len(lists.rows):
        return lists
    if end > 1024 and 3 * held < 2 * end:
        # Without slack each list would move at its next entry, and soon leave as many holes as there were.
        packed = laid_out(lists.counts, lists.counts + lists.counts // 8)
        _copy_lists(lists, packed)
        lists, end = packed, int(packed.head[END])
    size = end + needed
    return lists._replace(
        rows=grown(lists.rows, size), pivots=grown(lists.pivots, size), boxes=grown(lists.boxes, size)
    )


@kernel
def _copy_lists(old, new):
    for node in range(len(old.counts)):
        copy_entries(old, old.offsets[node], new, new.offsets[node], old.counts[node])


@kernel
def copy_entries(source, first, target, at, n):
    """Copy n entries. Within one arena the two stretches may overlap."""
    _copy(source.rows, first, target.rows, at, n)
    _copy(source.pivots, first, target.pivots, at, n)
    _copy(source.boxes.reshape(-1), 4 * first, target.boxes.reshape(-1), 4 * at, 4 * n)


@kernel
def _copy(source, first, target, at, n):
    """Array by array, in the order that overwrites nothing: lists of huge boxes have tens of thousands of entries."""
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
def number_of(numbers, row):
    return numbers[row] if len(numbers) > 0 else np.int64(row)


@kernel
def place_of(lists, node, numbers, number):
    """Where in the arena the first entry of a list lies whose number is not below the one given."""
    low, high = lists.offsets[node], lists.offsets[node] + lists.counts[node]
    while low < high:
        middle = (low + high) >> 1
        if number_of(numbers, lists.rows[middle]) < number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def room_for(needed):
    """The room that a list is given when it moves because it needs that much."""
    return needed + needed // 2 + 2


@kernel
def space_for_one(lists, node):
    """What one more entry in a list takes at the arena's end."""
    count = np.int64(lists.counts[node])
    return room_for(count + 1) if count == lists.rooms[node] else 0


@kernel
def has_space(lists, needed):
    return lists.head[END] + needed <= len(lists.rows)


@kernel
def open_gap(lists, node, at):
    """Make a list one entry longer, with a gap at a place of the arena; return where the gap is. There is space."""
    first, count = lists.offsets[node], np.int64(lists.counts[node])
    if count == lists.rooms[node]:
        head, room = lists.head, room_for(count + 1)
        copy_entries(lists, first, lists, head[END], count)
        at += head[END] - first
        lists.offsets[node] = first = head[END]
        head[END] += room
        head[HELD] += room - count
        lists.rooms[node] = room
    copy_entries(lists, at, lists, at + 1, first + count - at)
    lists.counts[node] = count + 1
    return at


@kernel
def close_gap(lists, node, at):
    """Take the entry at a place of the arena out of a list."""
    copy_entries(lists, at + 1, lists, at, lists.offsets[node] + lists.counts[node] - 1 - at)
    lists.counts[node] -= 1


@kernel
def empty_list(lists, node):
    """Give up a list and its room."""
    lists.head[HELD] -= lists.rooms[node]
    lists.counts[node] = lists.rooms[node] = 0
