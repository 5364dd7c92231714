"""Changes of the lists: rows come, go and move; messages come. A kernel that lacks room stops and is called again."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.moving.entry_lists.lists import TOTAL, Entry
from nearcast.moving.entry_lists.place_codes import corner_code, signature
from nearcast.moving.term_cells.boxes import SINGLE, put_box, remove_box
from nearcast.moving.term_cells.points import put_point


@lean_kernel
def file_rows(cells, rows, frequencies, wanted, done):
    """File rows from position `done` on under their rarest term; return how many are filed."""
    for i in range(done, len(wanted)):
        row = wanted[i]
        first, count, box = rows.offsets[row], np.int64(rows.n_terms[row]), rows.boxes[row]
        low, high = corner_code(cells.codes, box[0], box[1]), corner_code(cells.codes, box[2], box[3])
        number = np.uint32(row) | (SINGLE if count == 1 else np.uint32(0))
        entry = Entry(low, high, signature(rows.terms, first, count), number)
        if not put_box(cells.own, _rarest(cells, rows, row, frequencies), entry, cells.spots):
            return i
    return len(wanted)


@lean_kernel
def _rarest(cells, rows, row, frequencies):
    """The term of a row with the fewest live messages and rows."""
    first = rows.offsets[row]
    best, fewest = rows.terms[first], np.int64(-1)
    for k in range(first, first + rows.n_terms[row]):
        term = rows.terms[k]
        count = frequencies[term]
        if term < len(cells.points.terms):
            count += cells.points.terms[term, TOTAL]
        if fewest < 0 or count < fewest:
            best, fewest = term, count
    return best


@lean_kernel
def unfile_rows(cells, wanted):
    for row in wanted:
        remove_box(cells.own, row, cells.spots)


@lean_kernel
def post_messages(cells, batch, skipped, done):
    """Write the postings of a batch from `done` on, but those of the term `skipped`; return how many are done."""
    for i in range(done, len(batch.terms)):
        term, at = batch.terms[i], batch.owners[i]
        if term == skipped:
            continue
        entry = Entry(batch.lows[at], batch.highs[at], batch.signatures[at], np.uint32(batch.slots[at]))
        if batch.is_point[at]:
            is_posted = put_point(cells.points, term, entry)
        else:
            is_posted = put_box(cells.ranges, term, entry, cells.spots[:0])
        if not is_posted:
            return i
    return len(batch.terms)
