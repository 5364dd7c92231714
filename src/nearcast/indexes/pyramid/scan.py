"""Matching messages with one run: which lists, then which entries of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import WIDTH, all_set, lowest_bit, prefetch
from nearcast.indexes.pyramid.lanes import BITS, TOPS, lane, mapped, overlaps_surely, place_word
from nearcast.indexes.pyramid.run import COARSE, FINEST, MANY, ROW, coarse_cells, first_of, length_of, levels_of
from nearcast.matching.predicate import box_overlaps

_TERM = np.uint64(0x7FFF_FFFF)


class Desk(NamedTuple):
    """Where a message is worked on; made once a batch."""

    marks: np.ndarray  # uint64[...]  a bit for each term of the message
    lists: np.ndarray  # int64[room,2]  first and last+1 entry of each list to scan; or a cell, before its list is known
    place: np.ndarray  # int64[4]  the message's box, mapped


@kernel
def match_run(run, store, messages, marks, starts):  # type: ignore[no-untyped-def]
    """Fill starts; return the rows that hold, how many lists were read and how many entries were looked at."""
    out = np.empty(1024, np.int32)
    longest = 1
    for m in range(len(starts) - 1):
        longest = max(longest, messages.term_starts[m + 1] - messages.term_starts[m])
    desk = Desk(marks, np.empty((longest * (FINEST + 1), 2), np.int64), np.empty(4, np.int64))
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        set_bits(marks, messages, m)
        if map_place(run, messages.boxes, m, desk.place):
            n_lists, n_seen = point_lists(run, messages, m, desk)
            out = with_room(out, n, n_seen)
            n = scan_lists(run, store, messages.boxes[m], desk, n_lists, out, n)
        else:
            out, n, n_lists, n_seen = scan_range(run, store, messages, m, desk, out, n)
        nodes += n_lists
        seen += n_seen
        clear_bits(marks, messages, m)
        starts[m + 1] = n
    return out[:n], nodes, seen


@kernel
def map_place(run, boxes, m, place):  # type: ignore[no-untyped-def]
    """Map a message's box; return whether it is a point."""
    place[0], place[1] = mapped(run.x_knots, boxes[m, 0]), mapped(run.y_knots, boxes[m, 1])
    if boxes[m, 2] == boxes[m, 0] and boxes[m, 3] == boxes[m, 1]:
        place[2], place[3] = place[0], place[1]
        return True
    place[2], place[3] = mapped(run.x_knots, boxes[m, 2]), mapped(run.y_knots, boxes[m, 3])
    return False


@kernel
def set_bits(marks, messages, message):  # type: ignore[no-untyped-def]
    """Mark a message's terms, one bit each."""
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        term = messages.terms[k]
        marks[term >> 6] |= np.uint64(1) << np.uint64(term & 63)


@kernel
def clear_bits(marks, messages, message):  # type: ignore[no-untyped-def]
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        marks[messages.terms[k] >> 6] = 0


@inline_kernel
def has_bit(marks, term):  # type: ignore[no-untyped-def]
    return (marks[np.int64(term >> np.uint64(6))] >> (term & np.uint64(63))) & np.uint64(1)


@kernel
def point_lists(run, messages, message, desk):  # type: ignore[no-untyped-def]
    """Write the lists that a point must look at to the desk; return how many, and how many entries they have.

    Two steps, each over all terms, so that their cache misses overlap: the nodes (most are skipped by their mask), then the
    cells of crowded terms. Each asks for the memory that the next one reads.
    """
    nodes, cells, terms, lists = run.nodes, run.starts, messages.terms, desk.lists
    x, y = desk.place[0], desk.place[1]
    bit = np.uint64(((y >> (BITS - COARSE)) << COARSE) + (x >> (BITS - COARSE)))
    n_lists, waiting = 0, len(lists)
    seen = 0
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        term = terms[k]
        if term >= len(nodes) or (nodes[term, 0] >> bit) & np.uint64(1) == 0:
            continue
        first, levels = first_of(nodes[term, 1]), levels_of(nodes[term, 1])
        if levels == 0:
            size = length_of(nodes[term, 1])
            prefetch(run.boxes, first)
            lists[n_lists, 0], lists[n_lists, 1] = first, first + size
            n_lists, seen = n_lists + 1, seen + size
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            waiting -= 1  # cells wait at the far end of the desk
            lists[waiting, 0] = first + ((y >> (BITS - level)) << level) + (x >> (BITS - level))
            prefetch(cells, lists[waiting, 0])
            first += (1 << (2 * level)) + 1
    for k in range(waiting, len(lists)):
        start, stop = np.int64(cells[lists[k, 0]]), np.int64(cells[lists[k, 0] + 1])
        prefetch(run.boxes, start)
        prefetch(run.tags, start)
        lists[n_lists, 0], lists[n_lists, 1] = start, stop
        n_lists += 1 if stop > start else 0
        seen += stop - start
    return n_lists, seen


@kernel
def scan_lists(run, store, box, desk, n_lists, out, n):  # type: ignore[no-untyped-def]
    """Write the rows of these lists that hold to out[n:]; return the new n."""
    # Arrays are taken out of their tuples once: in the loop, each access would count references, 80 ns an entry.
    boxes, tags, marks, lists = run.boxes, run.tags, desk.marks, desk.lists
    word = place_word(desk.place[0], desk.place[1], desk.place[2], desk.place[3])
    for k in range(n_lists):
        stop = lists[k, 1]
        for first in range(lists[k, 0], stop, WIDTH):
            bits = all_set(boxes, first, word, TOPS) & ((1 << min(WIDTH, stop - first)) - 1)
            while bits:
                entry = first + lowest_bit(bits)
                bits &= bits - 1
                tag = tags[entry]
                if has_bit(marks, (tag >> np.uint64(32)) & _TERM):
                    if overlaps_surely(word - boxes[entry]) or box_overlaps(store, np.int64(tag & ROW), box):
                        if tag & MANY == 0 or has_all_bits(store, np.int64(tag & ROW), marks):
                            out[n] = tag & ROW
                            n += 1
    return n


@kernel
def has_all_bits(store, row, marks):  # type: ignore[no-untyped-def]
    """Whether each positive term of the row is marked."""
    first = store.offsets[row]
    for k in range(first, first + store.n_terms[row]):
        if has_bit(marks, np.uint64(store.terms[k])) == 0:
            return False
    return True


@kernel
def scan_range(run, store, messages, message, desk, out, n):  # type: ignore[no-untyped-def]
    """For a message with a range: scan every cell that it overlaps; return (out, n, lists read, entries looked at)."""
    left, low, right, high = desk.place[0], desk.place[1], desk.place[2], desk.place[3]
    mask = coarse_cells(left, low, right, high)
    box = messages.boxes[message]
    n_lists = seen = 0
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        term = messages.terms[k]
        if term >= len(run.nodes) or run.nodes[term, 0] & mask == 0:
            continue
        where = run.nodes[term, 1]
        first, levels = first_of(where), levels_of(where)
        if levels == 0:
            out = with_room(out, n, length_of(where))
            n = scan_cell(run, store, box, desk, (first, first + length_of(where), 0, 0, 0), out, n)
            n_lists, seen = n_lists + 1, seen + length_of(where)
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            shift = BITS - level
            for row in range(low >> shift, (high >> shift) + 1):
                for column in range(left >> shift, (right >> shift) + 1):
                    start = np.int64(run.starts[first + (row << level) + column])
                    stop = np.int64(run.starts[first + (row << level) + column + 1])
                    out = with_room(out, n, stop - start)
                    n = scan_cell(run, store, box, desk, (start, stop, level, column, row), out, n)
                    n_lists, seen = n_lists + 1, seen + stop - start
            first += (1 << (2 * level)) + 1
    return out, n, n_lists, seen


@kernel
def scan_cell(run, store, box, desk, cell, out, n):  # type: ignore[no-untyped-def]
    """Scan one cell for a range. A row in many cells is reported by the one where the two boxes begin to overlap."""
    start, stop, level, column, row = cell
    boxes, tags, marks, left, low = run.boxes, run.tags, desk.marks, desk.place[0], desk.place[1]
    word = place_word(left, low, desk.place[2], desk.place[3])
    shift = BITS - level
    for first in range(start, stop, WIDTH):
        bits = all_set(boxes, first, word, TOPS) & ((1 << min(WIDTH, stop - first)) - 1)
        while bits:
            entry = first + lowest_bit(bits)
            bits &= bits - 1
            x, y = max(lane(boxes[entry], 0), left) >> shift, max(lane(boxes[entry], 1), low) >> shift
            tag = tags[entry]
            if x == column and y == row and has_bit(marks, (tag >> np.uint64(32)) & _TERM):
                if overlaps_surely(word - boxes[entry]) or box_overlaps(store, np.int64(tag & ROW), box):
                    if tag & MANY == 0 or has_all_bits(store, np.int64(tag & ROW), marks):
                        out[n] = tag & ROW
                        n += 1
    return n
