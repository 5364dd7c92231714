"""Rows and messages that are copied into several lists: scans for changes, and the place of a row in a list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel, lean_kernel
from nearcast.matching.store import RowArrays
from nearcast.moving.entry_lists.lists import (
    BOX_WIDTH,
    COUNT,
    ROOM,
    ROOMS,
    START,
    entry_at,
    has_room,
    overwrite,
    packed_pair,
    release,
    size_for,
)
from nearcast.moving.entry_lists.place_codes import AT_THE_BORDER, NOWHERE, SURELY, CodedBox, coded_box, overlap_of
from nearcast.moving.pairs import boxes_overlap, has_terms

BEGINS = np.int64(1) << 31
"""Set in a packed pair that begins to hold; the others cease to."""

CEASING, BEGINNING = 1, 2
"""Which pairs of a scan are reported: either, or their sum for both."""


class RowMove(NamedTuple):
    """A row at an old and a new box. A row that comes or goes has the same box twice, and `reported` says which."""

    rows: RowArrays
    row: int
    boxes: np.ndarray  # float64[n,4]  the new boxes
    number: int  # of this move
    old: CodedBox
    new: CodedBox
    signature: int
    is_new_only: bool  # the row is nowhere before


@lean_kernel
def lists_have_room(lists, nodes, n):
    """Whether one more entry fits into the list of each of these nodes."""
    words, heads = 0, lists.heads
    for k in range(n):
        node = nodes[k]
        if heads[node, COUNT] == heads[node, ROOM]:
            words += BOX_WIDTH * ROOMS[size_for(np.int64(heads[node, ROOM]) + 1)]
    return has_room(lists, words, 0)


@lean_kernel
def place_of_row(lists, node, row):
    """The place of a row in the list of a leaf."""
    first = np.int64(lists.heads[node, START]) + 2 * np.int64(lists.heads[node, ROOM])
    k = 0
    while lists.words[first + k] != row:
        k += 1
    return k


@lean_kernel
def drop_row(lists, node, row):
    k, last = place_of_row(lists, node, row), lists.heads[node, COUNT] - 1
    if k != last:
        overwrite(lists, lists.heads, node, k, entry_at(lists, lists.heads, node, last))
    lists.heads[node, COUNT] = last
    if last == 0:
        release(lists, lists.heads, node)


@lean_kernel
def same_within(regions, node, move):
    """Whether the old and the new box cut the same part out of a region: nothing changes there for points inside."""
    old, new, row, number = move.rows.boxes, move.boxes, move.row, move.number
    return (
        max(old[row, 0], regions[node, 0]) == max(new[number, 0], regions[node, 0])
        and max(old[row, 1], regions[node, 1]) == max(new[number, 1], regions[node, 1])
        and min(old[row, 2], regions[node, 2]) == min(new[number, 2], regions[node, 2])
        and min(old[row, 3], regions[node, 3]) == min(new[number, 3], regions[node, 3])
    )


@kernel
def scan_changes(lists, node, move, messages, reported, out, n):
    """Append the changes among the messages of a node."""
    out = with_room(out, n, lists.heads[node, COUNT])
    return out, changes_in_list(lists, node, move, messages, reported, out, n)


@lean_kernel
def changes_in_list(lists, node, move, messages, reported, out, n):
    """The number of changes in `out`, which has room for all messages of the node."""
    heads, words = lists.heads, lists.words
    start, count, room = np.int64(heads[node, START]), heads[node, COUNT], np.int64(heads[node, ROOM])
    for k in range(start, start + count):
        if words[k + room] & move.signature != move.signature:  # most entries end here, and the words lie in a row
            continue
        low, high = words[k], words[k + 3 * room]
        in_old = NOWHERE if move.is_new_only else overlap_of(low, high, move.old)
        in_new = overlap_of(low, high, move.new)
        if in_old == in_new and in_old != AT_THE_BORDER:
            continue
        slot = np.int64(words[k + 2 * room])
        if not messages.is_live[slot]:
            continue
        was, now = in_old == SURELY, in_new == SURELY
        if in_old != NOWHERE and not was:
            was = boxes_overlap(move.rows.boxes, move.row, messages.boxes, slot)
        if in_new != NOWHERE and not now:
            now = boxes_overlap(move.boxes, move.number, messages.boxes, slot)
        if was == now or not reported & (BEGINNING if now else CEASING):
            continue
        if has_terms(move.rows, move.row, messages, slot):
            out[n] = packed_pair(move.row, slot) | (BEGINS if now else 0)
            n += 1
    return n


@kernel
def scan_rows(lists, node, entry, stores, out, n):
    """Append the rows of a leaf that hold on a message."""
    out = with_room(out, n, lists.heads[node, COUNT])
    return out, _scan_rows(lists, node, entry, stores, out, n)


@lean_kernel
def _scan_rows(lists, node, entry, stores, out, n):
    """The number of pairs in `out`, which has room for all rows of the leaf."""
    rows, messages = stores
    heads, words, slot = lists.heads, lists.words, np.int64(entry.number)
    start, count, room = np.int64(heads[node, START]), heads[node, COUNT], np.int64(heads[node, ROOM])
    box = coded_box(entry.low, entry.high)
    for k in range(start, start + count):
        if words[k + room] & entry.signature != words[k + room]:
            continue
        overlap = overlap_of(words[k], words[k + 3 * room], box)
        if overlap == NOWHERE:
            continue
        row = np.int64(words[k + 2 * room])
        if overlap != SURELY and not boxes_overlap(rows.boxes, row, messages.boxes, slot):
            continue
        if has_terms(rows, row, messages, slot):
            out[n] = packed_pair(row, slot)
            n += 1
    return n
