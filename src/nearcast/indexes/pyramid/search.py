"""Matching of messages with one run, as a pipeline.

While one point message is scanned, the memory for the next four messages is prefetched, each one step behind the other:
the nodes of its terms, then its cells, then its lists.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.vector import lowest_bit, prefetch
from nearcast.indexes.pyramid.box_codes import BITS, mapped, point_word
from nearcast.indexes.pyramid.range_search import scan_range
from nearcast.indexes.pyramid.run import COARSE, FINEST, SPARE, Block, counts_of, first_of, length_of, levels_of
from nearcast.indexes.pyramid.scan import (
    Buffers,
    clear_bits,
    keep_paired,
    prefetch_rows,
    scan_list,
    set_bits,
    verify_exactly,
)

_MOST_OF_LIST = 512  # words of a list that are prefetched: 32 cache lines
_MOST_OF_MESSAGE = 1 << 14  # words of a message likewise, 64 KB: three messages must not evict each other's words
_LISTS_AHEAD = 8  # further lists are prefetched while the message is scanned, this many ahead
_LINE = 16  # words of a cache line


class Scratch(NamedTuple):
    """Working memory of one thread. The first three arrays have four slots; message m uses slot m & 3."""

    # int64[4,room,3]  first word and end of each list, and the message's place in its cell. Cells that are still to be
    # opened stand at the far end: number of the cell, nothing, place
    lists: np.ndarray
    places: np.ndarray  # int64[4,4]  the message's box, mapped
    counts: np.ndarray  # int64[4,4]  see LISTS below
    work: np.ndarray  # int64[2]  lists read, entries compared
    marks: np.ndarray  # as in Buffers
    picks: np.ndarray
    unverified: np.ndarray


class Slot(NamedTuple):
    """The part of a Scratch that belongs to one message."""

    lists: np.ndarray
    place: np.ndarray
    counts: np.ndarray


# Positions in `counts`: how many lists (-1 for a range), how many words they have, where the unopened cells begin, how
# many lists were prefetched.
LISTS, WORDS, UNOPENED, PREFETCHED = range(4)


@kernel
def new_scratch(term_starts, marks):
    """Scratch for messages with these terms; `marks` are all zero."""
    longest = 1
    for m in range(len(term_starts) - 1):
        longest = max(longest, term_starts[m + 1] - term_starts[m])
    lists = np.empty((4, longest * (FINEST + 1), 3), np.int64)
    places, counts, work = np.empty((4, 4), np.int64), np.zeros((4, 4), np.int64), np.zeros(2, np.int64)
    return Scratch(lists, places, counts, work, marks, np.empty(1024, np.uint32), np.empty(1024, np.uint64))


@kernel
def _with_buffer_room(scratch, room):
    picks, unverified = with_room(scratch.picks, 0, room), with_room(scratch.unverified, 0, room)
    return Scratch(scratch.lists, scratch.places, scratch.counts, scratch.work, scratch.marks, picks, unverified)


@kernel
def match_run(run, store, messages, marks, starts, out):
    """Fill starts; return the rows that match (in `out` if they fit), the lists read and the entries compared."""
    scratch = new_scratch(messages.term_starts, marks)
    m = -4
    while True:
        m = match_points(run, store, messages, m, scratch, starts, out)
        if m == len(starts) - 1:
            return out[: starts[m]], scratch.work[0], scratch.work[1]
        if lacks_room(scratch, m, starts, out):
            room = room_of(scratch, m)
            out, scratch = with_room(out, starts[m], room), _with_buffer_room(scratch, room)
        else:
            set_bits(marks, messages, m)
            out, starts[m + 1] = scan_range(run, store, messages, m, scratch, out, starts[m])
            clear_bits(marks, messages, m)
            m += 1


@lean_kernel
def match_points(run, store, messages, m, scratch, starts, out):
    """Match from message m on. Stop at a range, or at a message that needs more room; return its number."""
    buffers = Buffers(scratch.marks, scratch.picks, scratch.unverified)
    n_messages, n_unverified, n, seen = len(starts) - 1, 0, starts[max(m, 0)], 0
    while m < n_messages:
        slot = slot_of(scratch, m)
        is_point = m >= 0 and slot.counts[LISTS] >= 0
        if is_point:
            if lacks_room(scratch, m, starts, out):
                return m
            set_bits(scratch.marks, messages, m)
            n, n_unverified, seen = scan(run.words, slot, buffers, out, n)
            prefetch_rows(store, scratch.unverified, n_unverified)
            scratch.work[0] += slot.counts[LISTS]
            scratch.work[1] += seen
        if m + 4 < n_messages:
            prefetch_nodes(run.nodes, messages, m + 4)
        if 0 <= m + 3 < n_messages:
            prepare(run, messages, m + 3, slot_of(scratch, m + 3))
        if 0 <= m + 2 < n_messages:
            open_cells(run, slot_of(scratch, m + 2))
        if is_point:
            n = verify_exactly(store, messages.boxes[m], buffers, n_unverified, out, n)
            clear_bits(scratch.marks, messages, m)
            starts[m + 1] = n
        elif m >= 0:
            return m
        m += 1
    return m


@inline_kernel
def slot_of(scratch, message):
    slot = message & 3
    return Slot(scratch.lists[slot], scratch.places[slot], scratch.counts[slot])


@lean_kernel
def room_of(scratch, message):
    """The most entries that a message's lists have, two words each, and the spare ones that a scan overwrites."""
    return (scratch.counts[message & 3, WORDS] >> 1) + SPARE


@lean_kernel
def lacks_room(scratch, message, starts, out):
    """Whether the rows of a message may not fit into `out` or into the buffers."""
    needed = room_of(scratch, message)
    return starts[message] + needed > len(out) or needed > len(scratch.unverified)


@lean_kernel
def prepare(run, messages, message, slot):
    """Map the box of a message. For a point, also find its lists and cells."""
    if map_place(run, messages.boxes, message, slot.place):
        find_lists(run, messages, message, slot)
    else:
        slot.counts[LISTS], slot.counts[WORDS] = -1, 0


@lean_kernel
def map_place(run, boxes, m, place):
    """Map the box of a message; return whether it is a point."""
    place[0], place[1] = mapped(run.x_knots, boxes[m, 0]), mapped(run.y_knots, boxes[m, 1])
    if boxes[m, 2] == boxes[m, 0] and boxes[m, 3] == boxes[m, 1]:
        place[2], place[3] = place[0], place[1]
        return True
    place[2], place[3] = mapped(run.x_knots, boxes[m, 2]), mapped(run.y_knots, boxes[m, 3])
    return False


@inline_kernel
def prefetch_words(words, first, stop):
    """Prefetch words[first:stop], or the first of them."""
    for at in range(first, min(stop, first + _MOST_OF_LIST), _LINE):
        prefetch(words, at)


@lean_kernel
def prefetch_nodes(nodes, messages, message):
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        prefetch(nodes, 2 * np.int64(messages.terms[k]))


@lean_kernel
def find_lists(run, messages, message, slot):
    """Write the plain lists that a point must read to its slot, and the cells of crowded terms to the far end of the
    slot. Prefetch both.
    """
    nodes, cells, words, terms, lists = run.nodes, run.starts, run.words, messages.terms, slot.lists
    x, y = slot.place[0], slot.place[1]
    bit = np.uint64(((y >> (BITS - COARSE)) << COARSE) + (x >> (BITS - COARSE)))
    n_lists, unopened, n_words, n_prefetched = 0, len(lists), 0, 0
    in_space = point_word(x, y, 0)
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        term = terms[k]
        if term >= len(nodes) or (nodes[term, 0] >> bit) & np.uint64(1) == 0:
            continue
        first, levels = first_of(nodes[term, 1]), levels_of(nodes[term, 1])
        if levels == 0:
            size = length_of(nodes[term, 1])
            if n_words < _MOST_OF_MESSAGE:
                prefetch_words(words, first, first + size)
                n_prefetched += 1
            lists[n_lists, 0], lists[n_lists, 1], lists[n_lists, 2] = first, first + size, in_space
            n_lists, n_words = n_lists + 1, n_words + size
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            unopened -= 1
            lists[unopened, 0] = first + ((y >> (BITS - level)) << level) + (x >> (BITS - level))
            lists[unopened, 2] = point_word(x, y, level)
            prefetch(cells, lists[unopened, 0])
            first += (1 << (2 * level)) + 1
    counts = slot.counts
    counts[LISTS], counts[WORDS], counts[UNOPENED], counts[PREFETCHED] = n_lists, n_words, unopened, n_prefetched


@lean_kernel
def open_cells(run, slot):
    """Write the lists of the unopened cells of a slot behind its other lists, and prefetch them."""
    cells, words, lists = run.starts, run.words, slot.lists
    n_lists, n_words, n_prefetched = slot.counts[LISTS], slot.counts[WORDS], slot.counts[PREFETCHED]
    if n_lists < 0:
        return
    for k in range(slot.counts[UNOPENED], len(lists)):
        start, stop = np.int64(cells[lists[k, 0]]), np.int64(cells[lists[k, 0] + 1])
        if n_words < _MOST_OF_MESSAGE:
            prefetch_words(words, start, stop)
            n_prefetched = n_lists + 1
        lists[n_lists, 0], lists[n_lists, 1], lists[n_lists, 2] = start, stop, lists[k, 2]
        n_lists += 1 if stop > start else 0
        n_words += stop - start
    slot.counts[LISTS], slot.counts[WORDS], slot.counts[PREFETCHED] = n_lists, n_words, n_prefetched


@lean_kernel
def scan(words, slot, buffers, out, n):
    """Scan the lists of a point: rows that surely match go to out[n:], rows that may match to `unverified`. Return the
    new n, the number of unverified rows, and the number of entries.
    """
    lists, n_lists, n_unverified, seen = slot.lists, slot.counts[LISTS], 0, 0
    for k in range(n_lists):
        if slot.counts[PREFETCHED] <= k + _LISTS_AHEAD < n_lists:
            prefetch_words(words, lists[k + _LISTS_AHEAD, 0], lists[k + _LISTS_AHEAD, 1])
        start = lists[k, 0]
        n_lone, n_paired = counts_of(words, start, lists[k, 1])
        block = Block(start + 1, n_lone, n_paired)
        n, n_picks, n_unverified = scan_list(words, block, lists[k, 2], buffers, n_unverified, out, n)
        if n_picks:
            n, n_unverified = keep_paired(words, buffers, n_picks, n_paired, n_unverified, out, n)
        seen += n_lone + n_paired
    return n, n_unverified, seen
