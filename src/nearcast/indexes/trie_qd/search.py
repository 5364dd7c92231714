"""The search: the trie returns rows of short sets and stand-ins of long sets; long sets continue in their quadtrees.

All terms of a reached set are in the message, so the quadtrees are searched by place alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms, row_holds
from nearcast.matching.store import RowArrays
from nearcast.structures.boxes import overlaps, surely_overlaps
from nearcast.structures.quadtree.cells import span_of
from nearcast.structures.quadtree.list_scan import add_nodes_below, keep_reported
from nearcast.structures.quadtree.nodes import NONE, QuadtreeArrays, cell_of_node
from nearcast.structures.trie.probe import BY_COST
from nearcast.structures.trie.search import (
    FOUND,
    NODES,
    READ,
    Walk,
    message_for_trie,
    new_walk,
    unmark_ranks,
    walk_message,
)


class LongSets(NamedTuple):
    """The arrays that a search reads besides the trie."""

    quad: QuadtreeArrays
    homes: np.ndarray  # int32[rows]  the number of the row's set if the set is long, or NONE
    roots: np.ndarray  # int32[sets]
    rows: RowArrays


class Scratch(NamedTuple):
    """Working memory of a thread, zero between messages."""

    positions: np.ndarray  # int32[n_ranks]
    marks: np.ndarray  # uint8[n_terms]


@kernel
def search(view, long_sets, messages, scratch, starts):
    """Fill starts; return the rows that hold, the nodes of both structures reached, and the rows and entries read."""
    quad, marks = long_sets.quad, scratch.marks
    walk, found = new_walk(BY_COST, scratch.positions), np.empty(64, np.int32)
    work = walk.work
    for m in range(len(starts) - 1):
        message = message_for_trie(view.ranks, messages, m, scratch.positions)
        walk = walk_message(view, message, walk)
        unmark_ranks(message)
        out = walk.out
        found, n_found, n = _take_stand_ins(long_sets, message.box, out, starts[m], work[FOUND], found)
        if n_found > 0:
            mark_terms(marks, messages, m, 1)
            found, n_found = add_nodes_below(quad.nodes, span_of(quad.nodes.bounds, message.exact), found, n_found)
            for k in range(n_found):
                count = np.int64(quad.lists.counts[found[k]])
                out = with_room(out, n, count + 1)
                n = _scan(quad, found[k], long_sets.rows, marks, message, out, n)
                work[READ] += count
            mark_terms(marks, messages, m, 0)
            walk = Walk(walk.probe, walk.positions, walk.box, out, walk.stack, work)
        work[NODES] += n_found
        work[FOUND] = starts[m + 1] = n
    return walk.out[: work[FOUND]].copy(), work[NODES], work[READ]


@kernel
def _take_stand_ins(long_sets, box, out, n, stop, found):
    """Remove the stand-ins from out[n:stop] and write the roots of their sets to `found`.

    Return `found`, the number of roots, and the new stop. Beyond the range of float32 not even a box around everything
    surely overlaps, so the trie tests the exact box of the stand-in there: then all long sets are searched.
    """
    homes, roots = long_sets.homes, long_sets.roots
    is_far = max(box[4], box[5]) == np.inf or min(box[6], box[7]) == -np.inf
    found, n_found = with_room(found, 0, max(stop - n, len(roots))), 0
    for j in range(n, stop):
        prefetch(homes, out[j])
    for j in range(n, stop):
        if homes[out[j]] == NONE:
            out[n] = out[j]
            n += 1
        elif not is_far:
            found[n_found] = roots[homes[out[j]]]
            n_found += 1
    if is_far:
        found[: len(roots)] = roots
        n_found = len(roots)
    return found, n_found, n


@kernel
def _scan(quad, node, store, marks, message, out, n):
    """Write the rows of a node's list that hold and that the node reports to out[n:]; return the new n.

    A rounded box that surely overlaps decides, since all terms of the set are in the message.
    """
    lists, box, exact = quad.lists, message.box, message.exact
    rows, boxes, first = lists.rows, lists.boxes, lists.offsets[node]
    stop = n
    for at in range(np.uint64(first), np.uint64(first + lists.counts[node])):
        out[stop] = at
        stop += np.int64(overlaps(boxes, at, box))
    if exact[0] != exact[2] or exact[1] != exact[3]:
        stop = keep_reported(quad.nodes.bounds, cell_of_node(quad.nodes, node), boxes, exact, out, n, stop)
    for j in range(n, stop):
        at = np.uint64(out[j])
        if surely_overlaps(boxes, at, box) or row_holds(store, rows[at], marks, exact):
            out[n] = rows[at]
            n += 1
    return n
