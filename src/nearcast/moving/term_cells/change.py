"""Changes of the lists: rows come, go and move; messages come. A kernel that lacks room stops and is called again."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.arrays.vector import prefetch
from nearcast.moving.entry_lists.lists import CORNER, LEVEL, TOTAL, Entry
from nearcast.moving.entry_lists.place_codes import corner_code, signature
from nearcast.moving.entry_lists.scans import SINGLE, prefetch_end
from nearcast.moving.term_cells.batch import message_entry
from nearcast.moving.term_cells.boxes import put_box, remove_box
from nearcast.moving.term_cells.points import list_of_point, put_point

_AHEAD = 8


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
        _prefetch_points(cells.points, batch, i)
        term, at = batch.terms[i], batch.owners[i]
        if term == skipped:
            continue
        entry = message_entry(batch, at)
        if batch.is_point[at]:
            is_posted = put_point(cells.points, term, entry)
        else:
            is_posted = put_box(cells.ranges, term, entry, cells.spots[:0])
        if not is_posted:
            return i
    return len(batch.terms)


@lean_kernel
def _prefetch_points(points, batch, i):
    """Prefetch the list of a later posting, and the places in its list of a posting that comes earlier."""
    if i + 2 * _AHEAD < len(batch.terms):
        term = batch.terms[i + 2 * _AHEAD]
        if points.terms[term, LEVEL]:
            prefetch(points.heads, 4 * list_of_point(points, term, batch.entries[batch.owners[i + 2 * _AHEAD], CORNER]))
    if i + _AHEAD < len(batch.terms):
        term = batch.terms[i + _AHEAD]
        at = list_of_point(points, term, batch.entries[batch.owners[i + _AHEAD], CORNER])
        prefetch_end(points, at)
