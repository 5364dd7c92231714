"""Searches: the messages of a row, and the rows of a message."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.matching.store import RowArrays
from nearcast.moving.entry_lists.lists import (
    CORNER,
    COUNT,
    FULL,
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
    overlap_of,
)
from nearcast.moving.pairs import boxes_overlap, has_terms
from nearcast.moving.term_cells.boxes import KEY, ROW_NUMBER, SINGLE, lists_near, spot_word
from nearcast.moving.term_cells.points import scan_list, scan_points


class Cells(NamedTuple):
    """The whole index."""

    points: Lists  # point messages under each of their terms
    ranges: Lists  # range messages under each of their terms
    own: Lists  # rows under their rarest term
    spots: np.ndarray  # int32[rows,3]  where the entry of each row is
    codes: PlaceCodes
    near: np.ndarray  # int64[...]  scratch: the lists near a place


class Query(NamedTuple):
    """One row, as a search for its messages sees it."""

    rows: RowArrays
    row: int
    box: CodedBox
    signature: int
    is_single: bool


@lean_kernel
def find_messages(cells, rows, messages, wanted, out, done):
    """(pairs, rows done): packs the live messages on which rows hold into `out`, from position `done` on."""
    n = np.int64(0)
    for i in range(done, len(wanted)):
        found = _messages_of(cells, rows, messages, np.int64(wanted[i]), out, n)
        if found == FULL:
            return n, np.int64(i)
        n = found
    return n, np.int64(len(wanted))


@lean_kernel
def _messages_of(cells, rows, messages, row, out, n):
    words, own, spots = cells.own.words, cells.own, cells.spots
    low, high = words[spot_word(own, row, spots, CORNER)], words[spot_word(own, row, spots, OTHER_CORNER)]
    bits = words[spot_word(own, row, spots, SIGNATURE)]
    is_single = words[spot_word(own, row, spots, NUMBER)] & SINGLE != 0
    query = Query(rows, row, coded_box(low, high), bits, is_single)
    key = spots[row, KEY]
    if key < len(cells.points.terms):
        n = scan_points(cells.points, key, query, messages, out, n)
    if n != FULL and key < len(cells.ranges.terms) and cells.ranges.terms[key, TOTAL]:
        for k in range(lists_near(cells.ranges, key, query.box, cells.near)):
            n = scan_list(cells.ranges, cells.near[k], query, messages, out, n)
            if n == FULL:
                break
    return n


class Arrival(NamedTuple):
    """One message, as a search for its rows sees it."""

    slot: int
    box: CodedBox
    signature: int


@lean_kernel
def find_rows(cells, rows, messages, batch, out, done):
    """(pairs, postings done): packs the rows that hold on a batch into `out`, from the posting `done` on."""
    n, own, near = np.int64(0), cells.own, cells.near
    for i in range(done, len(batch.terms)):
        term, at = batch.terms[i], batch.owners[i]
        if term >= len(own.terms) or own.terms[term, TOTAL] == 0:
            continue
        arrival = Arrival(np.int64(batch.slots[at]), coded_box(batch.lows[at], batch.highs[at]), batch.signatures[at])
        found = n
        for k in range(lists_near(own, term, arrival.box, near)):
            found = _scan_rows(own, near[k], arrival, rows, messages, out, found)
            if found == FULL:
                return n, np.int64(i)
        n = found
    return n, np.int64(len(batch.terms))


@lean_kernel
def _scan_rows(lists, at, arrival, rows, messages, out, n):
    table, at = (lists.terms, ~at) if at < 0 else (lists.heads, at)
    start, count, room = np.int64(table[at, START]), table[at, COUNT], np.int64(table[at, ROOM])
    words, slot = lists.words, arrival.slot
    if n + count > len(out):
        return np.int64(FULL)
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
    return np.int64(n)
