"""Insertion and removal of rows: updates lists, pivotal terms and counts, splits full leaves, merges sparse quarters.

The kernels change arrays in place. A kernel that may run out of room stops and returns; its caller makes room and
calls it again.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.structures.quadtree.build import spans_differ
from nearcast.structures.quadtree.cells import depth_of, in_cell, in_quarter, row_span
from nearcast.structures.quadtree.lists import (
    close_gap,
    copy_entries,
    drop_list,
    has_space,
    open_gap,
    place_of,
    space_for_one,
    write_entry,
)
from nearcast.structures.quadtree.nodes import (
    COPIES,
    LIMIT,
    NONE,
    TAU_NUM,
    add_children,
    add_to_ancestors,
    drop_children,
)
from nearcast.structures.quadtree.pivots import enter, has_slots, leave, pivot_of


@kernel
def nodes_for_span(nodes, root, span):
    """The nodes of a tree in whose lists a row with this span belongs."""
    depth = depth_of(span, nodes.head[COPIES], nodes.head[LIMIT])
    out, waiting = np.empty(nodes.head[COPIES], np.int32), np.empty(16, np.int32)
    waiting[0] = root
    n, at, stop = 0, 0, 1
    while at < stop:
        node = waiting[at]
        at += 1
        first = nodes.children[node]
        if first == NONE or nodes.levels[node] == depth:
            out[n] = node
            n += 1
            continue
        waiting = with_room(waiting, stop, 4)
        for child in range(first, first + 4):
            if in_cell(span, nodes.levels[child], nodes.xs[child], nodes.ys[child]):
                waiting[stop] = child
                stop += 1
    return out[:n]


@kernel
def _is_movable(nodes, node, span):
    """Whether an entry with this span would move to the children of a node if it had any."""
    return depth_of(span, nodes.head[COPIES], nodes.head[LIMIT]) > nodes.levels[node]


@kernel
def insert_some(quad, columns, rows, roots, terms, done):
    """Insert rows from `done` on, each below its root and with its term, until room runs out or a leaf is full.

    Return the number of rows done, the arena space that the next row takes, and, if a leaf is full, the nodes that
    hold the last row.
    """
    nodes, lists = quad.nodes, quad.lists
    nowhere = np.empty(0, np.int32)
    for i in range(done, len(rows)):
        span = row_span(nodes.bounds, columns.boxes[rows[i]])
        places = nodes_for_span(nodes, roots[i], span)
        space, is_full = 0, False
        for k in range(len(places)):
            space += space_for_one(lists, places[k])
        if not has_space(lists, space) or not has_slots(quad.table, quad.size, len(places) * (nodes.head[LIMIT] + 1)):
            return i, space, nowhere
        for k in range(len(places)):
            _add(quad, columns, places[k], rows[i], terms[i])
            nodes.movable[places[k]] += _is_movable(nodes, places[k], span)
            is_full |= nodes.movable[places[k]] >= nodes.tries[places[k]]
        if is_full:
            return i + 1, 0, places
    return len(rows), 0, nowhere


@kernel
def _add(quad, columns, node, row, term):
    nodes, lists = quad.nodes, quad.lists
    at = place_of(lists, node, columns.numbers, row)
    write_entry(lists, open_gap(lists, node, at), row, term, columns.boxes[row])
    add_to_ancestors(nodes.entries, nodes.parents, node, 1)
    enter(quad.table, quad.size, nodes.parents, node, pivot_of(columns.pivots, row))


@kernel
def split_leaf(quad, columns, leaf):
    """Give a full leaf four children and move its movable entries to them; return whether it was split.

    A leaf whose movable entries no split can separate stays. It is tried again when it has twice as many, so the
    amortised cost per row stays small. The caller has made room for four nodes and four times the entries.
    """
    nodes, lists = quad.nodes, quad.lists
    if not _can_separate(quad, leaf):
        nodes.tries[leaf] = 2 * nodes.movable[leaf]
        return False
    first, before = lists.offsets[leaf], nodes.entries[leaf]
    child = add_children(nodes, leaf)
    kept = 0
    for k in range(lists.counts[leaf]):
        span = row_span(nodes.bounds, lists.boxes[first + k])
        if _is_movable(nodes, leaf, span):
            _hand_down(quad, columns, leaf, first + k, span)
        else:
            if kept < k:
                copy_entries(lists, first + k, lists, first + kept, 1)
            kept += 1
    lists.counts[leaf] = kept
    after = np.int64(kept)
    for quarter in range(4):
        after += nodes.entries[child + quarter]
    add_to_ancestors(nodes.entries, nodes.parents, leaf, after - before)
    return True


@kernel
def _can_separate(quad, leaf):
    """Whether splits can separate any two of the movable entries of a leaf."""
    nodes, lists = quad.nodes, quad.lists
    first, last = lists.offsets[leaf], NONE
    for k in range(first, first + lists.counts[leaf]):
        span = row_span(nodes.bounds, lists.boxes[k])
        if _is_movable(nodes, leaf, span):
            if last != NONE and spans_differ(row_span(nodes.bounds, lists.boxes[last]), span, nodes.head[LIMIT]):
                return True
            last = k
    return False


@kernel
def _hand_down(quad, columns, node, at, span):
    """Append an entry of a node to the lists of its children; the caller reuses the old place."""
    nodes, lists = quad.nodes, quad.lists
    pivot = pivot_of(columns.pivots, lists.rows[at])
    for quarter in range(4):
        if in_quarter(span, nodes.levels[node], nodes.xs[node], nodes.ys[node], quarter):
            child = nodes.children[node] + quarter
            end = open_gap(lists, child, lists.offsets[child] + lists.counts[child])
            copy_entries(lists, at, lists, end, 1)
            nodes.entries[child] += 1
            nodes.movable[child] += _is_movable(nodes, child, span)
            enter(quad.table, quad.size, nodes.parents, child, pivot)
    leave(quad.table, quad.size, nodes.parents, node, pivot)


@kernel
def remove_some(quad, columns, rows, roots, done):
    """Remove rows from `done` on until four quarters are sparse.

    Return the number of rows done and, if a parent of the last row's nodes has sparse quarters, those nodes.
    """
    nodes = quad.nodes
    for i in range(done, len(rows)):
        span = row_span(nodes.bounds, columns.boxes[rows[i]])
        places = nodes_for_span(nodes, roots[i], span)
        is_any_sparse = False
        for k in range(len(places)):
            _take(quad, columns, places[k], rows[i], span)
            parent = nodes.parents[places[k]]
            is_any_sparse |= parent != NONE and is_sparse(quad, parent)
        if is_any_sparse:
            return i + 1, places
    return len(rows), np.empty(0, np.int32)


@kernel
def _take(quad, columns, node, row, span):
    nodes, lists = quad.nodes, quad.lists
    close_gap(lists, node, place_of(lists, node, columns.numbers, row))
    leave(quad.table, quad.size, nodes.parents, node, pivot_of(columns.pivots, row))
    add_to_ancestors(nodes.entries, nodes.parents, node, -1)
    nodes.movable[node] -= _is_movable(nodes, node, span)
    if nodes.movable[node] < nodes.head[TAU_NUM]:
        nodes.tries[node] = nodes.head[TAU_NUM]


@kernel
def is_sparse(quad, node):
    """Whether a node's four children are leaves with less than half of tau_num entries together."""
    nodes = quad.nodes
    return nodes.leaves[node] == 4 and 2 * (nodes.entries[node] - quad.lists.counts[node]) < nodes.head[TAU_NUM]


@kernel
def merge_children(quad, columns, node):
    """Make a node with sparse quarters a leaf that has their entries, each row once. The caller has made space."""
    nodes, lists = quad.nodes, quad.lists
    own, before = lists.counts[node], nodes.entries[node]
    first = np.int64(nodes.children[node])
    for child in range(first, first + 4):
        for k in range(lists.counts[child]):
            source = lists.offsets[child] + k
            row = lists.rows[source]
            at = place_of(lists, node, columns.numbers, row)
            if at == lists.offsets[node] + lists.counts[node] or lists.rows[at] != row:
                copy_entries(lists, source, lists, open_gap(lists, node, at), 1)
                enter(quad.table, quad.size, nodes.parents, node, pivot_of(columns.pivots, row))
            leave(quad.table, quad.size, nodes.parents, child, pivot_of(columns.pivots, row))
        drop_list(lists, child)
    drop_children(nodes, node)
    nodes.movable[node] = lists.counts[node] - own
    add_to_ancestors(nodes.entries, nodes.parents, node, lists.counts[node] - before)
