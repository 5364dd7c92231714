"""The one exact predicate: when a row holds on a message.

Every method ends here, or at a test it can prove equal. Boxes are closed: touching is overlapping.
"""

from __future__ import annotations

from nearcast.arrays.jit import kernel

FLAG_LIVE = 1
FLAG_NEGATIVE = 2  # has `not` terms
FLAG_SHAPED = 4  # its region is smaller than its box
FLAG_EXPIRES = 8
FLAG_CHAINED = 16  # its subscription has further rows
FLAG_LEAVING = 32  # removed; only readers of older versions see it

NEEDS_VERIFYING = FLAG_NEGATIVE | FLAG_SHAPED | FLAG_EXPIRES


@kernel
def mark_terms(marks, messages, message, value):
    """Set marks[term] for each term of one message: 1 before it is matched, 0 after."""
    for k in range(messages.term_starts[message], messages.term_starts[message + 1]):
        marks[messages.terms[k]] = value


@kernel
def has_all_terms(rows, row, marks):
    """Whether each positive term of the row is marked."""
    terms, first = rows.terms, rows.offsets[row]
    for k in range(first, first + rows.n_terms[row]):
        if marks[terms[k]] == 0:
            return False
    return True


@kernel
def box_overlaps(rows, row, box):
    """Whether the row's closed box and the message's closed box share a point."""
    own = rows.boxes
    return own[row, 0] <= box[2] and own[row, 2] >= box[0] and own[row, 1] <= box[3] and own[row, 3] >= box[1]


@kernel
def row_holds(rows, row, marks, box):
    """Whether the row's positive terms all occur and its box overlaps: what a method must decide."""
    return box_overlaps(rows, row, box) and has_all_terms(rows, row, marks)
