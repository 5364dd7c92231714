"""Matching: from the root to the leaves that may hold rows of a message, then through their entries.

Nodes wait in a queue, not on a stack: between the moment that a child is found and the moment that it is read, others
are read, and meanwhile its line comes from memory. So do the entries of leaves, which are all read last.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.ragged import sort_in_place
from nearcast.arrays.vector import prefetch
from nearcast.geo.boxes import boxes_overlap
from nearcast.indexes.ap_tree.entries import PIVOT, ROW, SECOND, THIRD, XMAX, XMIN, YMAX, YMIN
from nearcast.indexes.ap_tree.nodes import (
    ACROSS,
    CHILD,
    COUNT,
    DUMMY,
    EDGES,
    FIRST,
    HIGH,
    K_NODE,
    KIND,
    LEAF,
    ROOT,
    cells_in,
    columns_of,
)
from nearcast.structures.boxes import rounded_down

_LINE = 8  # numbers of a node or an entry
_LOWS_A_LINE = 16  # of the cache
_AHEAD = 10  # entries of a leaf that are asked for ahead: its mean size
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


# Of `work`: messages done, nodes visited, entries looked at; and what the next message lacks room for.
_DONE, _NODES, _ENTRIES, _LACKING = range(4)
_NODES_LACK = -1


@kernel
def match_tree(shape, store, by_term, messages, scratch, starts):
    """Fill starts; return the rows that hold, how many nodes were visited and how many entries were looked at.

    `scratch` is zeroed words: a bit for each rank, and a bit for each row.
    """
    ranks, bounds = _ranked(by_term, messages.terms, messages.term_starts, len(starts) - 1)
    out, queue, leaves = np.empty(1024, np.int32), np.empty(256, np.int32), np.empty(256, np.int32)
    work = np.zeros(4, np.int64)
    while True:
        asked = (ranks, bounds, messages.boxes)
        _match_some(shape, (store, by_term), asked, scratch, (queue, leaves, out), starts, work)
        if work[_DONE] == len(starts) - 1:
            return out[: starts[work[_DONE]]].copy(), work[_NODES], work[_ENTRIES]
        if work[_LACKING] == _NODES_LACK:
            queue, leaves = np.empty(2 * len(queue), np.int32), np.empty(2 * len(leaves), np.int32)
        else:
            out = with_room(out, starts[work[_DONE]], work[_LACKING])


@kernel
def _ranked(by_term, terms, term_starts, n_messages):
    """The ranks of each message's terms that rows have, ascending, and where they start."""
    ranks, bounds = np.empty(term_starts[n_messages] - term_starts[0], np.int32), np.zeros(n_messages + 1, np.int64)
    n = 0
    for m in range(n_messages):
        for k in range(term_starts[m], term_starts[m + 1]):
            rank = by_term[terms[k]] if terms[k] < len(by_term) else 0
            if rank > 0:
                ranks[n] = rank
                n += 1
        sort_in_place(ranks, bounds[m], n)
        bounds[m + 1] = n
    return ranks, bounds


@lean_kernel
def _match_some(shape, held, asked, scratch, rooms, starts, work):
    """Go on with messages until all are done, or one lacks room."""
    ranks, bounds, boxes = asked
    bits, seen = scratch
    queue, leaves, out = rooms
    for m in range(work[_DONE], len(starts) - 1):
        mine, box, n = ranks[bounds[m] : bounds[m + 1]], boxes[m], starts[m]
        visited, n_leaves = _reach(shape, mine, box, queue, leaves)
        if visited == _NODES_LACK:
            work[_LACKING] = _NODES_LACK
            return
        entries = 0
        for k in range(0, n_leaves, 2):
            entries += leaves[k + 1]
        if n + entries + 1 > len(out):
            work[_LACKING] = entries + 1
            return
        for k in range(len(mine)):
            bits[np.uint64(mine[k]) >> _SIX] |= _ONE << (np.uint64(mine[k]) & _LOW)
        n = _scan(shape, leaves[:n_leaves], held, bits, box, out, n)
        for k in range(len(mine)):
            bits[np.uint64(mine[k]) >> _SIX] = 0
        if box[0] != box[2] or box[1] != box[3]:
            n = _each_once(out, starts[m], n, seen)
        starts[m + 1] = n
        work[_DONE] += 1
        work[_NODES] += visited
        work[_ENTRIES] += entries


@inline_kernel
def _has(bits, rank):
    """1 where the message has the term of this rank, else 0."""
    return (bits[np.uint64(rank) >> _SIX] >> (np.uint64(rank) & _LOW)) & _ONE


@lean_kernel
def _reach(shape, ranks, box, queue, leaves):
    """Note all leaves to read, as (first entry, count); return how many nodes were visited, _NODES_LACK where there is
    too little room, and how much of `leaves` is used.

    The queue holds (node, first of the message's ranks that counts below it), level by level: the cuts of a level's
    nodes are all asked for before the first is searched.
    """
    nodes, lows, kids, cells, edges = shape.nodes, shape.lows, shape.kids, shape.cells, shape.edges
    entries = shape.entries
    queue[0], queue[1] = ROOT, 0
    first, end, n = 0, 2, 0
    while first < end:
        if n + end - first > len(leaves):
            return _NODES_LACK, 0
        n = _look_ahead(nodes, (entries, lows, edges), queue, (first, end), leaves, n)
        stop = end
        for at in range(first, stop, 2):
            node, start = queue[at], queue[at + 1]
            kind = nodes[node, KIND]
            if kind == LEAF:
                continue
            if kind == K_NODE:
                few = nodes[node, COUNT] < len(ranks) - start
                if end + 2 * (nodes[node, COUNT] if few else len(ranks) - start) + 4 > len(queue):
                    return _NODES_LACK, 0
                if few:
                    end = _push_few_cuts(nodes, (lows, kids), (node, start), ranks, queue, end)
                else:
                    end = _push_cuts(nodes, (lows, kids), (node, start), ranks, queue, end)
            else:
                columns = columns_of(nodes, edges, node, box)
                if end + 2 * cells_in(columns) + 4 > len(queue):
                    return _NODES_LACK, 0
                end = _push_cells(nodes, cells, (node, start), columns, queue, end)
            dummy = nodes[node, DUMMY]
            if dummy >= 0:
                prefetch(nodes, _LINE * dummy)
                queue[end], queue[end + 1] = dummy, start
                end += 2
        first = stop
    return end >> 1, n


@lean_kernel
def _look_ahead(nodes, held, queue, span, leaves, n):
    """Ask for what the waiting nodes hold; note the leaves among them. `held` is entries, lows and edges."""
    entries, lows, edges = held
    for at in range(span[0], span[1], 2):
        node = queue[at]
        kind, first, count = nodes[node, KIND], nodes[node, FIRST], nodes[node, COUNT]
        if kind == LEAF:
            if count > 0:
                leaves[n], leaves[n + 1] = first, count
                n += 2
                for k in range(0, min(count, _AHEAD), 2):
                    prefetch(entries, _LINE * (first + k))
        elif kind == K_NODE:
            for k in range(0, count, _LOWS_A_LINE):
                prefetch(lows, first + k)
        else:
            prefetch(edges, nodes[node, EDGES])
            prefetch(edges, nodes[node, EDGES] + _LINE)
    return n


@lean_kernel
def _push_cuts(nodes, cuts, which, ranks, queue, end):
    """The children whose cut a rank hits, each once. `which` is the node and where to start in the ranks.

    Below a cut of a single term the rows go on with their next term, and so does the message.
    """
    lows, kids = cuts
    node, i = which
    first = nodes[node, FIRST]
    stop = first + nodes[node, COUNT]
    after = first
    while i < len(ranks):
        after = _first_above(lows, after, stop, ranks[i])
        cut = after - 1  # the last one that begins at this rank or before
        high = kids[cut, HIGH] if cut >= first else -1
        if ranks[i] <= high:
            kid = kids[cut, CHILD]
            prefetch(nodes, _LINE * (kid >> 1))
            queue[end], queue[end + 1] = kid >> 1, i + (kid & 1)
            end += 2
        i += 1
        while i < len(ranks) and ranks[i] <= high:
            i += 1
    return end


@lean_kernel
def _push_few_cuts(nodes, cuts, which, ranks, queue, end):
    """The same, cut by cut: for nodes with fewer cuts than the message has ranks."""
    lows, kids = cuts
    node, i = which
    for cut in range(nodes[node, FIRST], nodes[node, FIRST] + nodes[node, COUNT]):
        i = _first_above(ranks, i, len(ranks), lows[cut] - 1)
        if i == len(ranks):
            break
        if ranks[i] <= kids[cut, HIGH]:
            kid = kids[cut, CHILD]
            prefetch(nodes, _LINE * (kid >> 1))
            queue[end], queue[end + 1] = kid >> 1, i + (kid & 1)
            end += 2
    return end


@lean_kernel
def _first_above(values, first, stop, value):
    """The place of the first of the ascending values[first:stop] that is above the value, or stop."""
    while first < stop:
        middle = (first + stop) >> 1
        if values[middle] <= value:
            first = middle + 1
        else:
            stop = middle
    return first


@lean_kernel
def _push_cells(nodes, cells, which, columns, queue, end):
    """The children in these columns and rows."""
    left, right, below, above = columns
    node, start = which
    first, across = nodes[node, FIRST], nodes[node, ACROSS]
    for y in range(below, above + 1):
        for x in range(left, right + 1):
            child = cells[first + y * across + x]
            if child >= 0:
                prefetch(nodes, _LINE * child)
                queue[end], queue[end + 1] = child, start
                end += 2
    return end


@lean_kernel
def _scan(shape, leaves, held, bits, box, out, n):
    """Write the rows of leaves that hold to out[n:], which has room for all; return the new n. `held` is the store and
    the ranks by term.

    The rarest term and the box are tested first, without a branch: no machine can foresee the outcome, and most
    entries end there.
    """
    entries, sides, exact = shape.entries, shape.sides, held[0].boxes
    xmin, ymin = -rounded_down(-box[0]), -rounded_down(-box[1])
    xmax, ymax = rounded_down(box[2]), rounded_down(box[3])
    stop = np.uint64(n)  # unsigned: a signed index is tested for being negative
    for at in range(0, len(leaves), 2):
        for k in range(np.uint64(leaves[at]), np.uint64(leaves[at] + leaves[at + 1])):
            overlaps = (sides[k, XMIN] <= xmax) & (sides[k, XMAX] >= xmin)
            overlaps &= (sides[k, YMIN] <= ymax) & (sides[k, YMAX] >= ymin)
            out[stop] = k
            stop += _has(bits, entries[k, PIVOT]) & np.uint64(overlaps)
    for j in range(np.uint64(n), stop):
        k = np.uint64(out[j])
        row, third = entries[k, ROW], entries[k, THIRD]
        if _has(bits, entries[k, SECOND]) & _has(bits, third if third >= 0 else ~third) == 0:
            continue
        is_sure = (sides[k, XMIN] < xmax) & (sides[k, XMAX] > xmin) & (sides[k, YMIN] < ymax) & (sides[k, YMAX] > ymin)
        if not is_sure and not boxes_overlap(exact, row, box[0], box[1], box[2], box[3]):
            continue
        if third >= 0 or _has_all(held, row, bits):
            out[n] = row
            n += 1
    return n


@lean_kernel
def _has_all(held, row, bits):
    """Whether each positive term of a row occurs."""
    store, by_term = held
    first = store.offsets[row]
    for k in range(first, first + store.n_terms[row]):
        if _has(bits, by_term[store.terms[k]]) == 0:
            return False
    return True


@lean_kernel
def _each_once(out, first, stop, seen):
    """Keep one of each row in out[first:stop]: a range may meet a row in several cells. Return the new stop."""
    n = first
    for j in range(first, stop):
        row = out[j]
        if _has(seen, row) == 0:
            seen[np.uint64(row) >> _SIX] |= _ONE << (np.uint64(row) & _LOW)
            out[n] = row
            n += 1
    for j in range(first, n):
        seen[np.uint64(out[j]) >> _SIX] = 0
    return n
