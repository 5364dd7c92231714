"""The search: the cells that a message overlaps, in each the lists of its terms, in these the entries, then the rows.

Each step asks for what the next one reads: a list takes a look into the table, one at its record, one into the arena.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, home_slot
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.geo.loose_grid import position
from nearcast.matching.postings import rounded_down
from nearcast.matching.predicate import mark_terms, row_holds
from nearcast.matching.quadtree.cells import FINEST, span_of
from nearcast.matching.quadtree.forest import met_below
from nearcast.matching.quadtree.nodes import NONE, ROOT
from nearcast.matching.rtree.node_table import token_key
from nearcast.matching.trie.search import near, surely


@kernel
def search(quad, store, messages, marks, starts):  # type: ignore[no-untyped-def]
    """Fill starts; return the rows that hold, how many nodes were visited and how many entries were looked at."""
    out, found = np.empty(1024, np.int32), np.empty(64, np.int32)
    met, slots = np.empty(64, np.int64), np.empty(64, np.int64)
    entries, children = quad.nodes.entries, quad.nodes.children
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        slots = with_room(slots, 0, len(terms))
        found[0] = ROOT
        found, n_found = met_below(quad.nodes, span_of(quad.nodes.bounds, box), found, min(1, entries[ROOT]))
        n_met = 0
        for k in range(n_found):
            if _has_lists(entries, children, found[k]):
                met = with_room(met, n_met, len(terms))
                n_met = _lists_met(quad.table, found[k], terms, slots, met, n_met)
        for k in range(n_met):
            seen += quad.lists.counts[met[k] & 0xFFFFFFFF]
            prefetch(quad.lists.boxes, 4 * quad.lists.offsets[met[k] & 0xFFFFFFFF])
        mark_terms(marks, messages, m, 1)
        out, stop = _entries_met(quad, (met, n_met), marks, box, out, n)
        n = _verify(quad.lists, store, marks, box, out, n, stop)
        mark_terms(marks, messages, m, 0)
        nodes += n_found
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def _has_lists(entries, children, node):  # type: ignore[no-untyped-def]
    """Whether a node has entries of its own, not only below."""
    first = children[node]
    if first == NONE:
        return True
    return entries[node] > entries[first] + entries[first + 1] + entries[first + 2] + entries[first + 3]


@kernel
def _lists_met(table, node, terms, slots, met, n):  # type: ignore[no-untyped-def]
    """Write the lists of a node under these terms to met[n:], as node << 32 | list; return the new n."""
    keys, values = table.keys, table.values
    mask = len(keys) - 1
    for k in range(len(terms)):
        slots[k] = home_slot(token_key(node, terms[k]), mask)
        prefetch(values, slots[k])
        prefetch(keys, slots[k])
    for k in range(len(terms)):
        slot, key = slots[k], token_key(node, terms[k])
        while values[slot] != ABSENT and keys[slot] != key:
            slot = (slot + 1) & mask
        if values[slot] != ABSENT:
            met[n] = token_key(node, values[slot])
            n += 1
    return n


@kernel
def _entries_met(quad, lists_met, marks, box, out, n):  # type: ignore[no-untyped-def]
    """Write the places of entries whose shown term is marked and whose box, as the list has it, overlaps to out[n:],
    those of a row in one cell alone; return (out, the new n).
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
            n = _at_home(nodes.bounds, cell, boxes, box, out, first_new, n)
    return out, n


@kernel
def _at_home(bounds, cell, boxes, box, out, n, stop):  # type: ignore[no-untyped-def]
    """Keep those of the entries at the places out[n:stop] whose home is this cell, as is_home in quadtree/search.py has
    it; return the new stop. The tree is not handed on for each entry: that would take longer than the test.
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
def _verify(lists, store, marks, box, out, n, stop):  # type: ignore[no-untyped-def]
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
def _rounded(box):  # type: ignore[no-untyped-def]
    """A box in float32, rounded outward, then inward."""
    out = np.empty(8, np.float32)
    for side in range(2):
        out[side], out[side + 4] = rounded_down(box[side]), -rounded_down(-box[side])
        out[side + 2], out[side + 6] = -rounded_down(-box[side + 2]), rounded_down(box[side + 2])
    return out
