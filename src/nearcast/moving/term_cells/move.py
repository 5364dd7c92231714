"""Moves: one pass over the messages in the cells of a row's old and new box gives the pairs that begin and cease."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, lean_kernel
from nearcast.matching.store import RowArrays
from nearcast.moving.entry_lists.lists import (
    CORNER,
    COUNT,
    FULL,
    HEADS,
    LEVEL,
    NUMBER,
    OTHER_CORNER,
    ROOM,
    SIGNATURE,
    START,
    TOTAL,
    Entry,
    other_corner,
    packed_pair,
)
from nearcast.moving.entry_lists.place_codes import (
    AT_THE_BORDER,
    BITS,
    NOWHERE,
    SURELY,
    CodedBox,
    coded_box,
    corner_code,
    overlap_of,
)
from nearcast.moving.pairs import boxes_overlap, has_terms
from nearcast.moving.term_cells.boxes import KEY, SINGLE, lists_near, move_box, spot_word

BEGINS = np.int64(1) << 31
"""Set in a packed pair that begins to hold; the others cease to."""

BOTH, CEASING, BEGINNING = 0, 1, 2
"""Which pairs a scan reports."""


class Moves(NamedTuple):
    """Rows, sorted by their term, and their new boxes."""

    rows: np.ndarray  # int32[n]
    boxes: np.ndarray  # float64[n,4]


class Move(NamedTuple):
    """The move of one row."""

    rows: RowArrays  # with the old boxes
    row: int
    boxes: np.ndarray  # float64[n,4]  the new boxes
    number: int  # of this move
    old: CodedBox
    new: CodedBox
    signature: int
    is_single: bool


@lean_kernel
def move_rows(cells, rows, messages, moves, out, done):
    """(pairs, moves done): moves rows from position `done` on, until `out` or the arena is full.

    `moves` are the rows and their new boxes. A move is done as a whole or not at all.
    """
    n, wanted = np.int64(0), moves.rows
    for i in range(done, len(wanted)):
        row, box = np.int64(wanted[i]), moves.boxes[i]
        entry = _moved_entry(cells, row, box)
        own, spots = cells.own, cells.spots
        old = coded_box(_word(own, row, spots, CORNER), _word(own, row, spots, OTHER_CORNER))
        new, is_single = coded_box(entry.low, entry.high), entry.number & SINGLE != 0
        move = Move(rows, row, moves.boxes, np.int64(i), old, new, entry.signature, is_single)
        found = _scan(cells, move, messages, out, n)
        if found == FULL or not move_box(own, row, entry, spots):
            return n, np.int64(i)
        n = found
        for k in range(4):
            rows.boxes[row, k] = box[k]
    return n, np.int64(len(wanted))


@lean_kernel
def _moved_entry(cells, row, box):
    """The entry of a row at its new box."""
    own, spots = cells.own, cells.spots
    low, high = corner_code(cells.codes, box[0], box[1]), corner_code(cells.codes, box[2], box[3])
    return Entry(low, high, _word(own, row, spots, SIGNATURE), _word(own, row, spots, NUMBER))


@inline_kernel
def _word(own, row, spots, field):
    return own.words[spot_word(own, row, spots, field)]


@lean_kernel
def _scan(cells, move, messages, out, n):
    """Append the pairs of one move; return n, or FULL."""
    key, near = np.int64(cells.spots[move.row, KEY]), cells.near
    if key < len(cells.points.terms) and cells.points.terms[key, TOTAL]:
        if cells.points.terms[key, LEVEL] == 0:
            n = _scan_list(cells.points, ~key, move, messages, BOTH, out, n)
        else:
            n = _scan_cells(cells.points, cells.points.terms[key], move, messages, out, n)
    if key < len(cells.ranges.terms) and cells.ranges.terms[key, TOTAL]:
        # A range may overlap both boxes, which may be far apart: the old cells give what ceases, the new what begins.
        for k in range(lists_near(cells.ranges, key, move.old, near)):
            n = _scan_list(cells.ranges, near[k], move, messages, CEASING, out, n)
        for k in range(lists_near(cells.ranges, key, move.new, near)):
            n = _scan_list(cells.ranges, near[k], move, messages, BEGINNING, out, n)
    return n


@lean_kernel
def _scan_cells(points, own, move, messages, out, n):
    """The cells of both boxes, without those that lie inside both."""
    level, old, new = own[LEVEL], move.old, move.new
    shift = BITS - level
    first_line, last_line = min(old.below, new.below) >> shift, max(old.above, new.above) >> shift
    for line in range(first_line, last_line + 1):
        left, right, left_again, right_again = _columns(old, new, line, shift)
        head = np.int64(own[HEADS]) + (line << level)
        for cell in range(head + left, head + right + 1):
            if points.heads[cell, COUNT]:
                n = _scan_list(points, cell, move, messages, BOTH, out, n)
        for cell in range(head + left_again, head + right_again + 1):
            if points.heads[cell, COUNT]:
                n = _scan_list(points, cell, move, messages, BOTH, out, n)
    return n


@inline_kernel
def _columns(old, new, line, shift):
    """Two ranges of columns, of which the second (or both) may be empty: what to scan in a line of cells."""
    in_old = old.below >> shift <= line <= old.above >> shift
    in_new = new.below >> shift <= line <= new.above >> shift
    old_left, old_right = old.left >> shift, old.right >> shift
    new_left, new_right = new.left >> shift, new.right >> shift
    if in_old and in_new:
        left, right = max(old_left, new_left), min(old_right, new_right)
        if right < left:  # apart
            return old_left, old_right, new_left, new_right
        inside = max(old.below, new.below) >> shift < line < min(old.above, new.above) >> shift and right - left > 1
        if inside:
            return min(old_left, new_left), left, right, max(old_right, new_right)
        return min(old_left, new_left), max(old_right, new_right), np.int64(0), np.int64(-1)
    if in_old:
        return old_left, old_right, np.int64(0), np.int64(-1)
    if in_new:
        return new_left, new_right, np.int64(0), np.int64(-1)
    return np.int64(0), np.int64(-1), np.int64(0), np.int64(-1)


@lean_kernel
def _scan_list(lists, at, move, messages, reported, out, n):
    """Append the changes among the messages of a list (a head, or ~term); return n, or FULL."""
    table, at = (lists.terms, ~at) if at < 0 else (lists.heads, at)
    start, count, room = np.int64(table[at, START]), table[at, COUNT], np.int64(table[at, ROOM])
    words, other = lists.words, other_corner(lists, room)
    if n == FULL or n + count > len(out):
        return np.int64(FULL)
    for k in range(start, start + count):
        low, high = words[k], words[k + other]
        in_old, in_new = overlap_of(low, high, move.old), overlap_of(low, high, move.new)
        if in_old == in_new and in_old != AT_THE_BORDER:
            continue
        if words[k + room] & move.signature != move.signature:
            continue
        slot = np.int64(words[k + 2 * room])
        if messages.is_live[slot]:
            n = _compare(move, messages, slot, (in_old, in_new), reported, out, n)
    return np.int64(n)


@lean_kernel
def _compare(move, messages, slot, overlaps, reported, out, n):
    """Append the pair if it changes; return the new n. `overlaps` are those of the old and the new box."""
    in_old, in_new = overlaps[0] == SURELY, overlaps[1] == SURELY
    if overlaps[0] != NOWHERE and not in_old:
        in_old = boxes_overlap(move.rows.boxes, move.row, messages.boxes, slot)
    if overlaps[1] != NOWHERE and not in_new:
        in_new = boxes_overlap(move.boxes, move.number, messages.boxes, slot)
    if in_old == in_new or (in_new and reported == CEASING) or (in_old and reported == BEGINNING):
        return n
    if move.is_single or has_terms(move.rows, move.row, messages, slot):
        out[n] = packed_pair(move.row, slot) | (BEGINS if in_new else 0)
        n += 1
    return n
