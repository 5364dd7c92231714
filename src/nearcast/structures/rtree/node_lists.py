"""Inverted lists of rows, one for each pair of node and term that has rows.

One hash table (node, term) -> list, and one arena. An entry is a row and its box (float32, rounded outward), so that a
scan reads one stretch of memory. A list of one row, as nine of ten are, lies in the table itself: its value is SINGLE
minus the row. That saves 40 bytes, and three cache misses when it is read. A full list moves to the end of the arena
with half as much room again; the arena is packed once a third of it is holes. Kernels that append return the arrays,
because they may have replaced them by larger ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import copy_values
from nearcast.arrays.intmap import ABSENT, IntMapArrays, find_slot, put_one, remove_one
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.structures.arena import free_number, has_many_holes, larger_room, take_number
from nearcast.structures.boxes import rounded_down, set_box
from nearcast.structures.node_table import with_slots

SIZE, N_LISTS, N_FREE, END, IN_USE = range(5)  # positions in ListArrays.head
SINGLE = -2  # ABSENT is -1
_SMALLEST = 16


class ListArrays(NamedTuple):
    """The hash table (two arrays), one row a list (four arrays), and the arena (two arrays); saved by these names."""

    keys: np.ndarray  # int64[capacity]
    values: np.ndarray  # int32[capacity]   the list, or SINGLE minus its only row, or ABSENT
    offsets: np.ndarray  # int64[n]
    counts: np.ndarray  # int32[n]
    rooms: np.ndarray  # int32[n]           how many entries fit before the list must move
    free: np.ndarray  # int32[n]            numbers of removed lists
    rows: np.ndarray  # int32[arena]
    boxes: np.ndarray  # float32[arena, 4]
    head: np.ndarray  # int64[5]            keys, numbers given, numbers in `free`, end of the arena, room of all lists


def empty_lists() -> ListArrays:
    return laid_out(np.zeros(_SMALLEST, np.int64), np.full(_SMALLEST, ABSENT, np.int32), np.zeros(0, np.int64))


def laid_out(keys: np.ndarray, values: np.ndarray, counts: np.ndarray) -> ListArrays:
    """Empty lists with room for exactly `counts` entries. `values` are the numbers of lists in `counts`.

    Lists of two or more entries get new numbers; the other lists get their row by `put_first`.
    """
    is_long = counts >= 2
    used, numbers = np.flatnonzero(values != ABSENT), np.cumsum(is_long, dtype=np.int32) - 1
    values[used] = np.where(is_long[values[used]], numbers[values[used]], SINGLE)
    rooms = counts[is_long].astype(np.int32)
    starts, n = starts_of(rooms), len(rooms)
    return ListArrays(
        keys,
        values,
        starts[:-1].copy(),
        np.zeros(n, np.int32),
        rooms,
        np.empty(n, np.int32),
        np.empty(starts[-1], np.int32),
        np.empty((starts[-1], 4), np.float32),
        np.array([len(used), n, 0, starts[-1], starts[-1]], np.int64),
    )


def packed(lists: ListArrays) -> ListArrays:
    """The same lists without holes if a third of the arena is holes; else the lists themselves."""
    if not has_many_holes(int(lists.head[END]), int(lists.head[IN_USE])):
        return lists
    n = int(lists.head[N_LISTS])
    starts = starts_of(lists.counts[:n])
    rows, boxes = np.empty(starts[-1], np.int32), np.empty((starts[-1], 4), np.float32)
    _copy_lists(lists, starts, rows, boxes)
    offsets, free = starts[:-1].copy(), lists.free[:n].copy()
    counts, head = lists.counts[:n].copy(), lists.head.copy()
    head[END] = head[IN_USE] = starts[-1]
    return ListArrays(lists.keys, lists.values, offsets, counts, counts.copy(), free, rows, boxes, head)


@kernel
def _copy_lists(lists, starts, rows, boxes):
    for which in range(len(starts) - 1):
        for k in range(starts[which + 1] - starts[which]):
            rows[starts[which] + k] = lists.rows[lists.offsets[which] + k]
            boxes[starts[which] + k] = lists.boxes[lists.offsets[which] + k]


@kernel
def put_first(lists, key, row, box):
    """Put a row into a list of `laid_out`, which has room for it."""
    slot = find_slot(lists, key)
    if lists.values[slot] <= SINGLE:
        lists.values[slot] = SINGLE - row
    else:
        _put(lists, np.int64(lists.values[slot]), row, box)


@kernel
def append(lists, key, row, boxes):
    """Append a row to a list, which may be new; return the arrays. `boxes` are the exact boxes of all rows."""
    slot = find_slot(lists, key)
    which = np.int64(lists.values[slot])
    if which == ABSENT:
        lists = _with_space(lists, 0)
        lists.head[SIZE] += put_one(lists, key, SINGLE - row)
        return lists
    if which <= SINGLE:
        lists = _with_space(lists, 2)
        other, which = SINGLE - which, _new_list(lists)
        put_one(lists, key, which)
        _move(lists, which, 2)
        _put(lists, which, other, boxes[other])
    elif lists.counts[which] == lists.rooms[which]:
        room = larger_room(lists.counts[which])
        lists = _with_space(lists, room)
        _move(lists, which, room)
    _put(lists, which, row, boxes[row])
    return lists


@kernel
def _put(lists, which, row, box):
    """Write one more entry, for which there is room."""
    at = lists.offsets[which] + lists.counts[which]
    lists.rows[at] = row
    lists.boxes[at, 0], lists.boxes[at, 1] = rounded_down(box[0]), rounded_down(box[1])
    lists.boxes[at, 2], lists.boxes[at, 3] = -rounded_down(-box[2]), -rounded_down(-box[3])
    lists.counts[which] += 1


@kernel
def remove_row(lists, key, row):
    """Remove a row from its list; the last entry takes its place. A list that becomes empty is removed."""
    which = lists.values[find_slot(lists, key)]
    if which <= SINGLE:
        lists.head[SIZE] -= remove_one(lists, key)
        return
    first, last = lists.offsets[which], lists.counts[which] - 1
    k = 0
    while lists.rows[first + k] != row:
        k += 1
    lists.rows[first + k] = lists.rows[first + last]
    set_box(lists.boxes, first + k, lists.boxes[first + last])
    _cut(lists, key, which, last)


@kernel
def move_marked(lists, source, target, marks, boxes):
    """Move the marked rows of one list to another list, and unmark them; return the arrays."""
    which = np.int64(lists.values[find_slot(lists, source)])
    if which <= SINGLE:
        row = SINGLE - which
        marks[row] = 0
        lists.head[SIZE] -= remove_one(lists, source)
        return append(lists, target, row, boxes)
    kept = 0
    for k in range(lists.counts[which]):
        at = lists.offsets[which] + k
        row = np.int64(lists.rows[at])
        if marks[row] != 0:
            marks[row] = 0
            lists = append(lists, target, row, boxes)
        else:
            lists.rows[lists.offsets[which] + kept] = row
            lists.boxes[lists.offsets[which] + kept] = lists.boxes[at]
            kept += 1
    _cut(lists, source, which, kept)
    return lists


@kernel
def _cut(lists, key, which, n):
    """Keep the first n entries of a list. A single entry moves to the table."""
    lists.counts[which] = n
    if n > 1:
        return
    head = lists.head
    if n == 1:
        put_one(lists, key, SINGLE - lists.rows[lists.offsets[which]])
    else:
        head[SIZE] -= remove_one(lists, key)
    head[IN_USE] -= lists.rooms[which]
    lists.rooms[which] = 0
    free_number(head, N_FREE, lists.free, which)


@kernel
def _new_list(lists):
    which = take_number(lists.head, N_LISTS, N_FREE, lists.free)
    lists.counts[which] = 0
    lists.rooms[which] = 0
    return which


@kernel
def _move(lists, which, room):
    """Move a list to the end of the arena, where there is room."""
    head = lists.head
    source, target = lists.offsets[which], head[END]
    for k in range(lists.counts[which]):
        lists.rows[target + k] = lists.rows[source + k]
        set_box(lists.boxes, target + k, lists.boxes[source + k])
    lists.offsets[which] = target
    head[IN_USE] += room - lists.rooms[which]
    head[END] += room
    lists.rooms[which] = room


@kernel
def _with_space(lists, room):
    """The arrays, or larger copies, with space for one more key, one more list and `room` more entries."""
    head = lists.head
    table = with_slots(IntMapArrays(lists.keys, lists.values), head[SIZE], 1)
    offsets, counts, rooms, free = lists.offsets, lists.counts, lists.rooms, lists.free
    if head[N_FREE] == 0 and head[N_LISTS] == len(offsets):
        n = len(offsets) + len(offsets) // 2 + _SMALLEST
        offsets, counts, rooms = _larger(offsets, n), _larger(counts, n), _larger(rooms, n)
        free = _larger(free, n)
    rows, boxes = lists.rows, lists.boxes
    if head[END] + room > len(rows):
        n = len(rows) + len(rows) // 2 + room
        rows = _larger(rows, n)
        boxes = np.empty((n, 4), np.float32)
        for row in range(len(lists.boxes)):
            set_box(boxes, row, lists.boxes[row])
    return ListArrays(table.keys, table.values, offsets, counts, rooms, free, rows, boxes, head)


@kernel
def _larger(array, n):
    out = np.empty(n, array.dtype)
    copy_values(out, 0, array, 0, len(array))
    return out
