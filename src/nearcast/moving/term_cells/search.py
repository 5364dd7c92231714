"""Searches: the messages of a row, and the rows of a message."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.matching.store import RowArrays
from nearcast.moving.entry_lists.lists import (
    CORNER,
    COUNT,
    FINEST,
    NUMBER,
    OTHER_CORNER,
    ROOM,
    SIGNATURE,
    START,
    TOTAL,
    Lists,
    packed_pair,
)
from nearcast.moving.entry_lists.place_codes import (
    NOWHERE,
    SURELY,
    CodedBox,
    PlaceCodes,
    coded_box,
    corner_code,
    overlap_of,
    signature,
)
from nearcast.moving.pairs import boxes_overlap, has_terms
from nearcast.moving.term_cells.boxes import KEY, ROW_NUMBER, SINGLE, cells_below, lists_near, spot_word
from nearcast.moving.term_cells.points import scan_points


class Cells(NamedTuple):
    """The whole index."""

    points: Lists  # point messages under each of their terms
    ranges: Lists  # range messages under each of their terms
    own: Lists  # rows under their rarest term
    spots: np.ndarray  # int32[rows,3]  where the entry of each row is
    codes: PlaceCodes


class Query(NamedTuple):
    """One row, as a search for its messages sees it."""

    rows: RowArrays
    row: int
    box: CodedBox
    signature: int
    is_single: bool


@kernel
def find_messages(cells, rows, messages, wanted):
    """(packed pairs, their number): the live messages on which each of these rows holds."""
    out, n = np.empty(1024, np.int64), 0
    near = np.empty(2 + cells_below(cells.ranges.control[FINEST] + 1), np.int64)
    for row in wanted:
        query = _query(cells, rows, row)
        key = cells.spots[row, KEY]
        if key < len(cells.points.terms):
            out, n = scan_points(cells.points, key, query, messages, out, n)
        if key < len(cells.ranges.terms) and cells.ranges.terms[key, TOTAL]:
            for k in range(lists_near(cells.ranges, key, query.box, near)):
                out, n = _scan_ranges(cells.ranges, near[k], query, messages, out, n)
    return out, n


@kernel
def _query(cells, rows, row):
    words, own, spots = cells.own.words, cells.own, cells.spots
    low, high = words[spot_word(own, row, spots, CORNER)], words[spot_word(own, row, spots, OTHER_CORNER)]
    bits = words[spot_word(own, row, spots, SIGNATURE)]
    is_single = words[spot_word(own, row, spots, NUMBER)] & SINGLE != 0
    return Query(rows, np.int64(row), coded_box(low, high), bits, is_single)


@kernel
def _scan_ranges(lists, at, query, messages, out, n):
    table, at = (lists.terms, ~at) if at < 0 else (lists.heads, at)
    start, count, room = np.int64(table[at, START]), table[at, COUNT], np.int64(table[at, ROOM])
    words = lists.words
    out = with_room(out, n, count)
    for k in range(start, start + count):
        overlap = overlap_of(words[k], words[k + 3 * room], query.box)
        if overlap == NOWHERE or words[k + room] & query.signature != query.signature:
            continue
        slot = np.int64(words[k + 2 * room])
        if not messages.is_live[slot]:
            continue
        if overlap != SURELY and not boxes_overlap(query.rows.boxes, query.row, messages.boxes, slot):
            continue
        if query.is_single or has_terms(query.rows, query.row, messages, slot):
            out[n] = packed_pair(query.row, slot)
            n += 1
    return out, n


class Arrival(NamedTuple):
    """One message, as a search for its rows sees it."""

    slot: int
    box: CodedBox
    signature: int


@kernel
def find_rows(cells, rows, messages, slots):
    """(packed pairs, their number): the rows that hold on each of these messages."""
    out, n = np.empty(1024, np.int64), 0
    near = np.empty(2 + cells_below(cells.own.control[FINEST] + 1), np.int64)
    own, codes = cells.own, cells.codes
    for slot in slots:
        box, first = messages.boxes[slot], messages.offsets[slot]
        count = messages.n_terms[slot]
        low, high = corner_code(codes, box[0], box[1]), corner_code(codes, box[2], box[3])
        arrival = Arrival(np.int64(slot), coded_box(low, high), signature(messages.terms, first, count))
        for k in range(first, first + count):
            term = messages.terms[k]
            if term < len(own.terms) and own.terms[term, TOTAL]:
                for i in range(lists_near(own, term, arrival.box, near)):
                    out, n = _scan_rows(own, near[i], arrival, rows, messages, out, n)
    return out, n


@kernel
def _scan_rows(lists, at, arrival, rows, messages, out, n):
    table, at = (lists.terms, ~at) if at < 0 else (lists.heads, at)
    start, count, room = np.int64(table[at, START]), table[at, COUNT], np.int64(table[at, ROOM])
    words, slot = lists.words, arrival.slot
    out = with_room(out, n, count)
    for k in range(start, start + count):
        overlap = overlap_of(words[k], words[k + 3 * room], arrival.box)
        if overlap == NOWHERE or words[k + room] & arrival.signature != words[k + room]:
            continue
        number = words[k + 2 * room]
        row = np.int64(number & ROW_NUMBER)
        if overlap != SURELY and not boxes_overlap(rows.boxes, row, messages.boxes, slot):
            continue
        if number & SINGLE or has_terms(rows, row, messages, slot):
            out[n] = packed_pair(row, slot)
            n += 1
    return out, n
