"""The search: the cells that a message overlaps, in each the lists of its terms, then their entries, then the rows.

Each step prefetches what the next one reads. A list takes one read of the table, one of its record, one of the arena.
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
from nearcast.structures.quadtree.list_scan import ListKeys, add_nodes_below, matching_entries, verified_rows
from nearcast.structures.quadtree.nodes import NONE, ROOT


@kernel
def search(quad, store, messages, marks, starts):
    """Fill starts; return the rows that hold, the number of nodes visited and the number of entries read."""
    out, found = np.empty(1024, np.int32), np.empty(64, np.int32)
    keys, slots = np.empty(64, np.int64), np.empty(64, np.int64)
    entries, children = quad.nodes.entries, quad.nodes.children
    offsets, counts, pivots, boxes = quad.lists.offsets, quad.lists.counts, quad.lists.pivots, quad.lists.boxes
    n = nodes = read = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        slots = with_room(slots, 0, len(terms))
        found[0] = ROOT
        found, n_found = add_nodes_below(quad.nodes, span_of(quad.nodes.bounds, box), found, min(1, entries[ROOT]))
        n_keys = 0
        for k in range(n_found):
            if _has_lists(entries, children, found[k]):
                keys = with_room(keys, n_keys, len(terms))
                n_keys = _add_lists(quad.table, found[k], terms, slots, keys, n_keys)
        for k in range(n_keys):
            prefetch(offsets, keys[k] & 0xFFFFFFFF)
            prefetch(counts, keys[k] & 0xFFFFFFFF)
        for k in range(n_keys):
            which = keys[k] & 0xFFFFFFFF
            read += counts[which]
            prefetch(pivots, offsets[which])
            prefetch(boxes, 4 * offsets[which])
            prefetch(boxes, 4 * offsets[which] + 16)
        mark_terms(marks, messages, m, 1)
        out, stop = matching_entries(quad, ListKeys(keys, n_keys), marks, box, out, n)
        n = verified_rows(quad.lists, store, marks, box, out, n, stop)
        mark_terms(marks, messages, m, 0)
        nodes += n_found
        starts[m + 1] = n
    return out[:n].copy(), nodes, read


@kernel
def _has_lists(entries, children, node):
    """Whether a node has entries of its own, and not only below."""
    first = children[node]
    if first == NONE:
        return True
    return entries[node] > entries[first] + entries[first + 1] + entries[first + 2] + entries[first + 3]


@kernel
def _add_lists(table, node, terms, slots, out, n):
    """Write the lists of a node under these terms to out[n:], as node << 32 | list; return the new n."""
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
            out[n] = term_key(node, values[slot])
            n += 1
    return n
