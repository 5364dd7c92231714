"""The search: the trie tells which rows of short sets hold and which long sets are reached; of these the cells at the
message's place are read, for boxes alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms, row_holds
from nearcast.matching.store import RowArrays
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.cells import span_of
from nearcast.structures.quadtree.met_lists import at_home, met_below
from nearcast.structures.quadtree.nodes import NONE, QuadtreeArrays
from nearcast.structures.trie.probe import BY_COST, TrieView, near, surely
from nearcast.structures.trie.search import FOUND, LOOKED, NODES, asked, forget, walk


class LongSets(NamedTuple):
    """What a search reads beyond the trie."""

    quad: QuadtreeArrays
    homes: np.ndarray  # int32[rows]  the number of the row's set if that is long, or NONE
    roots: np.ndarray  # int32[sets]
    rows: RowArrays


def search(
    held: TrieView, long_sets: LongSets, messages: MessageBatch, scratch: tuple[np.ndarray, np.ndarray]
) -> tuple[Hits, Work]:
    """The rows that hold on each message; nodes of trie and quadtrees reached; rows whose box was looked at.

    `scratch` has a 0 for each place in the order of tokens (int32) and for each term (uint8), and so they are left.
    """
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(held, long_sets, messages, scratch, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(held, long_sets, messages, scratch, starts):
    spots, marks = scratch
    quad = long_sets.quad
    out, stack, work = np.empty(1024, np.int32), np.empty(256, np.int64), np.zeros(4, np.int64)
    met = np.empty(64, np.int32)
    for m in range(len(starts) - 1):
        ask = asked(held.places, messages, m, spots)
        out, stack = walk(held, ask, BY_COST, out, stack, work)
        forget(ask)
        met, n_met, n = _long_sets_met(long_sets, ask.box, out, (starts[m], work[FOUND]), met)
        if n_met > 0:
            mark_terms(marks, messages, m, 1)
            met, n_met = met_below(quad.nodes, span_of(quad.nodes.bounds, ask.exact), met, n_met)
            for k in range(n_met):
                count = np.int64(quad.lists.counts[met[k]])
                out = with_room(out, n, count + 1)
                n = _scan(quad, met[k], long_sets.rows, marks, ask, out, n)
                work[LOOKED] += count
            mark_terms(marks, messages, m, 0)
        work[NODES] += n_met
        work[FOUND] = starts[m + 1] = n
    return out[: work[FOUND]].copy(), work[NODES], work[LOOKED]


@kernel
def _long_sets_met(long_sets, box, out, span, met):
    """Take the stand-ins out of out[span[0]:span[1]], and write the roots of their sets to `met`; return it, how many
    they are, and where the rows end now.

    Beyond the range of float32 not even a box around everything overlaps for sure, so that the trie asks for the box of
    the stand-in alone: there, all long sets are met.
    """
    n, stop = span
    homes, roots = long_sets.homes, long_sets.roots
    is_far = max(box[4], box[5]) == np.inf or min(box[6], box[7]) == -np.inf
    met, n_met = with_room(met, 0, max(stop - n, len(roots))), 0
    for j in range(n, stop):
        prefetch(homes, out[j])
    for j in range(n, stop):
        if homes[out[j]] == NONE:
            out[n] = out[j]
            n += 1
        elif not is_far:
            met[n_met] = roots[homes[out[j]]]
            n_met += 1
    if is_far:
        met[: len(roots)] = roots
        n_met = len(roots)
    return met, n_met, n


@kernel
def _scan(quad, node, store, marks, ask, out, n):
    """Write the rows in the list of a node that hold to out[n:], each in one of its nodes alone; return the new n.

    Where the rounded box leaves no doubt it decides: all terms of the set occur.
    """
    lists, box, exact = quad.lists, ask.box, ask.exact
    rows, boxes, first = lists.rows, lists.boxes, lists.offsets[node]
    stop = n
    for at in range(np.uint64(first), np.uint64(first + lists.counts[node])):
        out[stop] = at
        stop += np.int64(near(boxes, at, box))
    if exact[0] != exact[2] or exact[1] != exact[3]:
        cell = quad.nodes.levels[node], quad.nodes.xs[node], quad.nodes.ys[node]
        stop = at_home(quad.nodes.bounds, cell, boxes, exact, out, n, stop)
    for j in range(n, stop):
        at = np.uint64(out[j])
        if surely(boxes, at, box) or row_holds(store, rows[at], marks, exact):
            out[n] = rows[at]
            n += 1
    return n
