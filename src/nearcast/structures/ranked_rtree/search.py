"""The search of `rt-tree` and `rt+-tree` for kind `rank`: down through nodes that overlap and whose bounds and tokens
allow a row to be delivered, then the exact score. Rows of place 0 are met at the root (rank_judge.py).

A child is left out where its bounds say no even if all words were there, and entered where they say yes even if none
is. In between its tokens decide. With sets of every token: the weight of the message's terms there, over the smallest
own weight, bounds words; asked for heaviest first, until what was found is enough or what is left cannot be. With
prefixes: a row below is delivered only if the message has a token of its near prefix.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT, find
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms
from nearcast.matching.rank_method import RankHits
from nearcast.matching.score import place_share
from nearcast.model import MessageBatch, Work
from nearcast.structures.node_table import term_key, value_of
from nearcast.structures.ranked_rtree.annotations import Hung
from nearcast.structures.ranked_rtree.bounds import LIGHTEST, SMALLEST, may_qualify, place_bound, words_bound
from nearcast.structures.ranked_rtree.scoring import (
    AHEAD,
    NEAR,
    far_entries,
    fetch_row,
    is_scan_cheaper,
    judge,
    judge_all,
    judge_far,
    weighing,
)
from nearcast.structures.ranked_rtree.tokens import EVERY, RankedRows
from nearcast.structures.rtree.nodes import ROOT, TreeArrays


def search(
    tree: TreeArrays, hung: Hung, held: RankedRows, messages: MessageBatch, n_terms: int
) -> tuple[RankHits, Work]:
    """The rows delivered. Nodes are those visited, the root included; candidates the rows of leaves visited and the
    entries read at the root, or all rows.
    """
    marks, starts = np.zeros(n_terms, np.uint8), np.zeros(messages.size + 1, np.int64)
    rows, scores, nodes, seen = _search(tree, held, hung.arrays, messages, marks, starts)
    return RankHits(rows, scores, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, held, hung, messages, marks, starts):
    found, n = (np.empty(1024, np.int32), np.empty(1024)), 0
    nodes = seen = 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        message = (marks, messages.boxes[m])
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        weighty = weighing(held, terms)
        visited, n_below = _visited_nodes(tree, held, hung, _known_terms(held, hung.sets, terms), message[1])
        nodes += len(visited)
        if is_scan_cheaper(tree, far_entries(hung.lists, weighty), n_below):
            found, n, more = judge_all(tree, held, message, found, n)
        else:
            found, n, more = judge_far(held, hung.lists, weighty, message, found, n)
            found, n = _judge_leaves(tree, held, visited, message, found, n)
            more += n_below
        seen += more
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return found[0][:n].copy(), found[1][:n].copy(), nodes, seen


@kernel
def _judge_leaves(tree, held, visited, message, found, n):
    for i in range(len(visited)):
        if tree.levels[visited[i]] == 0:
            leaf, count = visited[i], tree.counts[visited[i]]
            found = with_room(found[0], n, count), with_room(found[1], n, count)
            n = _judge_leaf(held, tree.slots[leaf, :count], tree.boxes[leaf], message, found, n)
    return found, n


@kernel
def _judge_leaf(held, slots, boxes, message, found, n):
    """Judge the rows of a leaf that overlap. What they ask for lies anywhere, and is fetched ahead: half the time."""
    rows, asked = held.rows, held.asked
    for k in range(len(slots)):
        if k + AHEAD < len(slots):
            fetch_row(rows, asked, np.int64(slots[k + AHEAD]))
        if k + NEAR < len(slots):
            prefetch(rows.terms, rows.offsets[slots[k + NEAR]])
        place = place_share(boxes[k], message[1])
        if place > 0.0:
            n = judge(rows, asked, np.int64(slots[k]), place, message, found, n)
    return n


@kernel
def _known_terms(held, table, terms):
    """Those of a message's terms that some row stands with, and the weight from each on: the heaviest first, or where
    prefixes are asked the most frequent, which are found soonest.
    """
    by = np.empty(len(terms))
    n = 0
    for k in range(len(terms)):
        count = find(table, term_key(ROOT, terms[k]))
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
def _visited_nodes(tree, held, hung, known, box):
    """The root, and each node that may have a row to deliver and whose parent is visited; and how many rows there are
    in the leaves among them.
    """
    bounds = hung.bounds
    found = np.empty(256, np.int32)
    found[0] = ROOT
    n, at, n_below = 1, 0, 0
    while at < n:
        node = found[at]
        at += 1
        if tree.levels[node] == 0:
            n_below += tree.counts[node]
            continue
        found = with_room(found, n, tree.counts[node])
        for k in range(tree.counts[node]):
            child = tree.slots[node, k]
            place = place_bound(tree.boxes[node, k], box, bounds[child, SMALLEST])
            if place == 0.0 or not may_qualify(bounds, child, place, 1.0):
                continue
            is_leaf = tree.levels[node] == 1
            if (
                may_qualify(bounds, child, place, 0.0)
                or (is_leaf and len(known[0]) > 2 * tree.counts[child])  # its rows are asked sooner than its tokens
                or _tokens_allow(held, hung, child, known, place)
            ):
                found[n] = child
                n += 1
    return found[:n], n_below


@kernel
def _tokens_allow(held, hung, node, known, place):
    sets = hung.sets
    if held.style == EVERY:
        return _weighs_enough(sets, hung.bounds, held.asked.weights, node, known, place)
    for k in range(len(known[0])):
        if value_of(sets.keys, sets.values, term_key(node, np.int64(known[0][k]))) != ABSENT:
            return True
    return False


@kernel
def _weighs_enough(table, bounds, weights, node, known, place):
    terms, rests = known
    lightest = bounds[node, LIGHTEST]
    found = 0.0
    for k in range(len(terms)):
        if not may_qualify(bounds, node, place, words_bound(found + rests[k], lightest)):
            return False
        if value_of(table.keys, table.values, term_key(node, terms[k])) != ABSENT:
            found += weights[terms[k]]
            if may_qualify(bounds, node, place, words_bound(found, lightest)):
                return True
    return False
