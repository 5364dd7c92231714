"""The search of `rt++-tree` for kind `rank`: lists by level, and each row judged once, where its heaviest term found
stands.

A row of place 0 is met at the root (rank_judge.py), one of another place on the way down. Why none of these is missed
that is delivered: take such a row, and the depth at which its heaviest term found stands. Its heavier terms, one at
each depth above, were missed, so at each node down to there what is left of its words is no more than the node's bound
for so many missed (may_qualify_without), and place no more than the bound by the node's box: the bound is not below its
surplus, which is not negative, and each of these nodes is entered. So the list is read in which the row stands. If none
of its terms is found it scores by place alone, each node down to its leaf is entered for the same reason, and there the
bound at no words is not negative either: then all rows of the leaf without a term found are judged. It stands in the
list at all because the terms beyond a prefix are too light without it (rank_tokens.py). None is judged twice: a row has
one heaviest term found, which stands in one list.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT
from nearcast.arrays.jit import kernel
from nearcast.arrays.vector import prefetch
from nearcast.matching.predicate import mark_terms
from nearcast.matching.rank_method import RankHits
from nearcast.matching.score import place_share
from nearcast.model import MessageBatch, Work
from nearcast.structures.node_table import term_key, value_of
from nearcast.structures.ranked_rtree.annotations import Hung
from nearcast.structures.ranked_rtree.bounds import SMALLEST, may_qualify, may_qualify_without, place_bound
from nearcast.structures.ranked_rtree.scoring import (
    AHEAD,
    NEAR,
    NO_TERM_FOUND,
    count_entries,
    entries_of_list,
    far_entries,
    fetch_row,
    fetch_slot,
    heaviest_found,
    is_scan_cheaper,
    judge,
    judge_all,
    judge_far,
    judge_listed,
    weighing,
)
from nearcast.structures.ranked_rtree.tokens import RankedRows
from nearcast.structures.rtree.nodes import ROOT, TreeArrays


def search(
    tree: TreeArrays, hung: Hung, held: RankedRows, messages: MessageBatch, n_terms: int
) -> tuple[RankHits, Work]:
    """The rows delivered. Nodes are those visited, the root included; candidates are entries read and rows asked, or
    all rows.
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
        terms = weighing(held, messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]])
        visited, places = _visited_nodes(tree, hung.bounds, messages.boxes[m])
        nodes += len(visited)
        n_listed, n_in_leaves = _count_near(tree, hung, visited, places, terms)
        if is_scan_cheaper(tree, far_entries(hung.lists, terms) + n_listed, n_in_leaves):
            found, n, more = judge_all(tree, held, message, found, n)
        else:
            found, n, more = judge_far(held, hung.lists, terms, message, found, n)
            found, n = _judge_visited(tree, held, hung, (visited, places, terms), message, found, n)
            more += n_listed + n_in_leaves
        seen += more
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return found[0][:n].copy(), found[1][:n].copy(), nodes, seen


@kernel
def _asks_rows(tree, bounds, node, place, n_terms):
    """Whether the rows of a node are asked instead of its lists: in a leaf, where one may be delivered without a term
    found, or where they are fewer than the terms.
    """
    if tree.levels[node] > 0:
        return False
    return n_terms > 2 * tree.counts[node] or may_qualify(bounds, node, place, 0.0)


@kernel
def _count_near(tree, hung, visited, places, terms):
    """How many entries of lists, and how many rows of leaves, `_judge_visited` would read."""
    n_listed = n_in_leaves = 0
    for i in range(len(visited)):
        if _asks_rows(tree, hung.bounds, visited[i], places[i], len(terms)):
            n_in_leaves += np.int64(tree.counts[visited[i]])
        elif visited[i] != ROOT or tree.levels[ROOT] == 0:
            n_listed += count_entries(hung.lists, visited[i], terms, 0)
    return n_listed, n_in_leaves


@kernel
def _judge_visited(tree, held, hung, way, message, found, n):
    """Judge the rows of place that stand at the nodes visited; return what is found and the new n."""
    visited, places, terms = way
    height = tree.levels[ROOT]
    for i in range(len(visited)):
        node, count = visited[i], tree.counts[visited[i]]
        if _asks_rows(tree, hung.bounds, node, places[i], len(terms)):
            found = with_room(found[0], n, count), with_room(found[1], n, count)
            n = _judge_leaf(held, tree.slots[node, :count], tree.boxes[node], height - 1, message, found, n)
        elif node != ROOT or height == 0:
            found, n = _judge_near(held, hung.lists, node, terms, message, found, n)
    return found, n


@kernel
def _visited_nodes(tree, bounds, box):
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
def _judge_near(held, lists, node, terms, message, found, n):
    """Judge the rows that overlap and whose heaviest term found stands at this node; return what is found and the new
    n.
    """
    keys, values, single = lists.keys, lists.values, np.empty(1, np.int32)
    for k in range(len(terms)):
        if k + AHEAD < len(terms):
            fetch_slot(keys, values, term_key(node, terms[k + AHEAD]))
        which = np.int64(value_of(keys, values, term_key(node, terms[k])))
        if which != ABSENT:
            entries, boxes = entries_of_list(lists, which, single)
            found = with_room(found[0], n, len(entries)), with_room(found[1], n, len(entries))
            n = judge_listed(held, entries, boxes, (terms[k], False), message, found, n)
    return found, n


@kernel
def _judge_leaf(held, slots, boxes, n_above, message, found, n):
    """Judge the rows of a leaf that overlap and were not met above it; return the new n."""
    rows, asked = held.rows, held.asked
    for k in range(len(slots)):
        if k + AHEAD < len(slots):
            fetch_row(rows, asked, np.int64(slots[k + AHEAD]))
        if k + NEAR < len(slots):
            prefetch(rows.terms, rows.offsets[slots[k + NEAR]])
        row, place = np.int64(slots[k]), place_share(boxes[k], message[1])
        if place > 0.0:
            terms = rows.terms[rows.offsets[row] : rows.offsets[row] + rows.n_terms[row]]
            if not _stands_above(terms, asked.weights, message[0], n_above):
                n = judge(rows, asked, row, place, message, found, n)
    return n


@kernel
def _stands_above(terms, weights, marks, n_above):
    """Whether the heaviest term found is among the first `n_above`, which stand above the leaf."""
    best = heaviest_found(terms, weights, 0, len(terms), marks)
    if best == NO_TERM_FOUND or n_above <= 0:
        return False
    n_heavier = 0
    for k in range(len(terms)):
        weight = weights[terms[k]]
        n_heavier += weight > weights[best] or (weight == weights[best] and terms[k] < best)
    return n_heavier < n_above
