"""The search: from the root to the leaves that may have rows of a message, then through their entries.

Nodes wait in a queue, not on a stack: other nodes are read between finding a child and reading it, and meanwhile its
line arrives from memory. The same holds for the entries of leaves, which are all read last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.ragged import sort_in_place
from nearcast.arrays.vector import prefetch
from nearcast.geo.boxes import boxes_overlap
from nearcast.indexes.ap_tree import layout
from nearcast.indexes.ap_tree.layout import XMAX, XMIN, YMAX, YMIN, cell_count, first_above, overlapped_cells
from nearcast.matching.store import RowArrays
from nearcast.structures.boxes import rounded_down

_LINE = 8  # numbers of a node or an entry
_LOWS_A_LINE = 16  # of the cache
_AHEAD = 10  # entries of a leaf that are prefetched: its mean size
_ONE, _SIX, _LOW = np.uint64(1), np.uint64(6), np.uint64(63)
# Places in `work`: messages done, nodes visited, entries read, and the room that the next message lacks.
_DONE, _NODES, _ENTRIES, _LACKING = range(4)
_NODES_LACK = -1


class Scratch(NamedTuple):
    """Working memory of a thread, zero between messages: a bit for each rank and a bit for each row."""

    rank_bits: np.ndarray  # uint64[...]
    row_bits: np.ndarray  # uint64[...]  may be empty if all messages are points


class _Rows(NamedTuple):
    """The rows of the store, for the cases that entries cannot decide."""

    store: RowArrays
    by_term: np.ndarray  # int32[terms]  ranks


class _RankedMessages(NamedTuple):
    """The messages of a batch with their ranks, ascending for each."""

    ranks: np.ndarray  # int32[...]
    starts: np.ndarray  # int64[n+1]
    boxes: np.ndarray  # float64[n,4]


class _Buffers(NamedTuple):
    """Memory that grows when a message needs more."""

    queue: np.ndarray  # int32[...]  pairs: a node, the first of the message's ranks that counts below it
    leaves: np.ndarray  # int32[...]  pairs: the first entry, the number of entries
    out: np.ndarray  # int32[...]  rows that hold


class _Cuts(NamedTuple):
    """See TreeView."""

    lows: np.ndarray
    kids: np.ndarray


class _Contents(NamedTuple):
    """The arrays that the children of nodes are read from; see TreeView."""

    entries: np.ndarray
    lows: np.ndarray
    edges: np.ndarray


@kernel
def match_tree(view, store, by_term, messages, scratch, starts):
    """Fill starts; return the rows that hold, the number of nodes visited and the number of entries read."""
    ranked, rows = _ranked(by_term, messages), _Rows(store, by_term)
    out, queue, leaves = np.empty(1024, np.int32), np.empty(256, np.int32), np.empty(256, np.int32)
    work = np.zeros(4, np.int64)
    while True:
        _match_some(view, rows, ranked, scratch, _Buffers(queue, leaves, out), starts, work)
        if work[_DONE] == len(starts) - 1:
            return out[: starts[work[_DONE]]].copy(), work[_NODES], work[_ENTRIES]
        if work[_LACKING] == _NODES_LACK:
            queue, leaves = np.empty(2 * len(queue), np.int32), np.empty(2 * len(leaves), np.int32)
        else:
            out = with_room(out, starts[work[_DONE]], work[_LACKING])


@kernel
def _ranked(by_term, messages):
    """The messages with the ranks of their terms; terms that no row has are left out."""
    terms, term_starts, n_messages = messages.terms, messages.term_starts, len(messages.boxes)
    ranks, starts = np.empty(term_starts[n_messages] - term_starts[0], np.int32), np.zeros(n_messages + 1, np.int64)
    n = 0
    for m in range(n_messages):
        for k in range(term_starts[m], term_starts[m + 1]):
            rank = by_term[terms[k]] if terms[k] < len(by_term) else 0
            if rank > 0:
                ranks[n] = rank
                n += 1
        sort_in_place(ranks, starts[m], n)
        starts[m + 1] = n
    return _RankedMessages(ranks, starts, messages.boxes)


@lean_kernel
def _match_some(view, rows, messages, scratch, buffers, starts, work):
    """Continue with messages until all are done or one lacks room."""
    bits, leaves, out = scratch.rank_bits, buffers.leaves, buffers.out
    for m in range(work[_DONE], len(starts) - 1):
        ranks, box = messages.ranks[messages.starts[m] : messages.starts[m + 1]], messages.boxes[m]
        n = starts[m]
        visited, n_leaves = _reach_leaves(view, ranks, box, buffers.queue, leaves)
        if visited == _NODES_LACK:
            work[_LACKING] = _NODES_LACK
            return
        entries = 0
        for k in range(0, n_leaves, 2):
            entries += leaves[k + 1]
        if n + entries + 1 > len(out):
            work[_LACKING] = entries + 1
            return
        for k in range(len(ranks)):
            bits[np.uint64(ranks[k]) >> _SIX] |= _ONE << (np.uint64(ranks[k]) & _LOW)
        n = _scan(view, leaves[:n_leaves], rows, bits, box, out, n)
        for k in range(len(ranks)):
            bits[np.uint64(ranks[k]) >> _SIX] = 0
        if box[0] != box[2] or box[1] != box[3]:
            n = _each_once(out, starts[m], n, scratch.row_bits)
        starts[m + 1] = n
        work[_DONE] += 1
        work[_NODES] += visited
        work[_ENTRIES] += entries


@inline_kernel
def _has(bits, number):
    """1 if the bit of a rank or row is set, else 0."""
    return (bits[np.uint64(number) >> _SIX] >> (np.uint64(number) & _LOW)) & _ONE


@lean_kernel
def _reach_leaves(view, ranks, box, queue, leaves):
    """Write all leaves to read to `leaves`; return the number of nodes visited, and how much of `leaves` is used.

    Return _NODES_LACK if there is too little room. The queue is processed level by level: the cuts of all nodes of a
    level are prefetched before the first is searched.
    """
    nodes, cells, edges = view.nodes, view.cells, view.edges
    cuts, contents = _Cuts(view.lows, view.kids), _Contents(view.entries, view.lows, edges)
    queue[0], queue[1] = layout.ROOT, 0
    first, end, n = 0, 2, 0
    while first < end:
        if n + end - first > len(leaves):
            return _NODES_LACK, 0
        n = _look_ahead(nodes, contents, queue, first, end, leaves, n)
        stop = end
        for at in range(first, stop, 2):
            node, start = queue[at], queue[at + 1]
            kind = nodes[node, layout.KIND]
            if kind == layout.LEAF:
                continue
            if kind == layout.K_NODE:
                few = nodes[node, layout.COUNT] < len(ranks) - start
                if end + 2 * (nodes[node, layout.COUNT] if few else len(ranks) - start) + 4 > len(queue):
                    return _NODES_LACK, 0
                if few:
                    end = _push_few_cuts(nodes, cuts, node, start, ranks, queue, end)
                else:
                    end = _push_cuts(nodes, cuts, node, start, ranks, queue, end)
            else:
                overlapped = overlapped_cells(nodes, edges, node, box)
                if end + 2 * cell_count(overlapped) + 4 > len(queue):
                    return _NODES_LACK, 0
                end = _push_cells(nodes, cells, node, start, overlapped, queue, end)
            dummy = nodes[node, layout.DUMMY]
            if dummy >= 0:
                prefetch(nodes, _LINE * dummy)
                queue[end], queue[end + 1] = dummy, start
                end += 2
        first = stop
    return end >> 1, n


@lean_kernel
def _look_ahead(nodes, contents, queue, begin, end, leaves, n):
    """Prefetch the contents of the nodes queue[begin:end], and append the leaves among them to leaves[n:]."""
    entries, lows, edges = contents.entries, contents.lows, contents.edges
    for at in range(begin, end, 2):
        node = queue[at]
        kind, first, count = nodes[node, layout.KIND], nodes[node, layout.FIRST], nodes[node, layout.COUNT]
        if kind == layout.LEAF:
            if count > 0:
                leaves[n], leaves[n + 1] = first, count
                n += 2
                for k in range(0, min(count, _AHEAD), 2):
                    prefetch(entries, _LINE * (first + k))
        elif kind == layout.K_NODE:
            for k in range(0, count, _LOWS_A_LINE):
                prefetch(lows, first + k)
        else:
            prefetch(edges, nodes[node, layout.EDGES])
            prefetch(edges, nodes[node, layout.EDGES] + _LINE)
    return n


@lean_kernel
def _push_cuts(nodes, cuts, node, i, ranks, queue, end):
    """Push the children whose cut contains one of ranks[i:], each once; return the new end of the queue.

    Below a cut of a single term the rows continue with their next term, and so does the message.
    """
    lows, kids = cuts.lows, cuts.kids
    first = nodes[node, layout.FIRST]
    stop = first + nodes[node, layout.COUNT]
    after = first
    while i < len(ranks):
        after = first_above(lows, after, stop, ranks[i])
        cut = after - 1  # the last one that starts at this rank or before
        high = kids[cut, layout.HIGH] if cut >= first else -1
        if ranks[i] <= high:
            kid = kids[cut, layout.CHILD]
            prefetch(nodes, _LINE * (kid >> 1))
            queue[end], queue[end + 1] = kid >> 1, i + (kid & 1)
            end += 2
        i += 1
        while i < len(ranks) and ranks[i] <= high:
            i += 1
    return end


@lean_kernel
def _push_few_cuts(nodes, cuts, node, i, ranks, queue, end):
    """The same as _push_cuts, cut by cut: for nodes with fewer cuts than the message has ranks."""
    lows, kids = cuts.lows, cuts.kids
    first = nodes[node, layout.FIRST]
    for cut in range(first, first + nodes[node, layout.COUNT]):
        i = first_above(ranks, i, len(ranks), lows[cut] - 1)
        if i == len(ranks):
            break
        if ranks[i] <= kids[cut, layout.HIGH]:
            kid = kids[cut, layout.CHILD]
            prefetch(nodes, _LINE * (kid >> 1))
            queue[end], queue[end + 1] = kid >> 1, i + (kid & 1)
            end += 2
    return end


@lean_kernel
def _push_cells(nodes, cells, node, start, overlapped, queue, end):
    """Push the children in these cells of an s-node; return the new end of the queue."""
    first, across = nodes[node, layout.FIRST], nodes[node, layout.ACROSS]
    for y in range(overlapped.below, overlapped.above + 1):
        for x in range(overlapped.left, overlapped.right + 1):
            child = cells[first + y * across + x]
            if child >= 0:
                prefetch(nodes, _LINE * child)
                queue[end], queue[end + 1] = child, start
                end += 2
    return end


@lean_kernel
def _scan(view, leaves, rows, bits, box, out, n):
    """Write the rows of leaves that hold to out[n:], which has room for all; return the new n.

    The rarest term and the box are tested first, without a branch: the outcome is unpredictable, and most entries fail.
    """
    entries, sides, exact = view.entries, view.sides, rows.store.boxes
    xmin, ymin = -rounded_down(-box[0]), -rounded_down(-box[1])
    xmax, ymax = rounded_down(box[2]), rounded_down(box[3])
    stop = np.uint64(n)  # unsigned: a signed index is tested for being negative
    for at in range(0, len(leaves), 2):
        for k in range(np.uint64(leaves[at]), np.uint64(leaves[at] + leaves[at + 1])):
            overlaps = (sides[k, XMIN] <= xmax) & (sides[k, XMAX] >= xmin)
            overlaps &= (sides[k, YMIN] <= ymax) & (sides[k, YMAX] >= ymin)
            out[stop] = k
            stop += _has(bits, entries[k, layout.PIVOT]) & np.uint64(overlaps)
    for j in range(np.uint64(n), stop):
        k = np.uint64(out[j])
        row, third = entries[k, layout.ROW], entries[k, layout.THIRD]
        if _has(bits, entries[k, layout.SECOND]) & _has(bits, third if third >= 0 else ~third) == 0:
            continue
        is_sure = (sides[k, XMIN] < xmax) & (sides[k, XMAX] > xmin) & (sides[k, YMIN] < ymax) & (sides[k, YMAX] > ymin)
        if not is_sure and not boxes_overlap(exact, row, box[0], box[1], box[2], box[3]):
            continue
        if third >= 0 or _has_all(rows, row, bits):
            out[n] = row
            n += 1
    return n


@lean_kernel
def _has_all(rows, row, bits):
    """Whether each positive term of a row occurs."""
    store, first = rows.store, rows.store.offsets[row]
    for k in range(first, first + store.n_terms[row]):
        if _has(bits, rows.by_term[store.terms[k]]) == 0:
            return False
    return True


@lean_kernel
def _each_once(out, first, stop, row_bits):
    """Remove repeated rows from out[first:stop]: a range may meet a row in several cells. Return the new stop."""
    n = first
    for j in range(first, stop):
        row = out[j]
        if _has(row_bits, row) == 0:
            row_bits[np.uint64(row) >> _SIX] |= _ONE << (np.uint64(row) & _LOW)
            out[n] = row
            n += 1
    for j in range(first, n):
        row_bits[np.uint64(out[j]) >> _SIX] = 0
    return n
