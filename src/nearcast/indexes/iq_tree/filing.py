"""Puts entries into the lists of cells and takes them out.

The tree's table maps (node, term) to the number of a list. Numbers of dropped lists are used again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import ABSENT, IntMap, find, find_slot, remove_one
from nearcast.arrays.jit import kernel
from nearcast.indexes.iq_tree.cover import cell_of
from nearcast.structures.arena import add_to_parents, free_number, larger_room, take_number
from nearcast.structures.boxes import outward
from nearcast.structures.node_table import term_key
from nearcast.structures.quadtree import lists as arena
from nearcast.structures.quadtree.nodes import (
    N_FREE,
    NONE,
    ROOT,
    USED,
    NodeArrays,
    QuadtreeArrays,
    add_children,
    add_to_ancestors,
    drop_children,
)
from nearcast.structures.quadtree.pivots import has_slots
from nearcast.structures.quadtree.quadtrees import BY_ROW

LISTS, LISTS_FREE = 0, 1  # places in the head of lists: numbers ever used, numbers free


class Entries(NamedTuple):
    """Entries to insert or remove: the first three by row, the last two by (row, cell)."""

    rows: np.ndarray  # int32[n]
    terms: np.ndarray  # int32[n]  the rarest term, under which the row is filed
    others: np.ndarray  # int32[n]  the term in the entry: see filing_terms
    boxes: np.ndarray  # float64[...,4]  by row number
    nodes: np.ndarray  # int32[m]
    items: np.ndarray  # int32[m]  positions among the rows


@kernel
def reach_nodes(nodes, cells, done, out):
    """Write the node of each cell from `done` on, adding nodes, until numbers run out; return the number done."""
    for i in range(done, len(cells)):
        level, x, y = cell_of(cells[i])
        node = np.int64(ROOT)
        for shift in range(level - 1, -1, -1):
            if nodes.children[node] == NONE:
                if nodes.head[N_FREE] == 0 and nodes.head[USED] + 4 > len(nodes.children):
                    return i
                add_children(nodes, node)
            node = np.int64(nodes.children[node]) + ((x >> shift) & 1) + 2 * ((y >> shift) & 1)
        out[i] = node
    return len(cells)


def file_all(nodes: NodeArrays, entries: Entries) -> QuadtreeArrays:
    """A tree with these entries, over nodes without lists. Lists are numbered from 0 on."""
    keys = entries.nodes.astype(np.int64) << 32 | entries.terms[entries.items]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(np.append(firsts, len(keys)))
    items, table = entries.items[order], IntMap()
    rows = entries.rows[items]
    lists = arena.filled_lists(counts, rows, entries.others[items], outward(entries.boxes[rows]))
    table.put(keys[firsts], np.arange(len(firsts), dtype=np.int32))
    nodes.entries[:] = np.bincount(entries.nodes, minlength=len(nodes.entries))
    add_to_parents(nodes.entries, nodes.parents, int(nodes.head[USED]))
    return QuadtreeArrays(nodes, lists, table.arrays, np.array([table.size], np.int64))


@kernel
def file_some(quad, free, head, entries, done):
    """File entries from `done` on until room runs out; return the number done and the space that the next one takes."""
    nodes, lists, table, size = quad.nodes, quad.lists, quad.table, quad.size
    for k in range(done, len(entries.nodes)):
        i, node = entries.items[k], entries.nodes[k]
        row, key = entries.rows[i], term_key(node, entries.terms[i])
        slot = find_slot(table, key)
        which = np.int64(table.values[slot])
        is_new = which == ABSENT
        space = np.int64(larger_room(1) if is_new else arena.space_for_one(lists, which))
        has_number = head[LISTS_FREE] > 0 or head[LISTS] < len(lists.counts)
        if not arena.has_space(lists, space) or (is_new and not (has_number and has_slots(table, size, 1))):
            return k, space
        if is_new:
            which = take_number(head, LISTS, LISTS_FREE, free)
            table.keys[slot], table.values[slot] = key, which
            size[0] += 1
        at = arena.open_gap(lists, which, arena.place_of(lists, which, BY_ROW, row))
        arena.write_entry(lists, at, row, entries.others[i], entries.boxes[row])
        add_to_ancestors(nodes.entries, nodes.parents, node, 1)
    return len(entries.nodes), np.int64(0)


@kernel
def take_out(quad, free, head, entries):
    """Remove entries, then lists that are empty, then groups of four nodes that have nothing at or below them."""
    nodes, lists, table, size = quad.nodes, quad.lists, quad.table, quad.size
    for k in range(len(entries.nodes)):
        i, node = entries.items[k], entries.nodes[k]
        key = term_key(node, entries.terms[i])
        which = find(table, key)
        arena.close_gap(lists, which, arena.place_of(lists, which, BY_ROW, entries.rows[i]))
        if lists.counts[which] == 0:
            arena.drop_list(lists, which)
            size[0] -= remove_one(table, key)
            free_number(head, LISTS_FREE, free, which)
        add_to_ancestors(nodes.entries, nodes.parents, node, -1)
        _drop_empty(nodes, node)


@kernel
def _drop_empty(nodes, node):
    """Drop the quarters of each node above this one whose quarters are all empty. An empty node has no quarters."""
    while nodes.entries[node] == 0 and nodes.parents[node] != NONE:
        node = nodes.parents[node]
        first = nodes.children[node]
        if nodes.entries[first] + nodes.entries[first + 1] + nodes.entries[first + 2] + nodes.entries[first + 3] > 0:
            return
        drop_children(nodes, node)
