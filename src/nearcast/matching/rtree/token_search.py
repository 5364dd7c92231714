"""The search of `rt-tree` and `rt+-tree`: nodes that overlap and share a token, then the exact predicate."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.matching.predicate import has_all_terms, mark_terms
from nearcast.matching.rtree.node_table import token_key, value_of
from nearcast.matching.rtree.nodes import ROOT, TreeArrays
from nearcast.matching.rtree.token_sets import TokenSets, tokens_of
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work


def search(
    tree: TreeArrays, sets: TokenSets, chosen: np.ndarray, store: RowStore, messages: MessageBatch
) -> tuple[Hits, Work]:
    """The rows that hold on each message. Nodes are those visited, the root included; candidates the rows of leaves."""
    marks = np.zeros(store.n_terms, np.uint8)
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, seen = _search(tree, sets.arrays, (store.arrays, chosen), messages, marks, starts)
    return Hits(rows, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, table, held, messages, marks, starts):  # type: ignore[no-untyped-def]
    out = np.empty(1024, np.int32)
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        terms = known_terms(table, messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]])
        visited = visited_nodes(tree, table, held, messages.boxes[m], terms, marks)
        nodes += len(visited)
        for i in range(len(visited)):
            if tree.levels[visited[i]] == 0:
                seen += tree.counts[visited[i]]
                out, n = _verify(tree, visited[i], held[0], marks, messages.boxes[m], out, n)
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def known_terms(table, terms):  # type: ignore[no-untyped-def]
    """Those of a message's terms that some row stands with, the most frequent first: they are found soonest."""
    counts = np.empty(len(terms), np.int64)
    n = 0
    for k in range(len(terms)):
        counts[k] = find(table, token_key(ROOT, terms[k]))
        n += counts[k] != ABSENT
    return terms[np.argsort(-counts, kind="mergesort")[:n]]


@kernel
def visited_nodes(tree, table, held, box, terms, marks):  # type: ignore[no-untyped-def]
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
        found = with_room(found, n, counts[node])
        for k in range(counts[node]):
            if overlaps(boxes[node], k, box):
                child = slots[node, k]
                if levels[node] == 1 and len(terms) > 2 * counts[child]:
                    shares = _rows_share(slots, counts[child], child, held, marks)
                else:
                    shares = _set_shares(keys, values, child, terms)
                found[n] = child
                n += shares
    return found[:n]


@kernel
def overlaps(boxes, k, box):  # type: ignore[no-untyped-def]
    """Whether box k and `box` share a point; without a branch."""
    return (boxes[k, 0] <= box[2]) & (boxes[k, 2] >= box[0]) & (boxes[k, 1] <= box[3]) & (boxes[k, 3] >= box[1])


@kernel
def _set_shares(keys, values, node, terms):  # type: ignore[no-untyped-def]
    for k in range(len(terms)):
        if value_of(keys, values, token_key(node, terms[k])) != ABSENT:
            return True
    return False


@kernel
def _rows_share(slots, n, leaf, held, marks):  # type: ignore[no-untyped-def]
    """The same answer for a leaf and a long message, from the leaf's own rows: they have fewer tokens than it has."""
    for k in range(n):
        terms, first, stop = tokens_of(held[0], held[1], slots[leaf, k])
        for i in range(first, stop):
            if marks[terms[i]] != 0:
                return True
    return False


@kernel
def _verify(tree, leaf, rows, marks, box, out, n):  # type: ignore[no-untyped-def]
    """Write the rows of a leaf that hold to out[n:]. Their boxes lie in the leaf, exact.

    First the boxes, kept or not by a sum instead of a branch; then the rows left, each three cache misses.
    """
    count = tree.counts[leaf]
    out = with_room(out, n, count)
    boxes, slots, stop = tree.boxes[leaf], tree.slots[leaf], n
    for k in range(count):
        out[stop] = slots[k]
        stop += np.int64(overlaps(boxes, k, box))
    for j in range(n, stop):
        row = out[j]
        if has_all_terms(rows, row, marks):
            out[n] = row
            n += 1
    return out, n
