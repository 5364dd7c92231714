"""Rows that come and go: lists, pivotal tokens and counts follow; crowded leaves are cut, thin quarters join again.

Kernels change arrays in place. Where room may run out they stop, and whoever called them makes room and goes on.
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
    empty_list,
    has_space,
    number_of,
    open_gap,
    place_of,
    space_for_one,
    write_entry,
)
from nearcast.structures.quadtree.nodes import COPIES, LIMIT, NONE, TAU_NUM, add_up, cut_in_four, drop_children
from nearcast.structures.quadtree.pivots import enter, has_slots, leave, token_of


@kernel
def places_of(nodes, root, span):
    """The nodes of a tree in whose lists a row of that span belongs."""
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
    """Whether an entry of that span would go to the children of this node if it had any."""
    return depth_of(span, nodes.head[COPIES], nodes.head[LIMIT]) > nodes.levels[node]


@kernel
def insert_some(quad, held, rows, roots, terms, done):
    """Insert rows from `done` on, each below its root and with the term that its entries show, until room runs out or
    leaves are crowded; return how many are done, the space that the next one takes, and the nodes of the last one if
    one is crowded.
    """
    nodes, lists = quad.nodes, quad.lists
    nowhere = np.empty(0, np.int32)
    for i in range(done, len(rows)):
        span = row_span(nodes.bounds, held.boxes[rows[i]])
        places = places_of(nodes, roots[i], span)
        space, crowded = 0, False
        for k in range(len(places)):
            space += space_for_one(lists, places[k])
        if not has_space(lists, space) or not has_slots(quad.table, quad.size, len(places) * (nodes.head[LIMIT] + 1)):
            return i, space, nowhere
        for k in range(len(places)):
            _add(quad, held, places[k], rows[i], terms[i])
            nodes.movable[places[k]] += _is_movable(nodes, places[k], span)
            crowded |= nodes.movable[places[k]] >= nodes.tries[places[k]]
        if crowded:
            return i + 1, 0, places
    return len(rows), 0, nowhere


@kernel
def _add(quad, held, node, row, term):
    nodes, lists = quad.nodes, quad.lists
    at = place_of(lists, node, held.numbers, number_of(held.numbers, row))
    write_entry(lists, open_gap(lists, node, at), row, term, held.boxes[row])
    add_up(nodes.entries, nodes.parents, node, 1)
    enter(quad.table, quad.size, nodes.parents, node, token_of(held.tokens, row))


@kernel
def cut(quad, held, leaf):
    """Give a crowded leaf four children, and them the entries that can move; return whether it was done.

    It is not where it would part none of them: then the leaf is looked at again when it has twice as many, so that each
    row pays a little. There is room for four nodes and four times the entries.
    """
    nodes, lists = quad.nodes, quad.lists
    if not _are_parted(quad, held, leaf):
        nodes.tries[leaf] = 2 * nodes.movable[leaf]
        return False
    first, before = lists.offsets[leaf], nodes.entries[leaf]
    child = cut_in_four(nodes, leaf)
    kept = 0
    for k in range(lists.counts[leaf]):
        span = row_span(nodes.bounds, lists.boxes[first + k])
        if _is_movable(nodes, leaf, span):
            _hand_down(quad, held, leaf, first + k, span)
        else:
            if kept < k:
                copy_entries(lists, first + k, lists, first + kept, 1)
            kept += 1
    lists.counts[leaf] = kept
    after = np.int64(kept)
    for quarter in range(4):
        after += nodes.entries[child + quarter]
    add_up(nodes.entries, nodes.parents, leaf, after - before)
    return True


@kernel
def _are_parted(quad, held, leaf):
    """Whether cutting would part any two of the movable entries of a leaf."""
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
def _hand_down(quad, held, node, at, span):
    """Move an entry of a node to its children, behind what they have; its old place is left for others."""
    nodes, lists = quad.nodes, quad.lists
    token = token_of(held.tokens, lists.rows[at])
    for quarter in range(4):
        if in_quarter(span, nodes.levels[node], nodes.xs[node], nodes.ys[node], quarter):
            child = nodes.children[node] + quarter
            end = open_gap(lists, child, lists.offsets[child] + lists.counts[child])
            copy_entries(lists, at, lists, end, 1)
            nodes.entries[child] += 1
            nodes.movable[child] += _is_movable(nodes, child, span)
            enter(quad.table, quad.size, nodes.parents, child, token)
    leave(quad.table, quad.size, nodes.parents, node, token)


@kernel
def remove_some(quad, held, rows, roots, done):
    """Remove rows from `done` on until quarters are thin; return how many are done, and the nodes of the last one if
    one of their parents has thin quarters.
    """
    nodes = quad.nodes
    for i in range(done, len(rows)):
        span = row_span(nodes.bounds, held.boxes[rows[i]])
        places = places_of(nodes, roots[i], span)
        thin = False
        for k in range(len(places)):
            _take(quad, held, places[k], rows[i], span)
            parent = nodes.parents[places[k]]
            thin |= parent != NONE and is_thin(quad, parent)
        if thin:
            return i + 1, places
    return len(rows), np.empty(0, np.int32)


@kernel
def _take(quad, held, node, row, span):
    nodes, lists = quad.nodes, quad.lists
    close_gap(lists, node, place_of(lists, node, held.numbers, number_of(held.numbers, row)))
    leave(quad.table, quad.size, nodes.parents, node, token_of(held.tokens, row))
    add_up(nodes.entries, nodes.parents, node, -1)
    nodes.movable[node] -= _is_movable(nodes, node, span)
    if nodes.movable[node] < nodes.head[TAU_NUM]:
        nodes.tries[node] = nodes.head[TAU_NUM]


@kernel
def is_thin(quad, node):
    """Whether a node's four children are leaves with less than half of what makes a leaf crowded."""
    nodes = quad.nodes
    return nodes.leaves[node] == 4 and 2 * (nodes.entries[node] - quad.lists.counts[node]) < nodes.head[TAU_NUM]


@kernel
def join(quad, held, node):
    """Make a node with thin quarters a leaf again, with their entries, each once. There is space for its list."""
    nodes, lists, numbers = quad.nodes, quad.lists, held.numbers
    own, before = lists.counts[node], nodes.entries[node]
    first = np.int64(nodes.children[node])
    for child in range(first, first + 4):
        for k in range(lists.counts[child]):
            source = lists.offsets[child] + k
            row = lists.rows[source]
            at = place_of(lists, node, numbers, number_of(numbers, row))
            if at == lists.offsets[node] + lists.counts[node] or lists.rows[at] != row:
                copy_entries(lists, source, lists, open_gap(lists, node, at), 1)
                enter(quad.table, quad.size, nodes.parents, node, token_of(held.tokens, row))
            leave(quad.table, quad.size, nodes.parents, child, token_of(held.tokens, row))
        empty_list(lists, child)
    drop_children(nodes, node)
    nodes.movable[node] = lists.counts[node] - own
    add_up(nodes.entries, nodes.parents, node, lists.counts[node] - before)
