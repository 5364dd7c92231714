"""The search of `rt-tree` and `rt+-tree`: nodes that overlap and share a token, then the exact predicate."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, find, home_slot
from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.boxes import overlaps
from nearcast.structures.node_table import term_key, value_of
from nearcast.structures.rtree.nodes import ROOT, TreeArrays
from nearcast.structures.rtree.term_sets import Chosen, TokenSets

_AHEAD, _NEAR = 8, 4  # places ahead at which memory is asked for; and at which what it says is followed
_FIRST = 4


def search(
    tree: TreeArrays, sets: TokenSets, chosen: Chosen, store: RowStore, messages: MessageBatch
) -> tuple[Hits, Work]:
    """The rows that hold on each message. Nodes are those visited, the root included; candidates the rows of leaves."""
    marks = np.zeros(store.n_terms, np.uint8)
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(tree, sets.arrays, (store.arrays, chosen), messages, marks, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, table, held, messages, marks, starts):
    """Arrays are taken out of their tuples before leaves are read: handing them over took as long as reading."""
    out = np.empty(1024, np.int32)
    levels, counts, slots, leaf_boxes, in_leaves = tree.levels, tree.counts, tree.slots, tree.boxes, held[1].in_leaves
    offsets, n_terms, row_terms, is_chosen = held[0].offsets, held[0].n_terms, held[0].terms, len(held[1].of_rows) > 0
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        terms = known_terms(table, messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]])
        visited = visited_nodes(tree, table, held, messages.boxes[m], terms, marks)
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
            n += _keep_holding(offsets, n_terms, row_terms, out[n:stop], marks)
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def known_terms(table, terms):
    """Those of a message's terms that some row stands with, the most frequent first: they are found soonest."""
    counts = np.empty(len(terms), np.int64)
    n = 0
    for k in range(len(terms)):
        counts[k] = find(table, term_key(ROOT, terms[k]))
        n += counts[k] != ABSENT
    return terms[np.argsort(-counts, kind="mergesort")[:n]]


@kernel
def visited_nodes(tree, table, held, box, terms, marks):
    """The root, and each node that overlaps the box, shares a token, and whose parent is visited."""
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
        for j in range(n, stop):
            _fetch_set(keys, values, found[j], terms)
        for j in range(n, stop):
            child = found[j]
            if levels[node] == 1 and len(terms) > most_terms(held[1], counts[child]):
                shares = _rows_share(slots[child], counts[child], child, held, marks)
            else:
                shares = _set_shares(keys, values, child, terms)
            found[n] = child
            n += shares
    return found[:n]


@kernel
def _fetch_set(keys, values, node, terms):
    """Ask for the memory of the first terms in a node's set: a node overlaps with a dozen others, each a cache miss."""
    for k in range(min(len(terms), _FIRST)):
        slot = home_slot(term_key(node, terms[k]), len(keys) - 1)
        prefetch(keys, slot)
        prefetch(values, slot)


@kernel
def _set_shares(keys, values, node, terms):
    for k in range(len(terms)):
        if value_of(keys, values, term_key(node, terms[k])) != ABSENT:
            return True
    return False


@kernel
def most_terms(chosen, n):
    """A message of more terms asks the n rows of a leaf instead of its set: chosen tokens lie there in one stretch, all
    tokens of a row at a place of their own.
    """
    return 4 if len(chosen.of_rows) > 0 else 2 * n


@kernel
def _rows_share(rows, n, leaf, held, marks):
    """The same answer for a leaf and a longer message, from the leaf's own rows: they have fewer tokens than it has."""
    stored, chosen = held
    if len(chosen.of_rows) > 0:
        tokens = chosen.in_leaves[leaf]
        for k in range(n):
            if marks[tokens[k]] != 0:
                return True
        return False
    return _some_share(stored.offsets, stored.n_terms, stored.terms, rows[:n], marks)


@kernel
def _some_share(offsets, n_terms, terms, rows, marks):
    for k in range(len(rows)):
        _fetch(offsets, n_terms, terms, rows, k)
        first = offsets[rows[k]]
        for i in range(first, first + n_terms[rows[k]]):
            if marks[terms[i]] != 0:
                return True
    return False


@inline_kernel
def _fetch(offsets, n_terms, terms, rows, k):
    """Before row k is read, ask for the memory that tells where later ones lie, and where nearer ones do."""
    if k + _AHEAD < len(rows):
        prefetch(offsets, np.int64(rows[k + _AHEAD]))
        prefetch(n_terms, np.int64(rows[k + _AHEAD]))
    if k + _NEAR < len(rows):
        prefetch(terms, offsets[rows[k + _NEAR]])


@kernel
def _candidates(slots, boxes, box, out, n):
    """Write the rows of a leaf that overlap to out[n:]; return the new n. Their boxes lie in the leaf, exact.

    A row is kept or not by a sum instead of a branch.
    """
    for k in range(len(slots)):
        out[n] = slots[k]
        n += np.int64(overlaps(boxes, k, box))
    return n


@kernel
def _marked_candidates(slots, boxes, tokens, marks, box, out, n):
    """The same, of those whose chosen token is marked: it lies beside them."""
    for k in range(len(slots)):
        out[n] = slots[k]
        n += np.int64(overlaps(boxes, k, box) & (marks[tokens[k]] != 0))
    return n


@kernel
def _keep_holding(offsets, n_terms, terms, rows, marks):
    """Move the rows whose terms are all marked to the front; return how many there are."""
    n = 0
    for k in range(len(rows)):
        _fetch(offsets, n_terms, terms, rows, k)
        at, stop = offsets[rows[k]], offsets[rows[k]] + n_terms[rows[k]]
        while at < stop and marks[terms[at]] != 0:
            at += 1
        rows[n] = rows[k]
        n += at == stop
    return n
