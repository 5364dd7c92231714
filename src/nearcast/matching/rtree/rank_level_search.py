"""The search of `rt++-tree` for kind `rank`: lists by level, and each row judged once, where its heaviest term found
stands.

A row of place 0 is met at the root only: in the list of its heaviest term found, if that is of its far prefix, or under
ANYWHERE. A row of another place is met on the way down. Why none is missed that is delivered: take such a row, and the
depth at which its heaviest term found stands. Its heavier terms, one at each depth above, were missed, so at each node
down to there what is left of its words is no more than the node's bound for so many missed (may_qualify_without), and
place no more than the bound by the node's box: the bound is not below its surplus, which is not negative, and each of
these nodes is entered. So the list is read in which the row stands. If none of its terms is found it scores by place
alone, each node down to its leaf is entered for the same reason, and there the bound at no words is not negative
either: then all rows of the leaf without a term found are judged. It stands in the list at all because the terms beyond
a prefix are too light without it (rank_tokens.py). None is judged twice: a row has one place, and one heaviest term
found, which stands in one list of either kind.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT
from nearcast.arrays.jit import kernel
from nearcast.matching.predicate import mark_terms
from nearcast.matching.rank_method import RankHits
from nearcast.matching.rtree.node_table import token_key, value_of
from nearcast.matching.rtree.nodes import ROOT, TreeArrays
from nearcast.matching.rtree.rank_bounds import SMALLEST, may_qualify, may_qualify_without, place_bound
from nearcast.matching.rtree.rank_lists import RankLists
from nearcast.matching.rtree.rank_search import judge
from nearcast.matching.rtree.rank_tokens import ANYWHERE, FAR, RankedRows
from nearcast.matching.rtree.token_search import overlaps
from nearcast.matching.score import place_share
from nearcast.model import MessageBatch, Work

_NONE = -1  # no term found


def search(
    tree: TreeArrays, hung: RankLists, held: RankedRows, messages: MessageBatch, n_terms: int
) -> tuple[RankHits, Work]:
    """The rows delivered. Nodes are those visited, the root included; candidates are entries read and rows asked."""
    marks, starts = np.zeros(n_terms, np.uint8), np.zeros(messages.size + 1, np.int64)
    rows, scores, nodes, seen = _search(tree, held, (hung.arrays, hung.bounds), messages, marks, starts)
    return RankHits(rows, scores, starts), Work(nodes, seen, len(rows))


@kernel
def _search(tree, held, hung, messages, marks, starts):  # type: ignore[no-untyped-def]
    found, n = (np.empty(1024, np.int32), np.empty(1024)), 0
    lists, bounds = hung
    height, nodes, seen = tree.levels[ROOT], 0, 0
    for m in range(len(starts) - 1):
        mark_terms(marks, messages, m, 1)
        message = (marks, messages.boxes[m])
        terms = _weighing(held, messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]])
        found, n, more = _judge_far(held, lists, terms, message, found, n)
        seen += more
        visited, places = _visited_nodes(tree, bounds, messages.boxes[m])
        nodes += len(visited)
        for i in range(len(visited)):
            node, is_leaf = visited[i], tree.levels[visited[i]] == 0
            is_open = is_leaf and may_qualify(bounds, node, places[i], 0.0)
            if is_leaf and (is_open or len(terms) > 2 * tree.counts[node]):
                found, n = _judge_leaf(tree, held, node, message, found, n)
                seen += tree.counts[node]
            elif node != ROOT or height == 0:
                found, n, more = _judge_near(held, lists, node, terms, message, found, n)
                seen += more
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return found[0][:n].copy(), found[1][:n].copy(), nodes, seen


@kernel
def _weighing(held, terms):  # type: ignore[no-untyped-def]
    """Those of a message's terms that weigh anything: no row stands with others."""
    out = np.empty(len(terms), np.int64)
    n = 0
    for k in range(len(terms)):
        out[n] = terms[k]
        n += held.asked.weights[terms[k]] > 0.0
    return out[:n]


@kernel
def _visited_nodes(tree, bounds, box):  # type: ignore[no-untyped-def]
    """The root, and each node below a visited one with a row that place and the terms not missed may lift over its
    threshold; and the bound on place for each.
    """
    found, places = np.empty(256, np.int32), np.empty(256)
    found[0], places[0] = ROOT, 1.0
    n, at = 1, 0
    while at < n:
        node = found[at]
        at += 1
        if tree.levels[node] == 0:
            continue
        depth = tree.levels[ROOT] - tree.levels[node]
        found, places = with_room(found, n, tree.counts[node]), with_room(places, n, tree.counts[node])
        for k in range(tree.counts[node]):
            child = tree.slots[node, k]
            place = place_bound(tree.boxes[node, k], box, bounds[child, SMALLEST])
            if place > 0.0 and may_qualify_without(bounds, child, place, depth):
                found[n], places[n] = child, place
                n += 1
    return found[:n], places[:n]


@kernel
def _judge_far(held, lists, terms, message, found, n):  # type: ignore[no-untyped-def]
    """Judge the rows that do not overlap and stand at the root; return what is found and the entries read."""
    marks, box = message
    seen = 0
    for k in range(len(terms) + 1):
        token = terms[k] | FAR if k < len(terms) else ANYWHERE
        which = value_of(lists.keys, lists.values, token_key(ROOT, token))
        if which == ABSENT:
            continue
        first, length = lists.offsets[which], lists.counts[which]
        seen += length
        found = with_room(found[0], n, length), with_room(found[1], n, length)
        for at in range(first, first + length):
            row = lists.rows[at]
            # Their boxes are rounded outward: those that miss need no exact look.
            if overlaps(lists.boxes, at, box) and place_share(held.rows.boxes[row], box) > 0.0:
                continue
            if token == ANYWHERE or _heaviest_found(held, row, marks) == terms[k]:
                n = judge(held, row, 0.0, message, found, n)
    return found, n, seen


@kernel
def _judge_near(held, lists, node, terms, message, found, n):  # type: ignore[no-untyped-def]
    """Judge the rows that overlap and whose heaviest term found stands at this node; return as `_judge_far` does."""
    marks, box = message
    seen = 0
    for k in range(len(terms)):
        which = value_of(lists.keys, lists.values, token_key(node, terms[k]))
        if which == ABSENT:
            continue
        first, length = lists.offsets[which], lists.counts[which]
        seen += length
        found = with_room(found[0], n, length), with_room(found[1], n, length)
        for at in range(first, first + length):
            if overlaps(lists.boxes, at, box):
                row = lists.rows[at]
                place = place_share(held.rows.boxes[row], box)
                if place > 0.0 and _heaviest_found(held, row, marks) == terms[k]:
                    n = judge(held, row, place, message, found, n)
    return found, n, seen


@kernel
def _judge_leaf(tree, held, leaf, message, found, n):  # type: ignore[no-untyped-def]
    """Judge the rows of a leaf that overlap and were not met above it."""
    marks, box = message
    n_above = tree.levels[ROOT] - 1
    found = with_room(found[0], n, tree.counts[leaf]), with_room(found[1], n, tree.counts[leaf])
    for k in range(tree.counts[leaf]):
        row = tree.slots[leaf, k]
        place = place_share(tree.boxes[leaf, k], box)
        if place > 0.0 and not _stands_above(held, row, marks, n_above):
            n = judge(held, row, place, message, found, n)
    return found, n


@kernel
def _heaviest_found(held, row, marks):  # type: ignore[no-untyped-def]
    """The heaviest term of a row that is found, among equals the smallest; _NONE where none weighs."""
    terms, weights, first = held.rows.terms, held.asked.weights, held.rows.offsets[row]
    best, most = _NONE, 0.0
    for k in range(first, first + held.rows.n_terms[row]):
        if marks[terms[k]] != 0 and weights[terms[k]] > most:
            best, most = np.int64(terms[k]), weights[terms[k]]
    return best


@kernel
def _stands_above(held, row, marks, n_above):  # type: ignore[no-untyped-def]
    """Whether the heaviest term found is among the first `n_above`, which stand above the leaf."""
    best = _heaviest_found(held, row, marks)
    if best == _NONE or n_above <= 0:
        return False
    terms, weights, first = held.rows.terms, held.asked.weights, held.rows.offsets[row]
    n_heavier = 0
    for k in range(first, first + held.rows.n_terms[row]):
        weight = weights[terms[k]]
        n_heavier += weight > weights[best] or (weight == weights[best] and terms[k] < best)
    return n_heavier < n_above
