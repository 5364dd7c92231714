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
def post_messages(cells, messages, slots, first_term, cursor):
    """Post messages under their terms from `cursor` (message, term) on; return whether all are posted.

    `first_term` is 1 where no row is under EVERYWHERE, which is the first term of every message.
    """
    for i in range(cursor[0], len(slots)):
        slot = slots[i]
        box, first, count = messages.boxes[slot], messages.offsets[slot], messages.n_terms[slot]
        low, high = corner_code(cells.codes, box[0], box[1]), corner_code(cells.codes, box[2], box[3])
        entry = Entry(low, high, signature(messages.terms, first, count), np.uint32(slot))
        is_point = box[0] == box[2] and box[1] == box[3]
        for k in range(max(cursor[1], first_term), count):
            if not _post(cells, is_point, messages.terms[first + k], entry):
                cursor[0], cursor[1] = i, k
                return False
        cursor[1] = 0
    return True


@lean_kernel
def _post(cells, is_point, term, entry):
    if is_point:
        return put_point(cells.points, term, entry)
    return put_box(cells.ranges, term, entry, cells.spots[:0])


@lean_kernel
def post_everywhere(cells, messages, slots, cursor):
    """Post messages under EVERYWHERE alone, from position cursor[0] on; return whether all are posted."""
    for i in range(cursor[0], len(slots)):
        slot = slots[i]
        box, first, count = messages.boxes[slot], messages.offsets[slot], messages.n_terms[slot]
        low, high = corner_code(cells.codes, box[0], box[1]), corner_code(cells.codes, box[2], box[3])
        entry = Entry(low, high, signature(messages.terms, first, count), np.uint32(slot))
        if not _post(cells, box[0] == box[2] and box[1] == box[3], np.int32(0), entry):
            cursor[0] = i
            return False
    return True
