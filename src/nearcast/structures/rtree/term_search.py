"""The search of `rt-tree` and `rt+-tree`: visit nodes that overlap and share a term, then compare rows exactly."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, IntMapArrays, find
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.boxes import overlaps
from nearcast.structures.node_table import known_terms, prefetch_slot, term_key, value_of
from nearcast.structures.rtree.nodes import ROOT, TreeArrays
from nearcast.structures.rtree.term_sets import TermRows

_AHEAD, _NEAR = 8, 4  # rows ahead whose offsets are prefetched, and whose terms are
_FIRST = 4


def search(
    tree: TreeArrays, table: IntMapArrays, view: TermRows, n_terms: int, messages: MessageBatch
) -> tuple[Hits, Work]:
    """The rows that match each message. Nodes: those visited, with the root. Candidates: the rows of their leaves."""
    marks, starts = np.zeros(n_terms, np.uint8), np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(tree, table, view, messages, marks, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, table, view, messages, marks, starts):
    """Arrays are taken out of their tuples before leaves are read: passing the tuples took as long as reading."""
    out, stored, chosen = np.empty(1024, np.int32), view.rows, view.chosen
    levels, counts, slots, leaf_boxes, in_leaves = tree.levels, tree.counts, tree.slots, tree.boxes, chosen.in_leaves
    offsets, n_terms, row_terms, is_chosen = stored.offsets, stored.n_terms, stored.terms, len(chosen.of_rows) > 0
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        terms = counted_terms(table, messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]])
        visited = visited_nodes(tree, table, view, messages.boxes[m], terms, marks)
        nodes += len(visited)
        box = messages.boxes[m]
        for i in range(len(visited)):
            leaf = visited[i]
            if levels[leaf] > 0:
                continue
            seen += counts[leaf]
            out, rows = with_room(out, n, counts[leaf] + 1), slots[leaf, : counts[leaf]]
            if is_chosen:
                stop = _marked_candidates(rows, leaf_boxes[leaf], in_leaves[leaf], marks, box, out, n)
            else:
                stop = _candidates(rows, leaf_boxes[leaf], box, out, n)
            n += _keep_matching(offsets, n_terms, row_terms, out[n:stop], marks)
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def counted_terms(table, terms):
    """The terms of a message that some row is counted under, the most frequent first."""
    counts = np.empty(len(terms), np.int64)
    for k in range(len(terms)):
        counts[k] = max(0, find(table, term_key(ROOT, terms[k])))
    return known_terms(terms, counts)


@kernel
def visited_nodes(tree, table, view, box, terms, marks):
    """The root, and each node that overlaps the box, shares a term, and whose parent is visited."""
    keys, values = table.keys, table.values
    levels, counts, slots, boxes = tree.levels, tree.counts, tree.slots, tree.boxes
    found = np.empty(256, np.int32)
    found[0] = ROOT
    n, at = 1, 0
    while at < n:
        node = found[at]
        at += 1
        if levels[node] == 0:
            continue
        found = with_room(found, n, counts[node] + 1)
        stop = n
        for k in range(counts[node]):
            found[stop] = slots[node, k]
            stop += np.int64(overlaps(boxes[node], k, box))
        for j in range(n, stop):  # a message overlaps a dozen children, whose sets are a cache miss each
            for k in range(min(len(terms), _FIRST)):
                prefetch_slot(keys, values, term_key(found[j], terms[k]))
        for j in range(n, stop):
            child = found[j]
            if levels[node] == 1 and len(terms) > most_terms(view.chosen, counts[child]):
                shares = _rows_share(slots[child, : counts[child]], child, view, marks)
            else:
                shares = _set_shares(keys, values, child, terms)
            found[n] = child
            n += shares
    return found[:n]


@kernel
def _set_shares(keys, values, node, terms):
    """Whether the set of a node has one of these terms."""
    for k in range(len(terms)):
        if value_of(keys, values, term_key(node, terms[k])) != ABSENT:
            return True
    return False


@kernel
def most_terms(chosen, n):
    """For a message with more terms than this, it is cheaper to test the n rows of a leaf than the leaf's set.

    Chosen terms lie in the leaf in one stretch; the terms of a row lie in the store, at a place of their own.
    """
    return 4 if len(chosen.of_rows) > 0 else 2 * n


@kernel
def _rows_share(rows, leaf, view, marks):
    """Whether a row of the leaf is counted under a marked term: the same answer as that of `_set_shares`."""
    if len(view.chosen.of_rows) > 0:
        terms = view.chosen.in_leaves[leaf]
        for k in range(len(rows)):
            if marks[terms[k]] != 0:
                return True
        return False
    return _some_share(view.rows.offsets, view.rows.n_terms, view.rows.terms, rows, marks)


@kernel
def _some_share(offsets, n_terms, terms, rows, marks):
    for k in range(len(rows)):
        _prefetch_row(offsets, n_terms, terms, rows, k)
        first = offsets[rows[k]]
        for i in range(first, first + n_terms[rows[k]]):
            if marks[terms[i]] != 0:
                return True
    return False


@inline_kernel
def _prefetch_row(offsets, n_terms, terms, rows, k):
    """Before row k is read, prefetch the offsets of a later row and the terms of a nearer one."""
    if k + _AHEAD < len(rows):
        prefetch(offsets, np.int64(rows[k + _AHEAD]))
        prefetch(n_terms, np.int64(rows[k + _AHEAD]))
    if k + _NEAR < len(rows):
        prefetch(terms, offsets[rows[k + _NEAR]])


@kernel
def _candidates(slots, boxes, box, out, n):
    """Write the rows of a leaf that overlap to out[n:]; return the new n. The boxes in the leaf are exact.

    Each row is written, and a sum instead of a branch decides whether it is kept.
    """
    for k in range(len(slots)):
        out[n] = slots[k]
        n += np.int64(overlaps(boxes, k, box))
    return n


@kernel
def _marked_candidates(slots, boxes, chosen, marks, box, out, n):
    """The same for rows whose chosen term, which lies beside them, is marked."""
    for k in range(len(slots)):
        out[n] = slots[k]
        n += np.int64(overlaps(boxes, k, box) & (marks[chosen[k]] != 0))
    return n


@kernel
def _keep_matching(offsets, n_terms, terms, rows, marks):
    """Move the rows whose terms are all marked to the front; return how many there are."""
    n = 0
    for k in range(len(rows)):
        _prefetch_row(offsets, n_terms, terms, rows, k)
        at, stop = offsets[rows[k]], offsets[rows[k]] + n_terms[rows[k]]
        while at < stop and marks[terms[at]] != 0:
            at += 1
        rows[n] = rows[k]
        n += at == stop
    return n
