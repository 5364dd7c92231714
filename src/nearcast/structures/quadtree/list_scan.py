"""Steps of searches that select lists themselves: the nodes that a message overlaps, their entries, and the rows.

An entry holds a second term that a message must have, besides the one that led to the list. The term is inverted (~t)
where the row has more than these two terms; then the row's other terms are read from the store.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import row_holds
from nearcast.matching.store import RowStore
from nearcast.structures.boxes import overlaps, rounded_both_ways, surely_overlaps
from nearcast.structures.quadtree.cells import in_cell
from nearcast.structures.quadtree.nodes import NONE, cell_of_node, reports_pair
from nearcast.structures.term_order import NO_TERM, rarest_two


def filing_terms(store: RowStore, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rarest term of each row, and the term that its entries hold.

    The latter is the second rarest (the rarest again if the row has only one), inverted where the row has more.
    """
    rarest, second = rarest_two(store, rows)
    other = np.where(second == NO_TERM, rarest, second)
    return rarest, np.where(store.arrays.n_terms[rows] > 2, ~other, other)


class ListKeys(NamedTuple):
    """The lists to scan: the first n of `keys`, each node << 32 | list."""

    keys: np.ndarray  # int64[...]
    n: int


@kernel
def add_nodes_below(nodes, span, found, n):
    """Append the non-empty nodes below found[:n] that a span overlaps; return (found, the new n)."""
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
def matching_entries(quad, selected, marks, box, out, n):
    """Write the places of entries whose term is marked and whose float32 box overlaps to out[n:]; return (out, n).

    `selected` are ListKeys. Of a row with several entries one is kept.
    """
    lists, nodes, is_range = quad.lists, quad.nodes, box[0] != box[2] or box[1] != box[3]
    terms, boxes, rounded = lists.pivots, lists.boxes, rounded_both_ways(box)
    for k in range(selected.n):
        which, first_new = selected.keys[k] & 0xFFFFFFFF, n
        first, count = lists.offsets[which], np.int64(lists.counts[which])
        out = with_room(out, n, count + 1)
        for at in range(np.uint64(first), np.uint64(first + count)):
            out[n] = at
            n += np.int64(overlaps(boxes, at, rounded) & (marks[np.uint64(terms[at] ^ (terms[at] >> 31))] != 0))
        if is_range:
            cell = cell_of_node(nodes, selected.keys[k] >> 32)
            n = keep_reported(nodes.bounds, cell, boxes, box, out, first_new, n)
    return out, n


@kernel
def keep_reported(bounds, cell, boxes, box, out, n, stop):
    """Keep the entries at the places out[n:stop] that this cell reports; return the new stop.

    The kernel takes the cell and not the tree: passing the tree for each list would take longer than the test.
    """
    for j in range(n, stop):
        at = np.uint64(out[j])
        if reports_pair(cell, bounds, max(boxes[at, 0], box[0]), max(boxes[at, 1], box[1])):
            out[n] = out[j]
            n += 1
    return n


@kernel
def verified_rows(lists, store, marks, box, out, n, stop):
    """Replace the places out[n:stop] by the rows that hold; return the new stop.

    An entry decides alone where its row has at most two terms and its rounded box surely overlaps. The other rows are
    written as ~row and read from the store, three cache misses each.
    """
    rounded = rounded_both_ways(box)
    for j in range(n, stop):
        at = np.uint64(out[j])
        row = lists.rows[at]
        if lists.pivots[at] < 0 or not surely_overlaps(lists.boxes, at, rounded):
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
