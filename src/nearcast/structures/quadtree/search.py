"""Search by pivotal terms: visits the nodes that overlap a message and share a pivotal term with it, then their lists.

A term that a node lacks is in no node below it, so each node looks up only the terms that its parent has. Once a term
of the message covers a node, only the place decides below it. A point that meets few rows costs a chain of cache misses
and little else: memory is prefetched before it is read, and the lists of several nodes are verified together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, IntMapArrays, home_slot
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms, row_holds
from nearcast.structures.node_table import term_key, value_of
from nearcast.structures.quadtree.cells import in_cell, span_of
from nearcast.structures.quadtree.nodes import NONE, ROOT, QuadtreeArrays, cell_of_node, reports_pair
from nearcast.structures.quadtree.pivots import covers

_COVERED = -1
_AHEAD = 8  # terms whose slots are prefetched: two cache misses each
_TOGETHER = 256  # entries verified at once: enough that misses overlap, few enough that prefetched lines stay in cache


class NodesView(NamedTuple):
    """The node arrays that a search reads; see NodeArrays."""

    children: np.ndarray
    levels: np.ndarray
    xs: np.ndarray
    ys: np.ndarray
    leaves: np.ndarray
    entries: np.ndarray
    bounds: np.ndarray


class ListsView(NamedTuple):
    """The list arrays that a search reads; see ListArrays."""

    offsets: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    pivots: np.ndarray
    boxes: np.ndarray


class QuadtreeView(NamedTuple):
    """The arrays that a search reads and no others, since passing an array to a kernel takes time."""

    nodes: NodesView
    lists: ListsView
    table: IntMapArrays


class _Pending(NamedTuple):
    """Places in an output buffer: out[:n] holds results, out[start:stop] is still to be tested."""

    n: int
    start: int
    stop: int


def quadtree_view(quad: QuadtreeArrays) -> QuadtreeView:
    return QuadtreeView(
        NodesView(*(getattr(quad.nodes, name) for name in NodesView._fields)),
        ListsView(*(getattr(quad.lists, name) for name in ListsView._fields)),
        quad.table,
    )


@kernel
def search(quad, store, messages, marks, starts):
    """Fill starts; return the rows that hold, the number of nodes visited and the number of entries read."""
    out = np.empty(1024, np.int32)
    n = nodes = entries = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        mark_terms(marks, messages, m, 1)
        visited = visited_nodes(quad, terms, box)
        out, n, read = scan_nodes(quad, visited, store, marks, box, out, n)
        nodes, entries = nodes + len(visited), entries + read
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, entries


@kernel
def visited_nodes(quad, terms, box):
    """The nodes that overlap the box and have a term of the message, or lie below a node that one of them covers.

    The parent of a visited node is visited too.
    """
    nodes, keys, values = quad.nodes, quad.table.keys, quad.table.values
    children, levels, xs, ys, entries = nodes.children, nodes.levels, nodes.xs, nodes.ys, nodes.entries
    span = span_of(nodes.bounds, box)
    found, froms, stops = np.empty(64, np.int32), np.empty(64, np.int64), np.empty(64, np.int64)
    shared = np.empty(64 + 2 * len(terms), np.int32)  # of each found node, from froms to stops
    used = _shared_terms(keys, values, ROOT, terms, shared, 0)
    found[0] = ROOT
    froms[0], stops[0] = (_COVERED, _COVERED) if used == _COVERED else (0, used)
    n, at = int(used != 0), 0
    used = max(used, 0)
    while at < n:
        node, start, stop = found[at], froms[at], stops[at]
        at += 1
        first = children[node]
        if first == NONE:
            continue
        found, froms, stops = with_room(found, n, 4), with_room(froms, n, 4), with_room(stops, n, 4)
        for child in range(first, first + 4):
            if entries[child] == 0 or not in_cell(span, levels[child], xs[child], ys[child]):
                continue
            found[n], froms[n], stops[n] = child, _COVERED, _COVERED
            if start != _COVERED:
                shared = with_room(shared, used, stop - start)
                stops[n] = _shared_terms(keys, values, child, shared[start:stop], shared, used)
                if stops[n] == used:
                    continue
                if stops[n] != _COVERED:
                    froms[n] = used
                    used = stops[n]
            n += 1
    return found[:n]


@kernel
def _shared_terms(keys, values, node, terms, out, n):
    """Write the terms that are pivotal at a node to out[n:]; return the new n, or _COVERED if one of them covers."""
    for k in range(min(len(terms), _AHEAD)):
        _prefetch_slot(keys, values, term_key(node, terms[k]))
    for k in range(len(terms)):
        if k + _AHEAD < len(terms):
            _prefetch_slot(keys, values, term_key(node, terms[k + _AHEAD]))
        value = value_of(keys, values, term_key(node, terms[k]))
        if value != ABSENT:
            if covers(value):
                return _COVERED
            out[n] = terms[k]
            n += 1
    return n


@inline_kernel
def _prefetch_slot(keys, values, key):
    slot = home_slot(key, len(keys) - 1)
    prefetch(values, slot)
    prefetch(keys, slot)


@kernel
def scan_nodes(quad, visited, store, marks, box, out, n):
    """Write the rows of these nodes' lists that hold to out[n:], each once; return out, n and the entries read."""
    offsets, counts, pivots = quad.lists.offsets, quad.lists.counts, quad.lists.pivots
    ends, begun, stop, read = np.empty(len(visited), np.int64), 0, n, 0
    for k in range(len(visited)):
        prefetch(pivots, offsets[visited[k]])
    for k in range(len(visited)):
        node, count = visited[k], np.int64(counts[visited[k]])
        out = with_room(out, stop, count + 1)
        stop = ends[k] = _with_marked_term(pivots, offsets[node], count, marks, out, stop)
        read += count
        if stop - n >= _TOGETHER or (stop > n and k + 1 == len(visited)):
            stop = near = n
            for j in range(begun, k + 1):
                if ends[j] > stop:
                    near = _overlapping_rows(quad, visited[j], store, box, out, _Pending(near, stop, ends[j]))
                stop = ends[j]
            n = stop = _holding(store, marks, box, out, n, near)
            begun = k + 1
    return out, n, read


@kernel
def _with_marked_term(pivots, first, count, marks, out, n):
    """Write the places, counted from `first`, of the entries whose term is marked to out[n:]; return the new n.

    Marks are 0 or 1. Each place is written, and kept by adding its mark, since the branch would be unpredictable.
    """
    for k in range(count):
        out[n] = k
        n += np.int64(marks[pivots[first + k]])
    return n


@kernel
def _overlapping_rows(quad, node, store, box, out, pending):
    """Replace pending places in a node's list by the rows that overlap and that this node reports; return the new n.

    The store's data of these rows are prefetched: three cache misses each.
    """
    boxes, rows, first = quad.lists.boxes, quad.lists.rows, quad.lists.offsets[node]
    is_range = box[0] != box[2] or box[1] != box[3]
    n, stop = pending.n, pending.stop
    cell, bounds = cell_of_node(quad.nodes, node), quad.nodes.bounds
    for j in range(pending.start, min(pending.start + _AHEAD, stop)):
        prefetch(boxes, 4 * (first + out[j]))
    for j in range(pending.start, stop):
        if j + _AHEAD < stop:
            prefetch(boxes, 4 * (first + out[j + _AHEAD]))
        at = first + out[j]
        x, y = max(boxes[at, 0], box[0]), max(boxes[at, 1], box[1])
        near = boxes[at, 0] <= box[2] and boxes[at, 2] >= box[0] and boxes[at, 1] <= box[3] and boxes[at, 3] >= box[1]
        if near and (not is_range or reports_pair(cell, bounds, x, y)):
            row = rows[at]
            prefetch(store.offsets, row)
            prefetch(store.n_terms, row)
            prefetch(store.boxes, 4 * row)
            out[n] = row
            n += 1
    return n


@kernel
def _holding(store, marks, box, out, n, stop):
    """Keep the rows of out[n:stop] that hold; return the new n."""
    for j in range(n, stop):
        prefetch(store.terms, store.offsets[out[j]])
    for j in range(n, stop):
        if row_holds(store, out[j], marks, box):
            out[n] = out[j]
            n += 1
    return n
