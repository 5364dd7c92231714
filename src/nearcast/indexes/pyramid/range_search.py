"""Matching of a message with a range: every cell that the range overlaps is scanned.

A row that lies in many cells is reported by one of them: the cell in which the overlap of the two boxes begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.vector import WIDTH, low_bits, lowest_bit, none_above
from nearcast.indexes.pyramid.box_codes import BITS, ONES, Cell, place_word
from nearcast.indexes.pyramid.run import Block, coarse_cells, counts_of, first_of, length_of, levels_of
from nearcast.indexes.pyramid.scan import NO_ROW, ROW, UNSURE, Buffers, prefetch_rows, row_of, verify_exactly


class Window(NamedTuple):
    """A range as seen from one cell."""

    limits: int  # its place word
    column_byte: np.uint32  # 0 if the range begins in this column; else the byte of a row's left edge must not be 0
    row_byte: np.uint32  # likewise for the row of cells, and a row's lower edge


@inline_kernel
def _window(place, cell):
    shift = BITS - cell.level
    column_byte = np.uint32(0 if place[0] >> shift == cell.column else 0xFF)
    row_byte = np.uint32(0 if place[1] >> shift == cell.row else 0xFF00)
    return Window(place_word(place, cell), column_byte, row_byte)


@inline_kernel
def _block(words, start, stop):
    n_lone, n_paired = counts_of(words, start, stop)
    return Block(start + 1, n_lone, n_paired)


@kernel
def _with_room(buffers, n_unverified, extra):
    return Buffers(buffers.marks, buffers.picks, with_room(buffers.unverified, n_unverified, extra))


@kernel
def scan_range(run, store, messages, m, scratch, out, n):
    """Write the rows that match a range to out[n:]; return (out, n), with a larger `out` where it was too small."""
    nodes, cells, words, place = run.nodes, run.starts, run.words, scratch.places[m & 3]
    left, low, right, high = place[0], place[1], place[2], place[3]
    mask = coarse_cells(left, low, right, high)
    buffers, n_unverified, n_lists, seen = Buffers(scratch.marks, scratch.picks, scratch.unverified), 0, 0, 0
    for k in range(messages.term_starts[m], messages.term_starts[m + 1]):
        term = messages.terms[k]
        if term >= len(nodes) or nodes[term, 0] & mask == 0:
            continue
        first, levels = first_of(nodes[term, 1]), levels_of(nodes[term, 1])
        if levels == 0:
            size = length_of(nodes[term, 1])
            block, window = _block(words, first, first + size), _window(place, Cell(0, 0, 0))
            out, buffers = with_room(out, n, size), _with_room(buffers, n_unverified, size)
            n, n_unverified = _scan_cell(words, block, window, buffers, n_unverified, out, n)
            n_lists, seen = n_lists + 1, seen + block.n_lone + block.n_paired
        while levels:
            level = lowest_bit(levels)
            levels &= levels - 1
            shift = BITS - level
            for row in range(low >> shift, (high >> shift) + 1):
                for column in range(left >> shift, (right >> shift) + 1):
                    at = first + (row << level) + column
                    start, stop = np.int64(cells[at]), np.int64(cells[at + 1])
                    n_lists += 1
                    if start == stop:
                        continue
                    block, window = _block(words, start, stop), _window(place, Cell(level, column, row))
                    if n + stop - start > len(out) or n_unverified + stop - start > len(buffers.unverified):
                        out, buffers = with_room(out, n, stop - start), _with_room(buffers, n_unverified, stop - start)
                    n, n_unverified = _scan_cell(words, block, window, buffers, n_unverified, out, n)
                    seen += block.n_lone + block.n_paired
            first += (1 << (2 * level)) + 1
    scratch.work[0], scratch.work[1] = scratch.work[0] + n_lists, scratch.work[1] + seen
    out = with_room(out, n, n_unverified)
    prefetch_rows(store, buffers.unverified, n_unverified)
    return out, verify_exactly(store, messages.boxes[m], buffers, n_unverified, out, n)


@lean_kernel
def _scan_cell(words, block, window, buffers, n_unverified, out, n):
    """Scan the list of one cell; return the new n and n_unverified."""
    column_byte, row_byte = window.column_byte, window.row_byte
    n_entries = block.n_lone + block.n_paired
    for i in range(0, n_entries, WIDTH):
        touching = none_above(words, block.first + i, window.limits) & low_bits(n_entries - i)
        inside = none_above(words, block.first + i, window.limits - ONES)
        while touching:
            k = lowest_bit(touching)
            touching &= touching - 1
            box = words[block.first + i + k]
            begins = (box & column_byte != 0 or column_byte == 0) and (box & row_byte != 0 or row_byte == 0)
            row = row_of(words, block, i + k, buffers.marks) if begins else NO_ROW
            if (inside >> k) & 1 == 0:
                row |= UNSURE
            if row <= ROW:
                out[n] = row
                n += 1
            elif row != NO_ROW:
                buffers.unverified[n_unverified] = row
                n_unverified += 1
    return n, n_unverified
