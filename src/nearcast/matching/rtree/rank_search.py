"""The search of `rt-tree` and `rt+-tree` for kind `rank`: down through nodes whose bounds and tokens allow a row to be
delivered, then the exact score.

A child is left out where its bounds say no even if all words were there, and entered where they say yes even if none
is. In between its tokens decide. With sets of every token: the weight of the message's terms there, over the smallest
own weight, bounds words; asked for heaviest first, until what was found is enough or what is left cannot be. With
prefixes: a row below is delivered only if the message has a token of its prefix, the near one where the node is
overlapped, else the far one.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms
from nearcast.matching.rank_method import RankHits
from nearcast.matching.rtree.node_table import token_key, value_of
from nearcast.matching.rtree.nodes import ROOT, TreeArrays
from nearcast.matching.rtree.rank_bounds import LIGHTEST, SMALLEST, may_qualify, place_bound, words_bound
from nearcast.matching.rtree.rank_sets import RankSets
from nearcast.matching.rtree.rank_tokens import EVERY, FAR, RankedRows
from nearcast.matching.score import combined, place_share, score_of
from nearcast.model import MessageBatch, Work

_AHEAD = 8


def search(
    tree: TreeArrays, sets: RankSets, held: RankedRows, messages: MessageBatch, n_terms: int
) -> tuple[RankHits, Work]:
    """The rows delivered. Nodes are those visited, the root included; candidates the rows of leaves visited."""
    marks, starts = np.zeros(n_terms, np.uint8), np.zeros(messages.size + 1, np.int64)
    rows, scores, nodes, seen = _search(tree, held, (sets.table, sets.bounds), messages, marks, starts)
    return RankHits(rows, scores, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, held, hung, messages, marks, starts):  # type: ignore[no-untyped-def]
    out, scores = np.empty(1024, np.int32), np.empty(1024)
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        box = messages.boxes[m]
        known = _known_terms(held, hung[0], messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]])
        visited = _visited_nodes(tree, held, hung, known, box)
        nodes += len(visited)
        for i in range(len(visited)):
            leaf = visited[i]
            if tree.levels[leaf] == 0:
                seen += tree.counts[leaf]
                out, scores = with_room(out, n, tree.counts[leaf]), with_room(scores, n, tree.counts[leaf])
                n = _judge_leaf(tree, held, leaf, (marks, box), (out, scores), n)
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), scores[:n].copy(), nodes, seen


@kernel
def _judge_leaf(tree, held, leaf, message, found, n):  # type: ignore[no-untyped-def]
    """Judge all rows of a leaf. What they ask for lies anywhere, and is fetched eight rows ahead: half the time."""
    alphas, thresholds, slots, count = held.asked.alphas, held.asked.thresholds, tree.slots[leaf], tree.counts[leaf]
    for k in range(count):
        if k + _AHEAD < count:
            prefetch(alphas, np.int64(slots[k + _AHEAD]))
            prefetch(thresholds, np.int64(slots[k + _AHEAD]))
        n = judge(held, slots[k], place_share(tree.boxes[leaf, k], message[1]), message, found, n)
    return n


@kernel
def judge(held, row, place, message, found, n):  # type: ignore[no-untyped-def]
    """Write a row and its score at n if it is delivered; return the new n. Terms are read only where place allows:
    rounding keeps order, so no score is above that with all words.
    """
    marks, box = message
    out, scores = found
    asked = held.asked
    if combined(asked.alphas[row], place, 1.0) >= asked.thresholds[row]:
        score = score_of(held.rows, asked, row, marks, box)
        out[n], scores[n] = row, score
        n += score >= asked.thresholds[row]
    return n


@kernel
def _known_terms(held, table, terms):  # type: ignore[no-untyped-def]
    """Those of a message's terms that some row stands with, and the weight from each on: the heaviest first, or where
    prefixes are asked the most frequent, which are found soonest.
    """
    by = np.empty(len(terms))
    n = 0
    for k in range(len(terms)):
        count = find(table, token_key(ROOT, terms[k]))
        by[k] = 0.0
        if count != ABSENT:
            by[k] = -held.asked.weights[terms[k]] if held.style == EVERY else -count
            n += 1
    kept = terms[np.argsort(by, kind="mergesort")[:n]]
    rests = np.zeros(n + 1)
    for k in range(n - 1, -1, -1):
        rests[k] = rests[k + 1] + held.asked.weights[kept[k]]
    return kept, rests


@kernel
def _visited_nodes(tree, held, hung, known, box):  # type: ignore[no-untyped-def]
    """The root, and each node that may have a row to deliver and whose parent is visited."""
    bounds = hung[1]
    found = np.empty(256, np.int32)
    found[0] = ROOT
    n, at = 1, 0
    while at < n:
        node = found[at]
        at += 1
        if tree.levels[node] == 0:
            continue
        found = with_room(found, n, tree.counts[node])
        for k in range(tree.counts[node]):
            child = tree.slots[node, k]
            place = place_bound(tree.boxes[node, k], box, bounds[child, SMALLEST])
            if not may_qualify(bounds, child, place, 1.0):
                continue
            is_leaf = tree.levels[node] == 1
            if (
                may_qualify(bounds, child, place, 0.0)
                or (is_leaf and len(known[0]) > 2 * tree.counts[child])  # its rows are asked sooner than its tokens
                or _tokens_allow(held, hung, child, known, place)
            ):
                found[n] = child
                n += 1
    return found[:n]


@kernel
def _tokens_allow(held, hung, node, known, place):  # type: ignore[no-untyped-def]
    table, bounds = hung
    if held.style == EVERY:
        return _weighs_enough(table, bounds, held.asked.weights, node, known, place)
    mark = 0 if place > 0.0 else FAR
    for k in range(len(known[0])):
        if value_of(table.keys, table.values, token_key(node, np.int64(known[0][k]) | mark)) != ABSENT:
            return True
    return False


@kernel
def _weighs_enough(table, bounds, weights, node, known, place):  # type: ignore[no-untyped-def]
    terms, rests = known
    lightest = bounds[node, LIGHTEST]
    found = 0.0
    for k in range(len(terms)):
        if not may_qualify(bounds, node, place, words_bound(found + rests[k], lightest)):
            return False
        if value_of(table.keys, table.values, token_key(node, terms[k])) != ABSENT:
            found += weights[terms[k]]
            if may_qualify(bounds, node, place, words_bound(found, lightest)):
                return True
    return False
