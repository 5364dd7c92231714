"""Matching messages with one run: which lists, then which entries of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.vector import (
    WIDTH,
    count_bits,
    lowest_bit,
    none_above,
    prefetch,
    store_packed,
    store_positions,
)
from nearcast.indexes.pyramid.box_codes import BITS, ONES, mapped, place_word, point_word
from nearcast.indexes.pyramid.run import (
    COARSE,
    FINEST,
    MANY,
    SPARE,
    coarse_cells,
    counts_of,
    first_of,
    length_of,
    levels_of,
)
from nearcast.matching.predicate import box_overlaps

_ROW = np.uint64(0xFFFF_FFFF)
_TERM = np.uint64(0x7FFF_FFFF)
_UNSURE = np.uint64(1 << 62)  # of a late row: its box must be asked
_MANY = np.uint64(1 << 63)  # its terms must be asked
_NO_ROW = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_AHEAD = 8  # late rows whose memory is asked for before their turn, twice: their place, then their terms
_ASKED = 512  # words of a list that are asked for beforehand: 32 cache lines
_MOST_ASKED = 1 << 14  # words of a message likewise, 64 KB: three messages' words must not push each other out
_LISTS_AHEAD = 8  # lists beyond that are asked for while the message is scanned, so many before their turn
_LINE = 16  # words of a cache line


class Desks(NamedTuple):
    """Where messages are prepared, four at a time; made once a batch."""

    # int64[4,room,3]  first and last+1 word of each list, and the message's place in its cell; or, before the list is
    # known, the number of the cell, nothing, and the place
    lists: np.ndarray
    places: np.ndarray  # int64[4,4]  the message's box, mapped
    counts: np.ndarray  # int64[4,4]  see below


class Desk(NamedTuple):
    """One of them."""

    lists: np.ndarray
    place: np.ndarray
    counts: np.ndarray


# How many lists (-1 for a range), how many words they have, where cells wait, how many lists were asked for.
LISTS, WORDS, WAITING, ASKED = range(4)


@kernel
def match_run(run, store, messages, marks, starts, out):
    """Fill starts; return the rows that hold (in `out` if they fit), how many lists were read and how many entries."""
    desks = new_desks(messages.term_starts, len(starts) - 1)
    late, picks, work = np.empty(1024, np.uint64), np.empty(1024, np.uint32), np.zeros(2, np.int64)
    m = -4
    while True:
        m = match_points(run, store, (messages, m), desks, (marks, picks, late), starts, (out, work))
        if m == len(starts) - 1:
            return out[: starts[m]], work[0], work[1]
        if lacks_room(desks, m, (late, out), starts):
            room = room_of(desks, m)
            out, late, picks = with_room(out, starts[m], room), with_room(late, 0, room), with_room(picks, 0, room)
        else:
            set_bits(marks, messages, m)
            place = desk_of(desks, m).place
            out, starts[m + 1] = scan_range(run, store, (messages, m), place, (marks, work), out, starts[m])
            clear_bits(marks, messages, m)
            m += 1


@lean_kernel
def match_points(run, store, at, desks, asked, starts, results):
    """Go on with the message of `at` = (messages, m) until one is a range, or lacks room for what it may need; return
    which.

    While one message is scanned, the memory that the next four need is on its way, each a step behind the other: what
    the nodes of its terms say, where its cells are, what they hold.
    """
    messages, m = at
    marks, picks, late = asked
    out, work = results
    n_messages, n_late, n, seen = len(starts) - 1, 0, starts[max(m, 0)], 0
    while m < n_messages:
        desk = desk_of(desks, m)
        is_point = m >= 0 and desk.counts[LISTS] >= 0
        if is_point:
            if lacks_room(desks, m, (late, out), starts):
                return m
            set_bits(marks, messages, m)
            n, n_late, seen = scan(run.words, desk, (marks, picks), late, out, n)
            ask_for_rows(store, late, n_late)
            work[0] += desk.counts[LISTS]
            work[1] += seen
        if m + 4 < n_messages:
            ask_for_nodes(run.nodes, messages, m + 4)
        if 0 <= m + 3 < n_messages:
            prepare(run, messages, m + 3, desk_of(desks, m + 3))
        if 0 <= m + 2 < n_messages:
            open_cells(run, desk_of(desks, m + 2))
        if is_point:
            n = settle(store, messages.boxes[m], marks, late, n_late, out, n)
            clear_bits(marks, messages, m)
            starts[m + 1] = n
        elif m >= 0:
            return m
        m += 1
    return m


@kernel
def new_desks(term_starts, n_messages):
    longest = 1
    for m in range(n_messages):
        longest = max(longest, term_starts[m + 1] - term_starts[m])
    lists = np.empty((4, longest * (FINEST + 1), 3), np.int64)
    return Desks(lists, np.empty((4, 4), np.int64), np.zeros((4, 4), np.int64))


@inline_kernel
def desk_of(desks, message):
    slot = message & 3
    return Desk(desks.lists[slot], desks.places[slot], desks.counts[slot])


@lean_kernel
def room_of(desks, message):
    """How many entries a message's lists have at most, two words each, and as many more as are written past the
    last.
    """
    return (desks.counts[message & 3, WORDS] >> 1) + SPARE


@lean_kernel
def lacks_room(desks, message, rows, starts):
    late, out = rows
    needed = room_of(desks, message)
    return starts[message] + needed > len(out) or needed > len(late)


@lean_kernel
def prepare(run, messages, message, desk):
    """Map the place; for a point, find its lists and cells."""
    if map_place(run, messages.boxes, message, desk.place):
        point_lists(run, messages, message, desk)
    else:
        desk.counts[LISTS], desk.counts[WORDS] = -1, 0


@lean_kernel
def map_place(run, boxes, m, place):
    """Map a message's box; return whether it is a point."""
    place[0], place[1] = mapped(run.x_knots, boxes[m, 0]), mapped(run.y_knots, boxes[m, 1])
    if boxes[m, 2] == boxes[m, 0] and boxes[m, 3] == boxes[m, 1]:
        place[2], place[3] = place[0], place[1]
        return True
    place[2], place[3] = mapped(run.x_knots, boxes[m, 2]), mapped(run.y_knots, boxes[m, 3])
    return False


@lean_kernel
def set_bits(marks, messages, message):
    """Mark a message's terms, one bit each."""
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        term = messages.terms[k]
        marks[term >> 6] |= np.uint64(1) << np.uint64(term & 63)


@lean_kernel
def clear_bits(marks, messages, message):
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        marks[messages.terms[k] >> 6] = 0


@inline_kernel
def has_bit(marks, term):
    return (marks[term >> np.uint64(6)] >> (term & np.uint64(63))) & np.uint64(1)


@inline_kernel
def ask_for(words, first, stop):
    """Ask for the cache lines of words[first:stop], or the first of them."""
    for at in range(first, min(stop, first + _ASKED), _LINE):
        prefetch(words, at)


@lean_kernel
def ask_for_nodes(nodes, messages, message):
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        prefetch(nodes, 2 * np.int64(messages.terms[k]))


@lean_kernel
def point_lists(run, messages, message, desk):
    """Write the plain lists that a point must look at to the desk, and the cells of crowded terms to its far end; ask
    for their memory.
    """
    nodes, cells, words, terms, lists = run.nodes, run.starts, run.words, messages.terms, desk.lists
    x, y = desk.place[0], desk.place[1]
    bit = np.uint64(((y >> (BITS - COARSE)) << COARSE) + (x >> (BITS - COARSE)))
    n_lists, waiting, n_words, n_asked = 0, len(lists), 0, 0
    in_space = point_word(x, y, 0)
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        term = terms[k]
        if term >= len(nodes) or (nodes[term, 0] >> bit) & np.uint64(1) == 0:
            continue
        first, levels = first_of(nodes[term, 1]), levels_of(nodes[term, 1])
        if levels == 0:
            size = length_of(nodes[term, 1])
            if n_words < _MOST_ASKED:
                ask_for(words, first, first + size)
                n_asked += 1
            lists[n_lists, 0], lists[n_lists, 1], lists[n_lists, 2] = first, first + size, in_space
            n_lists, n_words = n_lists + 1, n_words + size
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            waiting -= 1
            lists[waiting, 0] = first + ((y >> (BITS - level)) << level) + (x >> (BITS - level))
            lists[waiting, 2] = point_word(x, y, level)
            prefetch(cells, lists[waiting, 0])
            first += (1 << (2 * level)) + 1
    counts = desk.counts
    counts[LISTS], counts[WORDS], counts[WAITING], counts[ASKED] = n_lists, n_words, waiting, n_asked


@lean_kernel
def open_cells(run, desk):
    """Write the lists of the cells that wait on a desk behind its others, and ask for them."""
    cells, words, lists = run.starts, run.words, desk.lists
    n_lists, n_words, n_asked = desk.counts[LISTS], desk.counts[WORDS], desk.counts[ASKED]
    if n_lists < 0:
        return
    for k in range(desk.counts[WAITING], len(lists)):
        start, stop = np.int64(cells[lists[k, 0]]), np.int64(cells[lists[k, 0] + 1])
        if n_words < _MOST_ASKED:
            ask_for(words, start, stop)
            n_asked = n_lists + 1
        lists[n_lists, 0], lists[n_lists, 1], lists[n_lists, 2] = start, stop, lists[k, 2]
        n_lists += 1 if stop > start else 0
        n_words += stop - start
    desk.counts[LISTS], desk.counts[WORDS], desk.counts[ASKED] = n_lists, n_words, n_asked


@lean_kernel
def scan(words, desk, asked, late, out, n):
    """Write the rows of the message's lists that surely hold to out[n:], and those that may to `late`. Return the new
    n, how many are late, and how many entries there were.
    """
    lists, n_lists, n_late, seen = desk.lists, desk.counts[LISTS], 0, 0
    for k in range(n_lists):
        if desk.counts[ASKED] <= k + _LISTS_AHEAD < n_lists:
            ask_for(words, lists[k + _LISTS_AHEAD, 0], lists[k + _LISTS_AHEAD, 1])
        start = lists[k, 0]
        n_lone, n_paired = counts_of(words, start, lists[k, 1])
        entries = (start + 1, n_lone, n_paired)
        n, n_picks, n_late = scan_list(words, entries, lists[k, 2], asked, late, n_late, (out, n))
        if n_picks:
            n, n_late = keep_paired(words, (asked, n_picks, n_paired), late, n_late, out, n)
        seen += n_lone + n_paired
    return n, n_late, seen


@lean_kernel
def scan_list(words, entries, place, asked, late, n_late, found):
    """Of the entries whose boxes overlap the place strictly, write lone rows to out[n:] and where paired ones are to
    `picks`; of those that touch, the rows that may hold to `late`. Return the new n, how many are picked, and n_late.
    """
    first, n_lone, n_paired = entries
    marks, picks = asked
    out, n = found
    n_picks, n_entries = 0, n_lone + n_paired
    for i in range(0, n_entries, WIDTH):
        touching = none_above(words, first + i, place) & low_bits(n_entries - i)
        if touching:
            inside = none_above(words, first + i, place - ONES) & touching
            lone = inside & low_bits(n_lone - i)
            store_packed(out, n, words, first + n_entries + i, lone)
            n += count_bits(lone)
            store_positions(picks, n_picks, inside ^ lone, first + n_entries + i)
            n_picks += count_bits(inside ^ lone)
            if touching != inside:
                n_late = add_touching(words, (entries, i, touching ^ inside), marks, late, n_late)
    return n, n_picks, n_late


@inline_kernel
def low_bits(k):
    """The k lowest of eight bits."""
    return (1 << min(WIDTH, max(0, k))) - 1


@lean_kernel
def add_touching(words, which, marks, late, n_late):
    """Write those rows of the entries that are set in `bits`, from number i on, to `late` that are lone or have their
    second term; return the new n_late.
    """
    (first, n_lone, n_paired), i, bits = which
    while bits:
        row = row_of(words, (first, n_lone, n_paired), i + lowest_bit(bits), marks)
        bits &= bits - 1
        late[n_late] = row | _UNSURE
        n_late += row != _NO_ROW
    return n_late


@lean_kernel
def row_of(words, entries, number, marks):
    """The row of an entry, with _MANY if that is so; or _NO_ROW if its second term is missing."""
    first, n_lone, n_paired = entries
    place = first + n_lone + n_paired + number
    if number < n_lone:
        return np.uint64(words[place])
    second = np.uint64(words[place + n_paired])
    if not has_bit(marks, second & _TERM):
        return _NO_ROW
    return np.uint64(words[place]) | ((second & np.uint64(MANY)) << np.uint64(32))


@lean_kernel
def keep_paired(words, asked, late, n_late, out, n):
    """Of the rows picked, write those that have their second term to out[n:], or to `late` if they have more. Return
    the new n and n_late.
    """
    # Indices are unsigned, since signed ones are tested for being negative: 7.5 us instead of 10.4 (A, 10 M rows, in
    # cache).
    (marks, picks), n_picks, n_paired = asked
    for i in range(n_picks):
        place = np.uint64(picks[np.uint64(i)])
        row, second = np.uint64(words[place]), np.uint64(words[place + np.uint64(n_paired)])
        # Sums, not branches: many second terms are missing, at random.
        is_marked = has_bit(marks, second & _TERM)
        is_late = is_marked & (second >> np.uint64(31))
        out[np.uint64(n)] = row
        n += np.int64(is_marked ^ is_late)
        late[np.uint64(n_late)] = row | _MANY
        n_late += np.int64(is_late)
    return n, n_late


@lean_kernel
def ask_for_row(store, late):
    """Ask for what settles a late row: where it is, or where its terms are."""
    row = np.int64(late & _ROW)
    if late & _UNSURE:
        prefetch(store.boxes, 4 * row)
    if late & _MANY:
        prefetch(store.offsets, row)
        prefetch(store.n_terms, row)


@lean_kernel
def ask_for_rows(store, late, n_late):
    for i in range(min(n_late, 2 * _AHEAD)):
        ask_for_row(store, late[i])


@lean_kernel
def settle(store, box, marks, late, n_late, out, n):
    """Ask the late rows exactly what is not sure of them; write those that hold to out[n:]; return the new n.

    A stored row costs up to four cache misses, so those of the next rows are on their way meanwhile: a long message has
    1,700 late rows (A, 10 M rows), and took 954 us without this, 301 with it.
    """
    offsets, terms = store.offsets, store.terms
    for i in range(-_AHEAD, n_late):
        if i >= 0 and i + 2 * _AHEAD < n_late:
            ask_for_row(store, late[i + 2 * _AHEAD])
        if 0 <= i + _AHEAD < n_late and late[i + _AHEAD] & _MANY:
            prefetch(terms, offsets[late[i + _AHEAD] & _ROW])
        if i >= 0:
            row = np.int64(late[i] & _ROW)
            has_place = late[i] & _UNSURE == 0 or box_overlaps(store, row, box)
            if has_place and (late[i] & _MANY == 0 or has_all_bits(store, row, marks)):
                out[n] = row
                n += 1
    return n


@lean_kernel
def has_all_bits(store, row, marks):
    """Whether each positive term of the row is marked."""
    first = store.offsets[row]
    for k in range(first, first + store.n_terms[row]):
        if has_bit(marks, np.uint64(store.terms[k])) == 0:
            return False
    return True


@kernel
def scan_range(run, store, message, place, asked, out, n):
    """For a message with a range: scan every cell that it overlaps; return (out, n)."""
    messages, m = message
    marks, work = asked
    nodes, cells, words = run.nodes, run.starts, run.words
    left, low, right, high = place[0], place[1], place[2], place[3]
    mask = coarse_cells(left, low, right, high)
    late, n_late = np.empty(1024, np.uint64), 0
    for k in range(messages.term_starts[m], messages.term_starts[m + 1]):
        term = messages.terms[k]
        if term >= len(nodes) or nodes[term, 0] & mask == 0:
            continue
        first, levels = first_of(nodes[term, 1]), levels_of(nodes[term, 1])
        if levels == 0:
            block = (first, first + length_of(nodes[term, 1]))
            out, late = with_room(out, n, block[1] - first), with_room(late, n_late, block[1] - first)
            n, n_late = scan_cell(words, block, (place, (0, 0, 0)), asked, late, n_late, (out, n))
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            shift = BITS - level
            for row in range(low >> shift, (high >> shift) + 1):
                for column in range(left >> shift, (right >> shift) + 1):
                    cell = first + (row << level) + column
                    block = (np.int64(cells[cell]), np.int64(cells[cell + 1]))
                    size = block[1] - block[0]
                    if n + size > len(out) or n_late + size > len(late):
                        out, late = with_room(out, n, size), with_room(late, n_late, size)
                    at = (place, (level, column, row))
                    n, n_late = scan_cell(words, block, at, asked, late, n_late, (out, n))
            first += (1 << (2 * level)) + 1
    out = with_room(out, n, n_late)
    ask_for_rows(store, late, n_late)
    return out, settle(store, messages.boxes[m], marks, late, n_late, out, n)


@lean_kernel
def scan_cell(words, block, at, asked, late, n_late, found):
    """Scan one cell for a range; return n and n_late."""
    place, cell = at
    marks, work = asked
    out, n = found
    work[0] += 1
    if block[0] == block[1]:
        return n, n_late
    n_lone, n_paired = counts_of(words, block[0], block[1])
    first, n_entries, shift = block[0] + 1, n_lone + n_paired, BITS - cell[0]
    work[1] += n_entries
    # A row in many cells is reported by the one where the two boxes begin to overlap: where the message's box begins
    # there or, in these bytes, the row's.
    column_byte = np.uint32(0 if place[0] >> shift == cell[1] else 0xFF)
    row_byte = np.uint32(0 if place[1] >> shift == cell[2] else 0xFF00)
    limits = place_word(place, cell)
    for i in range(0, n_entries, WIDTH):
        touching = none_above(words, first + i, limits) & low_bits(n_entries - i)
        inside = none_above(words, first + i, limits - ONES)
        while touching:
            k = lowest_bit(touching)
            touching &= touching - 1
            box = words[first + i + k]
            begins = (box & column_byte != 0 or column_byte == 0) and (box & row_byte != 0 or row_byte == 0)
            row = row_of(words, (first, n_lone, n_paired), i + k, marks) if begins else _NO_ROW
            if (inside >> k) & 1 == 0:
                row |= _UNSURE
            if row <= _ROW:
                out[n] = row
                n += 1
            elif row != _NO_ROW:
                late[n_late] = row
                n_late += 1
    return n, n_late
