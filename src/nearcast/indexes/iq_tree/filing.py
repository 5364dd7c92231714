"""Entries in and out of the lists of cells. A list is found by its node and term in one hash table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMap, find, find_slot, remove_one
from nearcast.arrays.jit import kernel
from nearcast.indexes.iq_tree.cover import cell_of
from nearcast.structures.node_table import term_key
from nearcast.structures.quadtree.lists import (
    close_gap,
    empty_list,
    has_space,
    laid_out,
    open_gap,
    place_of,
    room_for,
    space_for_one,
    write_entry,
)
from nearcast.structures.quadtree.nodes import (
    N_FREE,
    NONE,
    ROOT,
    USED,
    NodeArrays,
    QuadtreeArrays,
    add_up,
    cut_in_four,
    drop_children,
)
from nearcast.structures.quadtree.pivots import has_slots
from nearcast.structures.quadtree.room import with_entries
from nearcast.structures.quadtree.tree import BY_ROW

LISTS, LISTS_FREE = 0, 1  # places in Filed.head


class Filed(NamedTuple):
    """The tree. Its table tells the number of the list of a (node, term); lists have numbers of their own, and a number
    whose last entry went is used again.
    """

    quad: QuadtreeArrays
    free: np.ndarray  # int32[n]  numbers of lists that went
    head: np.ndarray  # int64[2]  lists ever numbered, numbers free


class Entries(NamedTuple):
    """What goes into lists, or comes out: the first four for each row, the others for each (row, cell)."""

    rows: np.ndarray  # int32[n]
    terms: np.ndarray  # int32[n]  the rarest, under which the row is filed
    shown: np.ndarray  # int32[n]  see terms_to_file
    boxes: np.ndarray  # float64[...,4]  by row number
    nodes: np.ndarray  # int32[m]
    items: np.ndarray  # int32[m]  positions among the rows


@kernel
def reach_nodes(nodes, cells, done, out):
    """Write the node of each cell from `done` on, made where there is none, until numbers run out; return how many are
    done.
    """
    for i in range(done, len(cells)):
        level, x, y = cell_of(cells[i])
        node = np.int64(ROOT)
        for shift in range(level - 1, -1, -1):
            if nodes.children[node] == NONE:
                if nodes.head[N_FREE] == 0 and nodes.head[USED] + 4 > len(nodes.children):
                    return i
                cut_in_four(nodes, node)
            node = np.int64(nodes.children[node]) + ((x >> shift) & 1) + 2 * ((y >> shift) & 1)
        out[i] = node
    return len(cells)


def all_filed(nodes: NodeArrays, entries: Entries) -> Filed:
    """The lists of all entries at once, over nodes that have none."""
    keys = entries.nodes.astype(np.int64) << 32 | entries.terms[entries.items]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, len(keys)), bool), keys[1:] != keys[:-1]]))
    counts = np.diff(np.append(firsts, len(keys)))
    lists, table = laid_out(counts, counts), IntMap()
    _write(lists, entries, order)
    table.put(keys[firsts], np.arange(len(firsts), dtype=np.int32))
    nodes.entries[:] = np.bincount(entries.nodes, minlength=len(nodes.entries))
    _sum_up(nodes)
    size = np.array([table.size], np.int64)
    return Filed(
        QuadtreeArrays(nodes, lists, table.arrays, size), np.zeros(0, np.int32), np.array([len(firsts), 0], np.int64)
    )


@kernel
def _write(lists, entries, order):
    for k in range(len(order)):
        i = entries.items[order[k]]
        write_entry(lists, k, entries.rows[i], entries.shown[i], entries.boxes[entries.rows[i]])


@kernel
def _sum_up(nodes):
    """Children have higher numbers than their parents as long as none was given up."""
    for node in range(nodes.head[USED] - 1, 0, -1):
        nodes.entries[nodes.parents[node]] += nodes.entries[node]


@kernel
def file_some(filed, entries, done):
    """File entries from `done` on until room runs out; return how many are done, and the space that the next takes."""
    quad, free, head = filed
    nodes, lists, table, size = quad
    for k in range(done, len(entries.nodes)):
        i, node = entries.items[k], entries.nodes[k]
        row, key = entries.rows[i], term_key(node, entries.terms[i])
        slot = find_slot(table, key)
        number = np.int64(table.values[slot])
        is_new = number == ABSENT
        if is_new:
            number = _next_number(free, head)
        space = np.int64(room_for(1) if is_new else space_for_one(lists, number))
        if not has_space(lists, space) or number == len(lists.counts) or (is_new and not has_slots(table, size, 1)):
            return k, space
        if is_new:
            _take_number(head)
            table.keys[slot], table.values[slot] = key, number
            size[0] += 1
        at = open_gap(lists, number, place_of(lists, number, BY_ROW, row))
        write_entry(lists, at, row, entries.shown[i], entries.boxes[row])
        add_up(nodes.entries, nodes.parents, node, 1)
    return len(entries.nodes), np.int64(0)


@kernel
def _next_number(free, head):
    """The number that the next new list will have."""
    return np.int64(free[head[LISTS_FREE] - 1]) if head[LISTS_FREE] > 0 else head[LISTS]


@kernel
def _take_number(head):
    if head[LISTS_FREE] > 0:
        head[LISTS_FREE] -= 1
    else:
        head[LISTS] += 1


def with_lists(filed: Filed, space: int) -> Filed:
    """The tree with `space` at the arena's end and room for one more list."""
    quad = with_entries(filed.quad, space, 1)
    lists, needed = quad.lists, int(filed.head[LISTS]) + 1
    longer = lists._replace(
        offsets=grown(lists.offsets, needed, fill=0),
        counts=grown(lists.counts, needed, fill=0),
        rooms=grown(lists.rooms, needed, fill=0),
    )
    return filed._replace(quad=quad._replace(lists=longer))


def without(filed: Filed, entries: Entries) -> Filed:
    """The tree without these entries, all of which it has."""
    filed = filed._replace(free=grown(filed.free, int(filed.head[LISTS])))
    _take_out(filed, entries)
    return filed


@kernel
def _take_out(filed, entries):
    """Lists that are empty then go, and so do four nodes that have nothing below them."""
    quad, free, head = filed
    nodes, lists, table, size = quad
    for k in range(len(entries.nodes)):
        i, node = entries.items[k], entries.nodes[k]
        key = term_key(node, entries.terms[i])
        number = find(table, key)
        close_gap(lists, number, place_of(lists, number, BY_ROW, entries.rows[i]))
        if lists.counts[number] == 0:
            empty_list(lists, number)
            size[0] -= remove_one(table, key)
            free[head[LISTS_FREE]] = number
            head[LISTS_FREE] += 1
        add_up(nodes.entries, nodes.parents, node, -1)
        _drop_empty(nodes, node)


@kernel
def _drop_empty(nodes, node):
    """Give up the quarters of those nodes above a node that have nothing in any. What is empty has no quarters."""
    while nodes.entries[node] == 0 and nodes.parents[node] != NONE:
        node = nodes.parents[node]
        first = nodes.children[node]
        if nodes.entries[first] + nodes.entries[first + 1] + nodes.entries[first + 2] + nodes.entries[first + 3] > 0:
            return
        drop_children(nodes, node)
