"""Lists that a message meets, of any number for each node: which nodes, which entries, which rows.

Entries show a term that must occur besides the one that led to the list, inverted where their rows have more terms than
these two: then the store is asked for the rest.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.geo.loose_grid import position
from nearcast.matching.predicate import row_holds
from nearcast.matching.store import RowStore
from nearcast.structures.boxes import rounded_down
from nearcast.structures.quadtree.cells import FINEST, in_cell
from nearcast.structures.quadtree.nodes import NONE
from nearcast.structures.term_order import NO_TERM, rarest_two
from nearcast.structures.trie.probe import near, surely


def terms_to_file(store: RowStore, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rarest term of each row, and what its entries show: the second rarest (or for want of one the same), inverted
    where the row has more.
    """
    rarest, second = rarest_two(store, rows)
    shown = np.where(second == NO_TERM, rarest, second)
    return rarest, np.where(store.arrays.n_terms[rows] > 2, ~shown, shown)


@kernel
def met_below(nodes, span, found, n):
    """Write the nodes that a span overlaps below the first n of `found` behind these, but for empty ones; return
    (found, the new n).
    """
    children, levels, xs, ys, entries = nodes.children, nodes.levels, nodes.xs, nodes.ys, nodes.entries
    at = 0
    while at < n:
        child = children[found[at]]
        at += 1
        if child == NONE:
            continue
        found = with_room(found, n, 4)
        for node in range(child, child + 4):
            if entries[node] > 0 and in_cell(span, levels[node], xs[node], ys[node]):
                found[n] = node
                n += 1
    return found, n


@kernel
def entries_met(quad, lists_met, marks, box, out, n):
    """`lists_met`: lists as node << 32 | number, and how many. Write the places of their entries whose shown term is
    marked and whose box, as the list has it, overlaps to out[n:], those of a row in one cell alone; return (out, n).
    """
    met, n_met = lists_met
    lists, nodes, is_range, rounded = quad.lists, quad.nodes, box[0] != box[2] or box[1] != box[3], _rounded(box)
    shown, boxes = lists.pivots, lists.boxes
    for k in range(n_met):
        number, first_new = met[k] & 0xFFFFFFFF, n
        first, count = lists.offsets[number], np.int64(lists.counts[number])
        out = with_room(out, n, count + 1)
        for at in range(np.uint64(first), np.uint64(first + count)):
            out[n] = at
            n += np.int64(near(boxes, at, rounded) & (marks[np.uint64(shown[at] ^ (shown[at] >> 31))] != 0))
        if is_range:
            node = met[k] >> 32
            cell = nodes.levels[node], nodes.xs[node], nodes.ys[node]
            n = at_home(nodes.bounds, cell, boxes, box, out, first_new, n)
    return out, n


@kernel
def at_home(bounds, cell, boxes, box, out, n, stop):
    """Keep those of the entries at the places out[n:stop] whose home is this cell, as is_home in search.py has it;
    return the new stop. The tree is not handed on for each entry: that would take longer than the test.
    """
    level, x, y = cell
    shift = FINEST - level
    for j in range(n, stop):
        at = np.uint64(out[j])
        column = position(max(boxes[at, 0], box[0]), bounds[0], bounds[2], FINEST)
        line = position(max(boxes[at, 1], box[1]), bounds[1], bounds[3], FINEST)
        if column >> shift == x and line >> shift == y:
            out[n] = out[j]
            n += 1
    return n


@kernel
def rows_holding(lists, store, marks, box, out, n, stop):
    """Turn the places out[n:stop] into rows that hold; return the new stop.

    An entry tells it all where its row has no more than two terms and its rounded box overlaps by more than the
    rounding. The others are written as ~row, and the store is asked for them, three cache misses each.
    """
    rounded = _rounded(box)
    for j in range(n, stop):
        at = np.uint64(out[j])
        row = lists.rows[at]
        if lists.pivots[at] < 0 or not surely(lists.boxes, at, rounded):
            prefetch(store.offsets, row)
            prefetch(store.n_terms, row)
            prefetch(store.boxes, 4 * row)
            row = ~row
        out[j] = row
    for j in range(n, stop):
        if out[j] < 0:
            prefetch(store.terms, store.offsets[~out[j]])
    for j in range(n, stop):
        if out[j] >= 0:
            out[n] = out[j]
            n += 1
        elif row_holds(store, ~out[j], marks, box):
            out[n] = ~out[j]
            n += 1
    return n


@kernel
def _rounded(box):
    """A box in float32, rounded outward, then inward."""
    out = np.empty(8, np.float32)
    for side in range(2):
        out[side], out[side + 4] = rounded_down(box[side]), -rounded_down(-box[side])
        out[side + 2], out[side + 6] = -rounded_down(-box[side + 2]), rounded_down(box[side + 2])
    return out
