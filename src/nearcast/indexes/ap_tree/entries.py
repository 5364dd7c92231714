"""The entries of leaves: a row, its box in float32 rounded outward, and its rarest terms.

Whether a row holds is told from its entry, but for two cases in which the store is asked: its box in float32 touches
the message's and does not overlap it strictly, or it has more than three terms and the three rarest occur.
"""

from __future__ import annotations

from nearcast.arrays.jit import kernel
from nearcast.structures.boxes import rounded_down

# A line of `entries`: the row's rarest rank; the row; its second rarest rank; its third, as ~rank where it has more
# terms; and its box, xmin, ymin, xmax, ymax, to be read in `sides`. Two lines to a line of the cache.
PIVOT, ROW, SECOND, THIRD, XMIN, YMIN, XMAX, YMAX = range(8)


@kernel
def write_entry(shape, at, rows, item):
    """Entry `at` becomes that of an item of ranked rows. A term that it lacks is stood for by one that it has."""
    first, last = rows.starts[item], rows.starts[item + 1] - 1
    second, third = max(first, last - 1), max(first, last - 2)
    entry, sides, box = shape.entries[at], shape.sides[at], rows.boxes[item]
    entry[PIVOT] = rows.ranks[last]
    entry[ROW] = rows.rows[item]
    entry[SECOND] = rows.ranks[second]
    entry[THIRD] = ~rows.ranks[third] if last - first > 2 else rows.ranks[third]
    sides[XMIN], sides[YMIN] = rounded_down(box[0]), rounded_down(box[1])
    sides[XMAX], sides[YMAX] = -rounded_down(-box[2]), -rounded_down(-box[3])


@kernel
def copy_entry(shape, source, into, target):
    """An entry of one tree becomes one of the same or another."""
    into.entries[target] = shape.entries[source]
