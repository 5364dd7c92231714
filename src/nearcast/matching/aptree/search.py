"""Matching: from the root to the leaves that may hold rows of a message, then through their entries.

Nodes wait in a queue, not on a stack: between the moment that a child is found and the moment that it is read, others
are read, and meanwhile its line comes from memory. So do the entries of leaves, which are all read last.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.ragged import sort_in_place
from nearcast.arrays.vector import prefetch
from nearcast.matching.aptree.nodes import (
    ACROSS,
    COUNT,
    DUMMY,
    FIRST,
    K_NODE,
    KIND,
    LEAF,
    ROOT,
    columns_of,
)
from nearcast.matching.postings import rounded_down
from nearcast.matching.predicate import box_overlaps

_LINE = 8
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)


@kernel
def match_tree(shape, store, by_term, messages, scratch, starts):  # type: ignore[no-untyped-def]
    """Fill starts; return the rows that hold, how many nodes were visited and how many entries were looked at.

    `scratch` is zeroed words: a bit for each rank, and a bit for each row.
    """
    bits, seen = scratch
    out, queue, leaves = np.empty(1024, np.int32), np.empty(256, np.int32), np.empty(256, np.int32)
    n = nodes = compared = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        ranks = _ranked(by_term, messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]], bits)
        queue, leaves, visited, n_leaves = _reach(shape, ranks, box, queue, leaves)
        nodes += visited
        first = n
        for k in range(0, n_leaves, 2):
            out = with_room(out, n, leaves[k + 1] + 1)
            n = _scan(shape, (leaves[k], leaves[k + 1]), (store, by_term), bits, box, out, n)
            compared += leaves[k + 1]
        if box[0] != box[2] or box[1] != box[3]:
            n = _each_once(out, first, n, seen)
        for k in range(len(ranks)):
            bits[np.uint64(ranks[k]) >> _SIX] = 0
        starts[m + 1] = n
    return out[:n].copy(), nodes, compared


@kernel
def _ranked(by_term, terms, bits):  # type: ignore[no-untyped-def]
    """The ranks of the terms that rows have, ascending; their bits are set."""
    ranks = np.empty(len(terms), np.int32)
    n = 0
    for k in range(len(terms)):
        rank = by_term[terms[k]] if terms[k] < len(by_term) else 0
        if rank > 0:
            ranks[n] = rank
            n += 1
            bits[np.uint64(rank) >> _SIX] |= _ONE << (np.uint64(rank) & _LOW)
    sort_in_place(ranks, 0, n)
    return ranks[:n]


@inline_kernel
def _has(bits, rank):  # type: ignore[no-untyped-def]
    """1 where the message has the term of this rank, else 0."""
    return (bits[np.uint64(rank) >> _SIX] >> (np.uint64(rank) & _LOW)) & _ONE


@kernel
def _reach(shape, ranks, box, queue, leaves):  # type: ignore[no-untyped-def]
    """All leaves to read, as (first entry, count); nodes visited; how much of `leaves` is used.

    The queue holds (node, first of the message's ranks that counts below it).
    """
    nodes = shape.nodes
    queue[0], queue[1] = ROOT, 0
    at, end, n = 0, 2, 0
    while at < end:
        node, start = queue[at], queue[at + 1]
        at += 2
        kind = nodes[node, KIND]
        if kind == LEAF:
            if nodes[node, COUNT] > 0:
                leaves = with_room(leaves, n, 2)
                leaves[n], leaves[n + 1] = nodes[node, FIRST], nodes[node, COUNT]
                prefetch(shape.pivots, leaves[n])
                n += 2
            continue
        if kind == K_NODE:
            queue = with_room(queue, end, 2 * min(nodes[node, COUNT], len(ranks) - start) + 4)
            end = _push_cuts(shape, node, ranks, start, queue, end)
        else:
            columns = columns_of(shape, node, box)
            cells = (columns[1] - columns[0] + 1) * (columns[3] - columns[2] + 1)
            queue = with_room(queue, end, 2 * cells + 4)
            end = _push_cells(shape, node, columns, start, queue, end)
        dummy = nodes[node, DUMMY]
        if dummy >= 0:
            prefetch(nodes, _LINE * dummy)
            queue[end], queue[end + 1] = dummy, start
            end += 2
    return queue, leaves, end >> 1, n


@kernel
def _push_cuts(shape, node, ranks, start, queue, end):  # type: ignore[no-untyped-def]
    """The children whose cut a rank hits, each once: by the ranks where they are fewer than the cuts, else by cuts."""
    first = shape.nodes[node, FIRST]
    stop = first + shape.nodes[node, COUNT]
    if len(ranks) - start > stop - first:
        i = start
        for cut in range(first, stop):
            i = _first_above(ranks, i, len(ranks), shape.lows[cut] - 1)
            if i == len(ranks):
                break
            if ranks[i] <= shape.highs[cut]:
                end = _push_kid(shape, cut, i, queue, end)
        return end
    i, after = start, first
    while i < len(ranks):
        after = _first_above(shape.lows, after, stop, ranks[i])
        cut = after - 1  # the last one that begins at this rank or before
        if cut < first or ranks[i] > shape.highs[cut]:
            i += 1
            continue
        end = _push_kid(shape, cut, i, queue, end)
        while i < len(ranks) and ranks[i] <= shape.highs[cut]:
            i += 1
    return end


@inline_kernel
def _push_kid(shape, cut, i, queue, end):  # type: ignore[no-untyped-def]
    """Below a cut of a single term the rows go on with their next term, and so does the message."""
    kid = shape.kids[cut]
    queue[end], queue[end + 1] = kid >> 1, i + (kid & 1)
    prefetch(shape.nodes, _LINE * (kid >> 1))
    return end + 2


@kernel
def _first_above(values, first, stop, value):  # type: ignore[no-untyped-def]
    """The place of the first of the ascending values[first:stop] that is above the value, or stop."""
    while first < stop:
        middle = (first + stop) >> 1
        if values[middle] <= value:
            first = middle + 1
        else:
            stop = middle
    return first


@kernel
def _push_cells(shape, node, columns, start, queue, end):  # type: ignore[no-untyped-def]
    """The children in these columns and rows."""
    left, right, below, above = columns
    first, across = shape.nodes[node, FIRST], shape.nodes[node, ACROSS]
    for y in range(below, above + 1):
        for x in range(left, right + 1):
            child = shape.cells[first + y * across + x]
            if child >= 0:
                queue[end], queue[end + 1] = child, start
                prefetch(shape.nodes, _LINE * child)
                end += 2
    return end


@kernel
def _scan(shape, span, held, bits, box, out, n):  # type: ignore[no-untyped-def]
    """Write the rows of a leaf that hold to out[n:]; return the new n. `held` is the store and the ranks by term.

    The rarest term is tested first, without a branch: most entries end there.
    """
    first, count = span
    pivots, boxes, rests = shape.pivots, shape.boxes, shape.rests
    stop = n
    for k in range(first, first + count):
        out[stop] = k
        stop += np.int64(_has(bits, pivots[k]))
    xmin, ymin = -rounded_down(-box[0]), -rounded_down(-box[1])
    xmax, ymax = rounded_down(box[2]), rounded_down(box[3])
    for j in range(n, stop):
        k = out[j]
        if boxes[k, 0] > xmax or boxes[k, 2] < xmin or boxes[k, 1] > ymax or boxes[k, 3] < ymin:
            continue
        row, third = rests[k, 0], rests[k, 2]
        if _has(bits, rests[k, 1]) & _has(bits, third if third >= 0 else ~third) == 0:
            continue
        is_sure = boxes[k, 0] < xmax and boxes[k, 2] > xmin and boxes[k, 1] < ymax and boxes[k, 3] > ymin
        if (is_sure or box_overlaps(held[0], row, box)) and (third >= 0 or _has_all(held, row, bits)):
            out[n] = row
            n += 1
    return n


@kernel
def _has_all(held, row, bits):  # type: ignore[no-untyped-def]
    """Whether each positive term of a row occurs."""
    store, by_term = held
    first = store.offsets[row]
    for k in range(first, first + store.n_terms[row]):
        if _has(bits, by_term[store.terms[k]]) == 0:
            return False
    return True


@kernel
def _each_once(out, first, stop, seen):  # type: ignore[no-untyped-def]
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
