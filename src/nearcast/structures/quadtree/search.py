"""The search: nodes that overlap a message and have a pivotal token of it, then the rows in their lists.

A token that a node lacks is in no node below it, so each node asks for those alone that its parent has; and once a
token covers, the place is all that is asked. Of 1,000 tokens one of the first few covers, as a rule at the root.

A point that meets few rows is a chain of cache misses and little else, so what will be read is asked for ahead, and
the lists of several nodes are verified together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, IntMapArrays, home_slot
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch
from nearcast.geo.loose_grid import position
from nearcast.matching.predicate import mark_terms, row_holds
from nearcast.structures.node_table import term_key, value_of
from nearcast.structures.quadtree.cells import FINEST, in_cell, span_of
from nearcast.structures.quadtree.nodes import NONE, ROOT, QuadtreeArrays
from nearcast.structures.quadtree.pivots import covers

_COVERED = -1
_AHEAD = 8  # tokens whose slots are asked for ahead: two cache misses each
_TOGETHER = 256  # entries to verify at once: enough that misses overlap, few enough that what was asked for stays


class NodesView(NamedTuple):
    """See NodeArrays."""

    children: np.ndarray
    levels: np.ndarray
    xs: np.ndarray
    ys: np.ndarray
    leaves: np.ndarray
    entries: np.ndarray
    bounds: np.ndarray


class ListsView(NamedTuple):
    """See ListArrays."""

    offsets: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    pivots: np.ndarray
    boxes: np.ndarray


class QuadtreeView(NamedTuple):
    """What a search reads of the tree, and no more: each array takes time to hand to a kernel."""

    nodes: NodesView
    lists: ListsView
    table: IntMapArrays


def quadtree_view(quad: QuadtreeArrays) -> QuadtreeView:
    nodes, lists = quad.nodes, quad.lists
    return QuadtreeView(
        NodesView(nodes.children, nodes.levels, nodes.xs, nodes.ys, nodes.leaves, nodes.entries, nodes.bounds),
        ListsView(lists.offsets, lists.counts, lists.rows, lists.pivots, lists.boxes),
        quad.table,
    )


@kernel
def search(quad, store, messages, marks, starts):
    """Fill starts; return the rows that hold, how many nodes were visited and how many entries were looked at."""
    out = np.empty(1024, np.int32)
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        mark_terms(marks, messages, m, 1)
        visited = visited_nodes(quad, terms, box)
        out, n, looked = scan_nodes(quad, visited, store, marks, box, out, n)
        nodes, seen = nodes + len(visited), seen + looked
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def visited_nodes(quad, terms, box):
    """Each node that overlaps the box, has a token of the message or lies below one with a token that covers, and whose
    parent is visited.
    """
    nodes, keys, values = quad.nodes, quad.table.keys, quad.table.values
    children, levels, xs, ys, entries = nodes.children, nodes.levels, nodes.xs, nodes.ys, nodes.entries
    span = span_of(nodes.bounds, box)
    found, froms, stops = np.empty(64, np.int32), np.empty(64, np.int64), np.empty(64, np.int64)
    tokens = np.empty(64 + 2 * len(terms), np.int32)
    used = _shared(keys, values, ROOT, terms, tokens, 0)
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
                tokens = with_room(tokens, used, stop - start)
                stops[n] = _shared(keys, values, child, tokens[start:stop], tokens, used)
                if stops[n] == used:
                    continue
                if stops[n] != _COVERED:
                    froms[n] = used
                    used = stops[n]
            n += 1
    return found[:n]


@kernel
def _shared(keys, values, node, terms, out, n):
    """Write those terms that are tokens of a node to out[n:]; return the new n, or _COVERED where one covers."""
    for k in range(min(len(terms), _AHEAD)):
        _ask_for(keys, values, term_key(node, terms[k]))
    for k in range(len(terms)):
        if k + _AHEAD < len(terms):
            _ask_for(keys, values, term_key(node, terms[k + _AHEAD]))
        value = value_of(keys, values, term_key(node, terms[k]))
        if value != ABSENT:
            if covers(value):
                return _COVERED
            out[n] = terms[k]
            n += 1
    return n


@inline_kernel
def _ask_for(keys, values, key):
    slot = home_slot(key, len(keys) - 1)
    prefetch(values, slot)
    prefetch(keys, slot)


@kernel
def scan_nodes(quad, visited, store, marks, box, out, n):
    """Write the rows in the lists of these nodes that hold to out[n:], each in one of them alone; return out, the new
    n, and how many entries were looked at.
    """
    offsets, counts, pivots = quad.lists.offsets, quad.lists.counts, quad.lists.pivots
    ends, begun, stop, seen = np.empty(len(visited), np.int64), 0, n, 0
    for k in range(len(visited)):
        prefetch(pivots, offsets[visited[k]])
    for k in range(len(visited)):
        node, count = visited[k], np.int64(counts[visited[k]])
        out = with_room(out, stop, count + 1)
        stop = ends[k] = _with_marked_term(pivots, offsets[node], count, marks, out, stop)
        seen += count
        if stop - n >= _TOGETHER or (stop > n and k + 1 == len(visited)):
            stop = near = n
            for j in range(begun, k + 1):
                if ends[j] > stop:
                    near = _near(quad, visited[j], store, box, out, (near, stop, ends[j]))
                stop = ends[j]
            n = stop = _holding(store, marks, box, out, n, near)
            begun = k + 1
    return out, n, seen


@kernel
def _with_marked_term(pivots, first, count, marks, out, n):
    """Write the places, from `first` on, of the entries whose term is marked to out[n:]; return the new n.

    Marks are 0 or 1: each place is written, and kept or not by a sum, where a branch could not be foreseen.
    """
    for k in range(count):
        out[n] = k
        n += np.int64(marks[pivots[first + k]])
    return n


@kernel
def _near(quad, node, store, box, out, run):
    """`run` is (n, start, stop). Turn those of the places out[start:stop] in the list of a node into rows out[n:] whose
    boxes, as the list has them, overlap, and whose home is here; return the new n. What the store holds of them is on
    its way then: each is three cache misses.
    """
    boxes, rows, first = quad.lists.boxes, quad.lists.rows, quad.lists.offsets[node]
    is_range = box[0] != box[2] or box[1] != box[3]
    n, start, stop = run
    cell, bounds = cell_place(quad.nodes, node), quad.nodes.bounds
    for j in range(start, min(start + _AHEAD, stop)):
        prefetch(boxes, 4 * (first + out[j]))
    for j in range(start, stop):
        if j + _AHEAD < stop:
            prefetch(boxes, 4 * (first + out[j + _AHEAD]))
        at = first + out[j]
        near = boxes[at, 0] <= box[2] and boxes[at, 2] >= box[0] and boxes[at, 1] <= box[3] and boxes[at, 3] >= box[1]
        x, y = max(boxes[at, 0], box[0]), max(boxes[at, 1], box[1])
        if near and (not is_range or is_home(cell, bounds, x, y)):
            row = rows[at]
            prefetch(store.offsets, row)
            prefetch(store.n_terms, row)
            prefetch(store.boxes, 4 * row)
            out[n] = row
            n += 1
    return n


@kernel
def _holding(store, marks, box, out, n, stop):
    """Keep those of the rows out[n:stop] that hold; return the new n."""
    for j in range(n, stop):
        prefetch(store.terms, store.offsets[out[j]])
    for j in range(n, stop):
        if row_holds(store, out[j], marks, box):
            out[n] = out[j]
            n += 1
    return n


@inline_kernel
def cell_place(nodes, node):
    """The cell of a node: how far finest columns are shifted to its level's, its column, its line."""
    return FINEST - nodes.levels[node], nodes.xs[node], nodes.ys[node]


@inline_kernel
def is_home(cell, bounds, x, y):
    """Whether (x, y), the first corner of what an entry (with its box as the list has it) and a message share, is in
    this cell. The cells with entries of a row part its span among them, so that holds in exactly one.
    """
    column, line = position(x, bounds[0], bounds[2], FINEST), position(y, bounds[1], bounds[3], FINEST)
    return (column >> cell[0]) == cell[1] and (line >> cell[0]) == cell[2]
