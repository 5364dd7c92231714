"""Matching messages with one run: which lists, then which entries of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import WIDTH, lowest_bit, passing, prefetch, sifted
from nearcast.indexes.pyramid.lanes import BITS, ONES, TOPS, lane, mapped, overlaps_surely, place_word
from nearcast.indexes.pyramid.run import COARSE, FINEST, MANY, ROW, SPARE, coarse_cells, first_of, length_of, levels_of
from nearcast.matching.predicate import box_overlaps

_TERM = np.uint64(0x7FFF_FFFF)
_UNSURE = np.uint64(1 << 62)  # of a late row: its box must be asked; MANY: its terms must be asked
_LATE_TAG = MANY | ROW
_TAGS_AHEAD = 32  # picked entries whose tags are asked for before their turn
_AHEAD = 8  # late rows, likewise
_ASKED = 64  # entries of a list whose boxes are asked for beforehand: eight cache lines


class Desk(NamedTuple):
    """Where a message is prepared; made once a batch."""

    lists: np.ndarray  # int64[room,2]  first and last+1 entry of each list to scan; or a cell, before its list is known
    place: np.ndarray  # int64[4]  the message's box, mapped
    counts: np.ndarray  # int64[3]  how many lists, how many entries they have, where cells wait; lists -1 for a range


@kernel
def match_run(run, store, messages, marks, starts, out):  # type: ignore[no-untyped-def]
    """Fill starts; return the rows that hold (in `out` if they fit), how many lists were read and how many entries.

    While a message is scanned, the memory that the next three need is on its way, each a step behind the other: what
    the nodes of its terms say, where its cells are, what boxes they have.
    """
    longest = 1
    for m in range(len(starts) - 1):
        longest = max(longest, messages.term_starts[m + 1] - messages.term_starts[m])
    desk, next_desk, later_desk = new_desk(longest), new_desk(longest), new_desk(longest)
    late, picks = np.empty(1024, np.uint64), np.zeros(1024, np.uint32)
    n = nodes = seen = 0
    n_messages = len(starts) - 1
    for m in range(-3, n_messages):
        if m + 3 < n_messages:
            ask_for_nodes(run.nodes, messages, m + 3)
        if 0 <= m + 2 < n_messages:
            prepare(run, messages, m + 2, later_desk)
        if 0 <= m + 1 < n_messages:
            open_cells(run, next_desk)
        if m >= 0:
            set_bits(marks, messages, m)
            if desk.counts[0] >= 0:
                room = desk.counts[1] + SPARE
                out, late = with_room(out, n, room), with_room(late, 0, room)
                picks = with_room(picks, 0, 2 * room + _TAGS_AHEAD)
                n_picks, n_late = pick(run, desk, marks, picks, late)
                n, n_late = keep(run.tags, (picks, n_picks), marks, late, n_late, out, n)
                n = settle(store, messages.boxes[m], marks, late, n_late, out, n)
            else:
                out, n = scan_range(run, store, (messages, m), desk, marks, out, n)
            nodes += desk.counts[0]
            seen += desk.counts[1]
            clear_bits(marks, messages, m)
            starts[m + 1] = n
        desk, next_desk, later_desk = next_desk, later_desk, desk
    return out[:n], nodes, seen


@kernel
def new_desk(longest):  # type: ignore[no-untyped-def]
    lists = np.empty((longest * (FINEST + 1), 2), np.int64)
    return Desk(lists, np.empty(4, np.int64), np.zeros(3, np.int64))


@kernel
def prepare(run, messages, message, desk):  # type: ignore[no-untyped-def]
    """Map the place; for a point, find its lists and cells."""
    if map_place(run, messages.boxes, message, desk.place):
        desk.counts[0], desk.counts[1], desk.counts[2] = point_lists(run, messages, message, desk)
    else:
        desk.counts[0] = -1


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
    return (marks[term >> np.uint64(6)] >> (term & np.uint64(63))) & np.uint64(1)


@inline_kernel
def ask_for(array, first, stop):  # type: ignore[no-untyped-def]
    """Ask for the cache lines of array[first:stop], eight words each."""
    for entry in range(first, stop, WIDTH):
        prefetch(array, entry)


@kernel
def ask_for_nodes(nodes, messages, message):  # type: ignore[no-untyped-def]
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        prefetch(nodes, 2 * np.int64(messages.terms[k]))


@kernel
def point_lists(run, messages, message, desk):  # type: ignore[no-untyped-def]
    """Write the plain lists that a point must look at to the desk, and the cells of crowded terms to its far end; ask
    for their memory. Return how many lists, how many entries they have, and where the cells begin.
    """
    nodes, cells, boxes, terms, lists = run.nodes, run.starts, run.boxes, messages.terms, desk.lists
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
            ask_for(boxes, first, first + min(size, _ASKED))
            lists[n_lists, 0], lists[n_lists, 1] = first, first + size
            n_lists, seen = n_lists + 1, seen + size
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            waiting -= 1
            lists[waiting, 0] = first + ((y >> (BITS - level)) << level) + (x >> (BITS - level))
            prefetch(cells, lists[waiting, 0])
            first += (1 << (2 * level)) + 1
    return n_lists, seen, waiting


@kernel
def open_cells(run, desk):  # type: ignore[no-untyped-def]
    """Write the lists of the cells that wait on a desk behind its others, and ask for their boxes."""
    cells, boxes, lists = run.starts, run.boxes, desk.lists
    n_lists, seen = desk.counts[0], desk.counts[1]
    if n_lists < 0:
        return
    for k in range(desk.counts[2], len(lists)):
        start, stop = np.int64(cells[lists[k, 0]]), np.int64(cells[lists[k, 0] + 1])
        ask_for(boxes, start, min(stop, start + _ASKED))
        lists[n_lists, 0], lists[n_lists, 1] = start, stop
        n_lists += 1 if stop > start else 0
        seen += stop - start
    desk.counts[0], desk.counts[1] = n_lists, seen


@kernel
def pick(run, desk, marks, picks, late):  # type: ignore[no-untyped-def]
    """Write the entries of the message's lists whose boxes surely overlap to `picks`; those that only touch, in mapped
    coordinates, and have their second term, to `late`. Return how many of each.
    """
    boxes, lists = run.boxes, desk.lists
    word = place_word(desk.place[0], desk.place[1], desk.place[2], desk.place[3])
    n = n_late = 0
    for k in range(desk.counts[0]):
        span = (lists[k, 0], lists[k, 1])
        n, touching = sifted(boxes, span, (word - ONES, word), TOPS, picks, n)
        if touching:
            n_late = add_touching(run, span, word, (picks, n), marks, late, n_late)
    return n, n_late


@kernel
def add_touching(run, span, word, room, marks, late, n_late):  # type: ignore[no-untyped-def]
    """Add the entries of a span that touch the place in mapped coordinates, no more, to the late ones."""
    boxes, tags = run.boxes, run.tags
    picks, n = room
    for i in range(n, passing(boxes, span, word, TOPS, picks, n)):
        tag = tags[picks[i]]
        if not overlaps_surely(word - boxes[picks[i]]):
            late[n_late] = (tag & _LATE_TAG) | _UNSURE
            n_late += np.int64(has_bit(marks, (tag >> np.uint64(32)) & _TERM))
    return n_late


@kernel
def keep(tags, picked, marks, late, n_late, out, n):  # type: ignore[no-untyped-def]
    """Of the entries picked = (picks, how many), write the rows that have their second term to out[n:], or to `late` if
    they have more terms. Return the new n, and how many are late.
    """
    # Indices are unsigned, since signed ones are tested for being negative: 7.5 us instead of 10.4 (A, 10 M rows, in
    # cache).
    picks, n_picks = picked
    for i in range(n_picks):
        prefetch(tags, picks[np.uint64(i + _TAGS_AHEAD)])
        tag = tags[picks[np.uint64(i)]]
        # Sums, not branches: one second term in ten is missing, at random.
        is_marked = has_bit(marks, (tag >> np.uint64(32)) & _TERM)
        is_late = is_marked & (tag >> np.uint64(63))
        out[np.uint64(n)] = tag & ROW
        n += np.int64(is_marked ^ is_late)
        late[np.uint64(n_late)] = tag & _LATE_TAG
        n_late += np.int64(is_late)
    return n, n_late


@kernel
def settle(store, box, marks, late, n_late, out, n):  # type: ignore[no-untyped-def]
    """Ask the late rows exactly what is not sure of them; write those that hold to out[n:]; return the new n.

    A stored row costs three cache misses, so those of the next rows are on their way meanwhile: a long message has
    1,700 late rows (A, 10 M rows), and took 954 us without this, 301 with it.
    """
    offsets, n_terms, terms = store.offsets, store.n_terms, store.terms
    for i in range(-2 * _AHEAD, n_late):
        if i + 2 * _AHEAD < n_late:
            row = late[i + 2 * _AHEAD] & ROW
            prefetch(offsets, row)
            prefetch(n_terms, row)
        if 0 <= i + _AHEAD < n_late:
            prefetch(terms, offsets[late[i + _AHEAD] & ROW])
        if i >= 0:
            row = np.int64(late[i] & ROW)
            has_place = late[i] & _UNSURE == 0 or box_overlaps(store, row, box)
            if has_place and (late[i] & MANY == 0 or has_all_bits(store, row, marks)):
                out[n] = row
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
def scan_range(run, store, message, desk, marks, out, n):  # type: ignore[no-untyped-def]
    """For a message with a range: scan every cell that it overlaps; return (out, n)."""
    messages, m = message
    left, low, right, high = desk.place[0], desk.place[1], desk.place[2], desk.place[3]
    mask = coarse_cells(left, low, right, high)
    picks, late, n_late = np.empty(1024, np.uint32), np.empty(1024, np.uint64), 0
    n_lists = seen = 0
    for k in range(messages.term_starts[m], messages.term_starts[m + 1]):
        term = messages.terms[k]
        if term >= len(run.nodes) or run.nodes[term, 0] & mask == 0:
            continue
        first, levels = first_of(run.nodes[term, 1]), levels_of(run.nodes[term, 1])
        size = length_of(run.nodes[term, 1])  # 0 where there are levels
        out, late, picks = with_room(out, n, size), with_room(late, n_late, size), with_room(picks, 0, size + SPARE)
        n, n_late = scan_cell(run, (desk.place, marks, picks), (first, first + size, 0, 0, 0), late, n_late, out, n)
        n_lists, seen = n_lists + (levels == 0), seen + size
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            shift = BITS - level
            for row in range(low >> shift, (high >> shift) + 1):
                for column in range(left >> shift, (right >> shift) + 1):
                    start = np.int64(run.starts[first + (row << level) + column])
                    size = np.int64(run.starts[first + (row << level) + column + 1]) - start
                    out, late = with_room(out, n, size), with_room(late, n_late, size)
                    picks = with_room(picks, 0, size + SPARE)
                    cell = (start, start + size, level, column, row)
                    n, n_late = scan_cell(run, (desk.place, marks, picks), cell, late, n_late, out, n)
                    n_lists, seen = n_lists + 1, seen + size
            first += (1 << (2 * level)) + 1
    desk.counts[0], desk.counts[1] = n_lists, seen
    out = with_room(out, n, n_late)
    return out, settle(store, messages.boxes[m], marks, late, n_late, out, n)


@kernel
def scan_cell(run, message, cell, late, n_late, out, n):  # type: ignore[no-untyped-def]
    """Scan one cell for a range; return n and n_late. A row in many cells is reported by the one where the two boxes
    begin to overlap.
    """
    start, stop, level, column, row = cell
    place, marks, picks = message
    boxes, tags, left, low = run.boxes, run.tags, place[0], place[1]
    word = place_word(left, low, place[2], place[3])
    shift = BITS - level
    for i in range(passing(boxes, (start, stop), word, TOPS, picks, 0)):
        tag, own = tags[picks[i]], boxes[picks[i]]
        begins = (max(lane(own, 0), left) >> shift == column) & (max(lane(own, 1), low) >> shift == row)
        if begins and has_bit(marks, (tag >> np.uint64(32)) & _TERM):
            if overlaps_surely(word - own):
                if tag & MANY == 0:
                    out[n] = tag & ROW
                    n += 1
                    continue
                late[n_late] = tag & _LATE_TAG
            else:
                late[n_late] = (tag & _LATE_TAG) | _UNSURE
            n_late += 1
    return n, n_late
