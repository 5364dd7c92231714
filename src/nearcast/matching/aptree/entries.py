"""The entries of leaves: a row, its box in float32 rounded outward, and its rarest terms.

Whether a row holds is told from its entry, but for two cases in which the store is asked: its box in float32 touches
the message's and does not overlap it strictly, or it has more than three terms and the three rarest occur.
"""

from __future__ import annotations

from nearcast.arrays.jit import kernel
from nearcast.matching.postings import rounded_down


@kernel
def write_entry(shape, at, rows, item):  # type: ignore[no-untyped-def]
    """Entry `at` becomes that of an item of ranked rows. A term that it lacks is stood for by one that it has."""
    first, last = rows.starts[item], rows.starts[item + 1] - 1
    second, third = max(first, last - 1), max(first, last - 2)
    shape.pivots[at] = rows.ranks[last]
    shape.rests[at, 0] = rows.rows[item]
    shape.rests[at, 1] = rows.ranks[second]
    shape.rests[at, 2] = ~rows.ranks[third] if last - first > 2 else rows.ranks[third]
    box = rows.boxes[item]
    for k in range(2):
        shape.boxes[at, k] = rounded_down(box[k])
        shape.boxes[at, k + 2] = -rounded_down(-box[k + 2])


@kernel
def copy_entry(shape, source, into, target):  # type: ignore[no-untyped-def]
    """An entry of one tree becomes one of the same or another."""
    into.pivots[target] = shape.pivots[source]
    into.rests[target] = shape.rests[source]
    into.boxes[target] = shape.boxes[source]
