"""Matching messages with one run: which lists, then which entries of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import WIDTH, all_set, lowest_bit, prefetch
from nearcast.indexes.pyramid.lanes import BITS, TOPS, edges_of, mapped, overlaps_surely, packed, place_word
from nearcast.indexes.pyramid.run import MANY, ROW, cells_of, coarse_mask, first_of, length_of, levels_of
from nearcast.matching.predicate import box_overlaps

_TERM = np.uint64(0x7FFF_FFFF)
_WHOLE = -1  # the cell of a plain list: none


class Lists(NamedTuple):
    """The lists that a message reads."""

    starts: np.ndarray  # int64[...]
    stops: np.ndarray  # int64[...]
    cells: np.ndarray  # int64[...]  level << 40 | row << 20 | column of the cell, or _WHOLE


@kernel
def match_run(run, store, messages, marks, starts):  # type: ignore[no-untyped-def]
    """Fill starts; return the rows that hold, how many lists were read and how many entries were looked at.

    A message takes three steps, each over all of its terms, so that the cache misses of a step overlap: the nodes of
    its terms (most are skipped by their mask), the cells of crowded terms, the entries. Each step asks for the memory
    of the next.
    """
    out = np.empty(1024, np.int32)
    lists = Lists(np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.int64))
    crowds = np.empty(256, np.uint64)
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        place = mapped_place(run, messages.boxes[m])
        set_bits(marks, messages, m)
        crowds, lists, n_crowds, n_lists = _lists_of_terms(run, messages, m, place, (crowds, lists))
        lists, n_lists = _lists_of_crowds(run, crowds[:n_crowds], place, lists, n_lists)
        for k in range(n_lists):
            size = lists.stops[k] - lists.starts[k]
            out = with_room(out, n, size)
            n = _scan(
                run,
                store,
                (marks, messages.boxes[m], place),
                (lists.starts[k], lists.stops[k], lists.cells[k]),
                out,
                n,
            )
            seen += size
        nodes += n_lists
        clear_bits(marks, messages, m)
        starts[m + 1] = n
    return out[:n], nodes, seen


@kernel
def mapped_place(run, box):  # type: ignore[no-untyped-def]
    """A message's box as a row's word: R of the place itself."""
    x0, y0 = mapped(run.x_knots, box[0]), mapped(run.y_knots, box[1])
    x1, y1 = x0, y0
    if box[2] != box[0] or box[3] != box[1]:
        x1, y1 = mapped(run.x_knots, box[2]), mapped(run.y_knots, box[3])
    flip = (1 << BITS) - 1
    return packed(x0, y0, flip - x1, flip - y1)


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


@kernel
def has_bit(marks, term):  # type: ignore[no-untyped-def]
    return (marks[np.int64(term >> np.uint64(6))] >> (term & np.uint64(63))) & np.uint64(1)


@kernel
def _lists_of_terms(run, messages, message, place, room):  # type: ignore[no-untyped-def]
    """The plain lists, and where the crowded terms are, that a message must look at."""
    crowds, lists = room
    first, stop = messages.term_starts[message], messages.term_starts[message + 1]
    crowds = with_room(crowds, 0, stop - first)
    lists = roomy(lists, 0, stop - first)
    mask = coarse_mask(place)
    n_crowds = n_lists = 0
    for k in range(first, stop):
        term = messages.terms[k]
        if term >= len(run.nodes) or run.nodes[term, 0] & mask == 0:
            continue
        where = run.nodes[term, 1]
        if levels_of(where) == 0:
            lists.starts[n_lists] = first_of(where)
            lists.stops[n_lists] = first_of(where) + length_of(where)
            lists.cells[n_lists] = _WHOLE
            prefetch(run.boxes, lists.starts[n_lists])
            n_lists += 1
        else:
            crowds[n_crowds] = where
            n_crowds += 1
            ask_for_cells(run, where, place)
    return crowds, lists, n_crowds, n_lists


@kernel
def ask_for_cells(run, where, place):  # type: ignore[no-untyped-def]
    """Prefetch the starts of the first cell that a place needs on each level."""
    levels, first, level = levels_of(where), first_of(where), 0
    while levels >> level:
        if (levels >> level) & 1:
            left, low, _, _ = cells_of(place, level)
            prefetch(run.starts, first + (low << level) + left)
            first += (1 << (2 * level)) + 1
        level += 1


@kernel
def roomy(lists, used, extra):  # type: ignore[no-untyped-def]
    """Lists with room for `extra` more."""
    if used + extra <= len(lists.starts):
        return lists
    return Lists(
        with_room(lists.starts, used, extra),
        with_room(lists.stops, used, extra),
        with_room(lists.cells, used, extra),
    )


@kernel
def _lists_of_crowds(run, crowds, place, lists, n):  # type: ignore[no-untyped-def]
    """The cells that the place overlaps, on each level in use of each crowded term; empty cells are left out."""
    for where in crowds:
        levels, first, level = levels_of(where), first_of(where), 0
        while levels >> level:
            if (levels >> level) & 1:
                left, low, right, high = cells_of(place, level)
                lists = roomy(lists, n, (right - left + 1) * (high - low + 1))
                for row in range(low, high + 1):
                    for column in range(left, right + 1):
                        cell = first + (row << level) + column
                        lists.starts[n] = run.starts[cell]
                        lists.stops[n] = run.starts[cell + 1]
                        lists.cells[n] = (level << 40) | (row << 20) | column
                        prefetch(run.boxes, lists.starts[n])
                        n += 1 if lists.stops[n] > lists.starts[n] else 0
                first += (1 << (2 * level)) + 1
            level += 1
    return lists, n


@kernel
def _scan(run, store, message, entries, out, n):  # type: ignore[no-untyped-def]
    """Write the rows of one list that hold to out[n:]; return the new n. Eight boxes are tested at a time."""
    marks, box, place = message
    start, stop, cell = entries
    word = place_word(*edges_of(place))
    is_range = cell != _WHOLE and (box[2] != box[0] or box[3] != box[1])
    for first in range(start, stop, WIDTH):
        bits = all_set(run.boxes, first, word, TOPS) & ((1 << min(WIDTH, stop - first)) - 1)
        while bits:
            k = first + lowest_bit(bits)
            bits &= bits - 1
            tag = run.tags[k]
            if has_bit(marks, (tag >> np.uint64(32)) & _TERM) and (
                not is_range or is_first_cell(run.boxes[k], place, cell)
            ):
                row = np.int64(tag & ROW)
                if overlaps_surely(word - run.boxes[k]) or box_overlaps(store, row, box):
                    if tag & MANY == 0 or has_all_bits(store, row, marks):
                        out[n] = row
                        n += 1
    return n


@kernel
def is_first_cell(box, place, cell):  # type: ignore[no-untyped-def]
    """Whether this is the cell in which the two mapped boxes begin to overlap: a row in many cells is reported there
    alone.
    """
    x0, y0, _, _ = edges_of(box)
    left, low, _, _ = edges_of(place)
    shift = BITS - (cell >> 40)
    return (max(x0, left) >> shift) == (cell & 0xFFFFF) and (max(y0, low) >> shift) == ((cell >> 20) & 0xFFFFF)


@kernel
def has_all_bits(store, row, marks):  # type: ignore[no-untyped-def]
    """Whether each positive term of the row is marked."""
    first = store.offsets[row]
    for k in range(first, first + store.n_terms[row]):
        if has_bit(marks, np.uint64(store.terms[k])) == 0:
            return False
    return True
