"""Lists by (cell, term): a row is copied into every cell that it overlaps, a message under each of its terms.

Cells are those of one grid, or of the levels of a quadtree. A hash table gives the list of a (cell, term).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, probe
from nearcast.arrays.jit import kernel
from nearcast.moving.entry_lists.copies import (
    drop_row,
    lists_have_room,
    place_of_row,
    same_within,
    scan_changes,
    scan_rows,
)
from nearcast.moving.entry_lists.lists import IN_PLACE, Entry, Lists, append, overwrite
from nearcast.moving.entry_lists.place_codes import PlaceCodes, coded_box, corner_code, signature
from nearcast.moving.entry_lists.scans import BEGINNING, CEASING, NO_BOX, RowMove

USED, LACKING = 0, 1
NO_ROOM = -1
SIDE, FINEST, WORDS_FIRST = range(3)
"""Positions in `shape`: cells in a line of level 0; the finest level; whether keys begin with the term."""


class CellLists(NamedTuple):
    """The lists. Head k is that of the rows and of the messages of one (cell, term)."""

    keys: np.ndarray  # int64[capacity]  hash table from (cell, term) to head
    values: np.ndarray  # int32[capacity]
    used: np.ndarray  # int64[2]  heads in use; whether a kernel lacked room for one
    regions: np.ndarray  # float64[heads,4]  the region of the cell, without end at the border of the space
    row_terms: np.ndarray  # int32[rows]  the term of each row
    bounds: np.ndarray  # float64[4]
    shape: np.ndarray  # int64[3]
    rows: Lists
    messages: Lists
    codes: PlaceCodes


@kernel
def level_of(lists, box):
    """The level of a row: the finest whose cells are as large as the box; 0 in a grid."""
    bounds = lists.bounds
    share = max((box[2] - box[0]) / (bounds[2] - bounds[0]), (box[3] - box[1]) / (bounds[3] - bounds[1]))
    level, side = 0, 0.5 / lists.shape[SIDE]
    while level < lists.shape[FINEST] and share <= side:
        level += 1
        side *= 0.5
    return level


@kernel
def levels_of(lists, boxes):
    """int64: a mask of the levels of some rows."""
    mask = np.int64(0)
    for i in range(len(boxes)):
        mask |= np.int64(1) << level_of(lists, boxes[i])
    return mask


@kernel
def _position(value, low, high, n):
    """The column of a coordinate among n, clamped to the space. Monotone, also after rounding."""
    return np.int64(min(max((value - low) / (high - low) * n, 0.0), n - 1.0))


@kernel
def heads_of(lists, term, level, box, creates, out, n):
    """(out, n): the heads of a term in the cells of a level that a box overlaps, behind out[:n].

    Heads that are absent are left out, or created; n is NO_ROOM if there is no room for them.
    """
    bounds, across = lists.bounds, lists.shape[SIDE] << level
    left, below = _position(box[0], bounds[0], bounds[2], across), _position(box[1], bounds[1], bounds[3], across)
    right, above = _position(box[2], bounds[0], bounds[2], across), _position(box[3], bounds[1], bounds[3], across)
    out = with_room(out, n, (right - left + 1) * (above - below + 1))
    for line in range(below, above + 1):
        for column in range(left, right + 1):
            cell = (np.int64(level) << 26) | (line << 13) | column
            key = (np.int64(term) << 32) | cell if lists.shape[WORDS_FIRST] else (cell << 32) | np.int64(term)
            slot = probe(lists.keys, lists.values, key)
            if lists.values[slot] == ABSENT:
                if not creates:
                    continue
                if not _create(lists, slot, key, (level, column, line)):
                    return out, np.int64(NO_ROOM)
            out[n] = lists.values[slot]
            n += 1
    return out, np.int64(n)


@kernel
def _create(lists, slot, key, place):
    head = lists.used[USED]
    if head == len(lists.regions) or 10 * (head + 1) > 7 * len(lists.keys):
        lists.used[LACKING] = 1
        return False
    lists.keys[slot], lists.values[slot] = key, head
    lists.used[USED] += 1
    level, column, line = place
    across, bounds, region = lists.shape[SIDE] << level, lists.bounds, lists.regions[head]
    width, height = (bounds[2] - bounds[0]) / across, (bounds[3] - bounds[1]) / across
    # A coordinate at a border may be rounded to either side, so regions are half a cell wider than their cells.
    region[0] = bounds[0] + (column - 0.5) * width if column > 0 else -np.inf
    region[1] = bounds[1] + (line - 0.5) * height if line > 0 else -np.inf
    region[2] = bounds[0] + (column + 1.5) * width if column < across - 1 else np.inf
    region[3] = bounds[1] + (line + 1.5) * height if line < across - 1 else np.inf
    return True


@kernel
def insert_rows(lists, rows, wanted, done):
    """Insert rows from position `done` on; return how many are in."""
    heads = np.empty(64, np.int32)
    for i in range(done, len(wanted)):
        row = wanted[i]
        first, count, box = rows.offsets[row], np.int64(rows.n_terms[row]), rows.boxes[row]
        heads, n = heads_of(lists, lists.row_terms[row], level_of(lists, box), box, True, heads, 0)
        if n == NO_ROOM or not lists_have_room(lists.rows, heads, n):
            return i
        low, high = corner_code(lists.codes, box[0], box[1]), corner_code(lists.codes, box[2], box[3])
        entry = Entry(low, high, signature(rows.terms, first, count), np.uint32(row))
        for k in range(n):
            append(lists.rows, lists.rows.heads, np.int64(heads[k]), entry)
    return len(wanted)


@kernel
def remove_rows(lists, rows, wanted):
    heads = np.empty(64, np.int32)
    for row in wanted:
        box = rows.boxes[row]
        heads, n = heads_of(lists, lists.row_terms[row], level_of(lists, box), box, False, heads, 0)
        for k in range(n):
            drop_row(lists.rows, np.int64(heads[k]), row)


@kernel
def find_messages(lists, rows, messages, wanted):
    """(packed pairs, n): the live messages of these rows. Range messages may come more than once."""
    out, n = np.empty(1024, np.int64), 0
    heads = np.empty(64, np.int32)
    for i in range(len(wanted)):
        row = np.int64(wanted[i])
        first, count, box = rows.offsets[row], np.int64(rows.n_terms[row]), rows.boxes[row]
        heads, length = heads_of(lists, lists.row_terms[row], level_of(lists, box), box, False, heads, 0)
        low, high = corner_code(lists.codes, box[0], box[1]), corner_code(lists.codes, box[2], box[3])
        bits = signature(rows.terms, first, count)
        move = RowMove(rows, row, rows.boxes, row, NO_BOX, coded_box(low, high), bits, False)
        for k in range(length):
            out, n = scan_changes(lists.messages, np.int64(heads[k]), move, messages, BEGINNING, out, n)
    return out, n


@kernel
def move_rows(lists, rows, messages, wanted, boxes, done):
    """(packed pairs, n, moves done): the four cases of the paper, cell by cell."""
    out, n = np.empty(1024, np.int64), 0
    before, after = np.empty(64, np.int32), np.empty(64, np.int32)
    for i in range(done, len(wanted)):
        row, old_box, new_box = np.int64(wanted[i]), rows.boxes[wanted[i]], boxes[i]
        term = lists.row_terms[row]
        before, n_old = heads_of(lists, term, level_of(lists, old_box), old_box, False, before, 0)
        after, n_new = heads_of(lists, term, level_of(lists, new_box), new_box, True, after, 0)
        if n_new == NO_ROOM or not lists_have_room(lists.rows, after, n_new):
            return out, n, i
        low, high = corner_code(lists.codes, new_box[0], new_box[1]), corner_code(lists.codes, new_box[2], new_box[3])
        was = corner_code(lists.codes, old_box[0], old_box[1]), corner_code(lists.codes, old_box[2], old_box[3])
        bits = signature(rows.terms, rows.offsets[row], np.int64(rows.n_terms[row]))
        entry = Entry(low, high, bits, np.uint32(row))
        move = RowMove(rows, row, boxes, i, coded_box(was[0], was[1]), coded_box(low, high), bits, False)
        out, n = _move_one(lists, entry, move, messages, (before[:n_old], after[:n_new]), out, n)
        rows.boxes[row] = new_box
    return out, n, len(wanted)


@kernel
def _move_one(lists, entry, move, messages, heads, out, n):
    """The cases of one move. `heads` are those of the old and of the new box."""
    changed = 0
    for head in heads[0]:
        at = np.int64(head)
        if not _contains(heads[1], head):  # case 2
            out, n = scan_changes(lists.messages, at, move, messages, CEASING, out, n)
            drop_row(lists.rows, at, move.row)
            changed = 1
            continue
        if not same_within(lists.regions, at, move):  # case 3, otherwise case 1
            out, n = scan_changes(lists.messages, at, move, messages, CEASING + BEGINNING, out, n)
        overwrite(lists.rows, lists.rows.heads, at, place_of_row(lists.rows, at, move.row), entry)
    for head in heads[1]:
        at = np.int64(head)
        if not _contains(heads[0], head):  # case 4
            out, n = scan_changes(lists.messages, at, move, messages, BEGINNING, out, n)
            append(lists.rows, lists.rows.heads, at, entry)
            changed = 1
    lists.rows.control[IN_PLACE + changed] += 1
    return out, n


@kernel
def _contains(heads, head):
    for other in heads:
        if other == head:
            return True
    return False


@kernel
def post_messages(lists, messages, slots, levels, done):
    """Post messages in the cells of these levels (a mask), from position `done` on; return how many are posted."""
    heads = np.empty(256, np.int32)
    for i in range(done, len(slots)):
        slot = slots[i]
        heads, n = _heads_of_message(lists, messages, slot, levels, True, heads)
        if n == NO_ROOM or not lists_have_room(lists.messages, heads, n):
            return i
        entry = _entry(lists, messages, slot)
        for k in range(n):
            append(lists.messages, lists.messages.heads, np.int64(heads[k]), entry)
    return len(slots)


@kernel
def match_messages(lists, rows, messages, slots, levels):
    """(packed pairs, n): the rows that hold on these messages. Pairs with range messages may come more than once."""
    out, n = np.empty(1024, np.int64), 0
    heads = np.empty(256, np.int32)
    for slot in slots:
        heads, length = _heads_of_message(lists, messages, slot, levels, False, heads)
        entry = _entry(lists, messages, slot)
        for k in range(length):
            out, n = scan_rows(lists.rows, np.int64(heads[k]), entry, (rows, messages), out, n)
    return out, n


@kernel
def _entry(lists, messages, slot):
    box = messages.boxes[slot]
    low, high = corner_code(lists.codes, box[0], box[1]), corner_code(lists.codes, box[2], box[3])
    bits = signature(messages.terms, messages.offsets[slot], np.int64(messages.n_terms[slot]))
    return Entry(low, high, bits, np.uint32(slot))


@kernel
def _heads_of_message(lists, messages, slot, levels, creates, heads):
    """(heads, n): those of all terms of a message, in the cells that it overlaps."""
    n, first = np.int64(0), messages.offsets[slot]
    for level in range(lists.shape[FINEST] + 1):
        if (levels >> level) & 1:
            for k in range(first, first + messages.n_terms[slot]):
                heads, n = heads_of(lists, messages.terms[k], level, messages.boxes[slot], creates, heads, n)
                if n == NO_ROOM:
                    return heads, n
    return heads, n
