"""The search: the cells that a message overlaps, in each the lists of its terms, in these the entries, then the rows.

Each step asks for what the next one reads: a list takes a look into the table, one at its record, one into the arena.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, home_slot
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms
from nearcast.structures.node_table import term_key
from nearcast.structures.quadtree.cells import span_of
from nearcast.structures.quadtree.met_lists import entries_met, met_below, rows_holding
from nearcast.structures.quadtree.nodes import NONE, ROOT


@kernel
def search(quad, store, messages, marks, starts):
    """Fill starts; return the rows that hold, how many nodes were visited and how many entries were looked at."""
    out, found = np.empty(1024, np.int32), np.empty(64, np.int32)
    met, slots = np.empty(64, np.int64), np.empty(64, np.int64)
    entries, children = quad.nodes.entries, quad.nodes.children
    offsets, counts, pivots, boxes = quad.lists.offsets, quad.lists.counts, quad.lists.pivots, quad.lists.boxes
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
            prefetch(offsets, met[k] & 0xFFFFFFFF)
            prefetch(counts, met[k] & 0xFFFFFFFF)
        for k in range(n_met):
            number = met[k] & 0xFFFFFFFF
            seen += counts[number]
            prefetch(pivots, offsets[number])
            prefetch(boxes, 4 * offsets[number])
            prefetch(boxes, 4 * offsets[number] + 16)
        mark_terms(marks, messages, m, 1)
        out, stop = entries_met(quad, (met, n_met), marks, box, out, n)
        n = rows_holding(quad.lists, store, marks, box, out, n, stop)
        mark_terms(marks, messages, m, 0)
        nodes += n_found
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def _has_lists(entries, children, node):
    """Whether a node has entries of its own, not only below."""
    first = children[node]
    if first == NONE:
        return True
    return entries[node] > entries[first] + entries[first + 1] + entries[first + 2] + entries[first + 3]


@kernel
def _lists_met(table, node, terms, slots, met, n):
    """Write the lists of a node under these terms to met[n:], as node << 32 | list; return the new n."""
    keys, values = table.keys, table.values
    mask = len(keys) - 1
    for k in range(len(terms)):
        slots[k] = home_slot(term_key(node, terms[k]), mask)
        prefetch(values, slots[k])
        prefetch(keys, slots[k])
    for k in range(len(terms)):
        slot, key = slots[k], term_key(node, terms[k])
        while values[slot] != ABSENT and keys[slot] != key:
            slot = (slot + 1) & mask
        if values[slot] != ABSENT:
            met[n] = term_key(node, values[slot])
            n += 1
    return n
