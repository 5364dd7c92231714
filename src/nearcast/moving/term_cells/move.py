"""Moves: one pass over the messages in the cells of a row's old and new box gives the pairs that begin and cease."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.moving.entry_lists.lists import FULL, Entry
from nearcast.moving.entry_lists.place_codes import coded_box, corner_code
from nearcast.moving.entry_lists.scans import SINGLE, RowMove
from nearcast.moving.term_cells.boxes import move_box
from nearcast.moving.term_cells.search import changes_of, entry_of


class Moves(NamedTuple):
    """Rows, sorted by their term, and their new boxes."""

    rows: np.ndarray  # int32[n]
    boxes: np.ndarray  # float64[n,4]


@lean_kernel
def move_rows(cells, rows, messages, moves, out, done):
    """(pairs, moves done): moves rows from position `done` on, until `out` or the arena is full.

    A move is done as a whole or not at all.
    """
    n, wanted = np.int64(0), moves.rows
    for i in range(done, len(wanted)):
        row, box = np.int64(wanted[i]), moves.boxes[i]
        was = entry_of(cells, row)
        low, high = corner_code(cells.codes, box[0], box[1]), corner_code(cells.codes, box[2], box[3])
        old, new, is_single = coded_box(was.low, was.high), coded_box(low, high), was.number & SINGLE != 0
        move = RowMove(rows, row, moves.boxes, np.int64(i), old, new, was.signature, is_single)
        found = changes_of(cells, move, messages, out, n)
        if found == FULL or not move_box(cells.own, row, Entry(low, high, was.signature, was.number), cells.spots):
            return n, np.int64(i)
        n = found
        for k in range(4):
            rows.boxes[row, k] = box[k]
    return n, np.int64(len(wanted))
