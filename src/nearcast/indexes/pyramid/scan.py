"""Matching messages with one run: which lists, then which entries of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.vector import WIDTH, lowest_bit, passing, prefetch, sifted
from nearcast.indexes.pyramid.lanes import BITS, ONES, TOPS, lane, mapped, overlaps_surely, place_word
from nearcast.indexes.pyramid.run import COARSE, FINEST, MANY, ROW, SPARE, coarse_cells, first_of, length_of, levels_of
from nearcast.matching.predicate import box_overlaps

_TERM = np.uint64(0x7FFF_FFFF)
_UNSURE = np.uint64(1 << 62)  # of a late row: its box must be asked; MANY: its terms must be asked
_LATE_TAG = MANY | ROW
_TAGS_AHEAD = 32  # picked entries whose tags are asked for before their turn, once more: long messages have thousands
_AHEAD = 8  # late rows, likewise
_ASKED = 64  # entries of a list whose boxes are asked for beforehand: eight cache lines


class Desks(NamedTuple):
    """Where messages are prepared, four at a time; made once a batch."""

    lists: np.ndarray  # int64[4,room,2]  first and last+1 entry of each list; or a cell, before its list is known
    places: np.ndarray  # int64[4,4]  the message's box, mapped
    counts: np.ndarray  # int64[4,5]  see below
    picks: np.ndarray  # uint32[4,room]  entries whose boxes surely overlap the message's
    touches: np.ndarray  # uint32[4,room]  those whose boxes touch it in mapped coordinates, no more


class Desk(NamedTuple):
    """One of them."""

    lists: np.ndarray
    place: np.ndarray
    counts: np.ndarray
    picks: np.ndarray
    touches: np.ndarray


# How many lists (-1 for a range), how many entries they have, where cells wait, how many are picked, how many touch.
LISTS, SEEN, WAITING, PICKED, TOUCHING = range(5)


@kernel
def match_run(run, store, messages, marks, starts, out):  # type: ignore[no-untyped-def]
    """Fill starts; return the rows that hold (in `out` if they fit), how many lists were read and how many entries."""
    desks = new_desks(messages.term_starts, len(starts) - 1)
    late, work = np.empty(1024, np.uint64), np.zeros(2, np.int64)
    m = -4
    while True:
        m = match_points(run, store, (messages, m), desks, (marks, late), starts, (out, work))
        if m == len(starts) - 1:
            return out[: starts[m]], work[0], work[1]
        if lacks_room(desks, m, (late, out), starts):
            out, late = with_room(out, starts[max(m, 0)], room_of(desks, m)), with_room(late, 0, room_of(desks, m))
            desks = with_picks(desks, room_of(desks, m + 1))
        else:
            desk = desk_of(desks, m)
            set_bits(marks, messages, m)
            out, starts[m + 1] = scan_range(run, store, (messages, m), desk, marks, out, starts[m])
            clear_bits(marks, messages, m)
            work += desk.counts[:2]
            m += 1


@lean_kernel
def match_points(run, store, at, desks, asked, starts, results):  # type: ignore[no-untyped-def]
    """Go on with the message of `at` = (messages, m) until one is a range, or lacks room for what it may need; return
    which.

    While one message is settled, the memory that the next four need is on its way, each a step behind the other: what
    the nodes of its terms say, where its cells are, what boxes they have, what tags are beside those that overlap.
    """
    messages, m = at
    marks, late = asked
    out, work = results
    n_messages, n_late, n = len(starts) - 1, 0, starts[max(m, 0)]
    while m < n_messages:
        if lacks_room(desks, m, (late, out), starts):
            return m
        desk = desk_of(desks, m)
        if m >= 0:
            set_bits(marks, messages, m)
            n, n_late = keep(run.tags, desk, marks, late, out, n)
            ask_for_rows(store, late, n_late)
        if m + 4 < n_messages:
            ask_for_nodes(run.nodes, messages, m + 4)
        if 0 <= m + 3 < n_messages:
            prepare(run, messages, m + 3, desk_of(desks, m + 3))
        if 0 <= m + 2 < n_messages:
            open_cells(run, desk_of(desks, m + 2))
        if 0 <= m + 1 < n_messages:
            pick(run, desk_of(desks, m + 1))
        if m >= 0:
            n = settle(store, messages.boxes[m], marks, late, n_late, out, n)
            clear_bits(marks, messages, m)
            if desk.counts[LISTS] < 0:
                return m
            work[0] += desk.counts[LISTS]
            work[1] += desk.counts[SEEN]
            starts[m + 1] = n
        m += 1
    return m


@kernel
def new_desks(term_starts, n_messages):  # type: ignore[no-untyped-def]
    longest = 1
    for m in range(n_messages):
        longest = max(longest, term_starts[m + 1] - term_starts[m])
    lists = np.empty((4, longest * (FINEST + 1), 2), np.int64)
    places, counts = np.empty((4, 4), np.int64), np.zeros((4, 5), np.int64)
    return Desks(lists, places, counts, np.zeros((4, 512), np.uint32), np.zeros((4, 512), np.uint32))


@inline_kernel
def desk_of(desks, message):  # type: ignore[no-untyped-def]
    slot = message & 3
    return Desk(desks.lists[slot], desks.places[slot], desks.counts[slot], desks.picks[slot], desks.touches[slot])


@lean_kernel
def room_of(desks, message):  # type: ignore[no-untyped-def]
    """How many entries a message's lists have, and as many more as are written or asked for past the last."""
    return desks.counts[message & 3, SEEN] + SPARE + _TAGS_AHEAD


@lean_kernel
def lacks_room(desks, message, rows, starts):  # type: ignore[no-untyped-def]
    """Whether a message cannot be settled, or the next one not picked, for lack of room."""
    late, out = rows
    needed = room_of(desks, message)
    lacking = starts[max(message, 0)] + needed > len(out) or needed > len(late)
    return lacking or room_of(desks, message + 1) > desks.picks.shape[1]


@kernel
def with_picks(desks, room):  # type: ignore[no-untyped-def]
    """The desks, with so much room for entries."""
    used = desks.picks.shape[1]
    if room <= used:
        return desks
    picks, touches = np.zeros((4, 2 * room), np.uint32), np.zeros((4, 2 * room), np.uint32)
    picks[:, :used], touches[:, :used] = desks.picks, desks.touches
    return Desks(desks.lists, desks.places, desks.counts, picks, touches)


@lean_kernel
def prepare(run, messages, message, desk):  # type: ignore[no-untyped-def]
    """Map the place; for a point, find its lists and cells."""
    if map_place(run, messages.boxes, message, desk.place):
        desk.counts[LISTS], desk.counts[SEEN], desk.counts[WAITING] = point_lists(run, messages, message, desk)
    else:
        desk.counts[LISTS], desk.counts[SEEN] = -1, 0


@lean_kernel
def map_place(run, boxes, m, place):  # type: ignore[no-untyped-def]
    """Map a message's box; return whether it is a point."""
    place[0], place[1] = mapped(run.x_knots, boxes[m, 0]), mapped(run.y_knots, boxes[m, 1])
    if boxes[m, 2] == boxes[m, 0] and boxes[m, 3] == boxes[m, 1]:
        place[2], place[3] = place[0], place[1]
        return True
    place[2], place[3] = mapped(run.x_knots, boxes[m, 2]), mapped(run.y_knots, boxes[m, 3])
    return False


@lean_kernel
def set_bits(marks, messages, message):  # type: ignore[no-untyped-def]
    """Mark a message's terms, one bit each."""
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        term = messages.terms[k]
        marks[term >> 6] |= np.uint64(1) << np.uint64(term & 63)


@lean_kernel
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


@lean_kernel
def ask_for_nodes(nodes, messages, message):  # type: ignore[no-untyped-def]
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        prefetch(nodes, 2 * np.int64(messages.terms[k]))


@lean_kernel
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


@lean_kernel
def open_cells(run, desk):  # type: ignore[no-untyped-def]
    """Write the lists of the cells that wait on a desk behind its others, and ask for their boxes."""
    cells, boxes, lists = run.starts, run.boxes, desk.lists
    n_lists, seen = desk.counts[LISTS], desk.counts[SEEN]
    if n_lists < 0:
        return
    for k in range(desk.counts[WAITING], len(lists)):
        start, stop = np.int64(cells[lists[k, 0]]), np.int64(cells[lists[k, 0] + 1])
        ask_for(boxes, start, min(stop, start + _ASKED))
        lists[n_lists, 0], lists[n_lists, 1] = start, stop
        n_lists += 1 if stop > start else 0
        seen += stop - start
    desk.counts[LISTS], desk.counts[SEEN] = n_lists, seen


@lean_kernel
def pick(run, desk):  # type: ignore[no-untyped-def]
    """Pick the entries of the message's lists whose boxes overlap, or touch; ask for their tags."""
    boxes, tags, lists, picks, place = run.boxes, run.tags, desk.lists, desk.picks, desk.place
    word = place_word(place[0], place[1], place[2], place[3])
    n = n_touching = 0
    for k in range(desk.counts[LISTS]):
        span = (lists[k, 0], lists[k, 1])
        before = n
        n, touching = sifted(boxes, span, (word - ONES, word), TOPS, picks, n)
        for i in range(before, n):
            prefetch(tags, picks[np.uint64(i)])
        if touching:
            n_touching = pick_touching(run, span, word, desk.touches, n_touching)
    desk.counts[PICKED], desk.counts[TOUCHING] = n, n_touching


@lean_kernel
def pick_touching(run, span, word, touches, n):  # type: ignore[no-untyped-def]
    """Write the entries of a span that touch the place in mapped coordinates, no more, to touches[n:]; return the new
    n.
    """
    boxes, tags = run.boxes, run.tags
    for i in range(n, passing(boxes, span, word, TOPS, touches, n)):
        entry = touches[i]
        if not overlaps_surely(word - boxes[entry]):
            prefetch(tags, entry)
            touches[n] = entry
            n += 1
    return n


@lean_kernel
def keep(tags, desk, marks, late, out, n):  # type: ignore[no-untyped-def]
    """Of the entries picked, write the rows that have their second term to out[n:], or to `late` if they have more
    terms or only touch. Return the new n, and how many are late.
    """
    # Indices are unsigned, since signed ones are tested for being negative: 7.5 us instead of 10.4 (A, 10 M rows, in
    # cache).
    picks, touches, n_late = desk.picks, desk.touches, 0
    for i in range(desk.counts[PICKED]):
        prefetch(tags, picks[np.uint64(i + _TAGS_AHEAD)])
        tag = tags[picks[np.uint64(i)]]
        # Sums, not branches: one second term in ten is missing, at random.
        is_marked = has_bit(marks, (tag >> np.uint64(32)) & _TERM)
        is_late = is_marked & (tag >> np.uint64(63))
        out[np.uint64(n)] = tag & ROW
        n += np.int64(is_marked ^ is_late)
        late[np.uint64(n_late)] = tag & _LATE_TAG
        n_late += np.int64(is_late)
    for i in range(desk.counts[TOUCHING]):
        tag = tags[touches[np.uint64(i)]]
        late[np.uint64(n_late)] = (tag & _LATE_TAG) | _UNSURE
        n_late += np.int64(has_bit(marks, (tag >> np.uint64(32)) & _TERM))
    return n, n_late


@lean_kernel
def ask_for_rows(store, late, n_late):  # type: ignore[no-untyped-def]
    for i in range(min(n_late, 2 * _AHEAD)):
        row = late[i] & ROW
        prefetch(store.offsets, row)
        prefetch(store.n_terms, row)


@lean_kernel
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


@lean_kernel
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
    desk.counts[LISTS], desk.counts[SEEN] = n_lists, seen
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
