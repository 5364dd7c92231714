"""The descent of `rt++-tree` for kind `rank`: lists by level. Each row is scored once, where its heaviest term that the
message has is listed.

No row is missed. Take a row of place above 0 that is delivered, and the depth at which its heaviest term found is
listed. Its heavier terms, one for each depth above, are not in the message. So at each node down to that depth its
words are at most the node's bound for that many missing terms (may_qualify_without), and its place is at most the bound
by the node's box. The bound is not below the surplus of the row, which is not negative; hence each of these nodes is
visited, and the list that contains the row is read. If none of its terms is found, the row is delivered by place alone.
Then each node down to its leaf is visited for the same reason, and the leaf's bound without words is not negative
either; all rows of such a leaf without a term found are scored. The row is listed at all because the terms beyond its
prefix are too light without the prefix (terms.py).

No row is scored twice: it has one heaviest term found, which is in one list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import ABSENT
from nearcast.arrays.jit import kernel
from nearcast.structures.node_table import prefetch_slot, term_key, value_of
from nearcast.structures.ranked_rtree.bounds import SMALLEST, may_qualify, may_qualify_without, place_bound
from nearcast.structures.ranked_rtree.scoring import (
    AHEAD,
    count_entries,
    list_entries,
    score_leaf,
    score_listed,
    with_found_room,
)
from nearcast.structures.rtree.nodes import ROOT


class Visit(NamedTuple):
    """The nodes that a message visits."""

    nodes: np.ndarray  # int32[n]
    places: np.ndarray  # float64[n]  the bound on place for each node
    terms: np.ndarray  # int64[...]  the terms of the message that have weight


@kernel
def visit_levels(tree, bounds, box):
    """(nodes, places): the root, and each node below a visited one with a row that place and the terms not missing may
    lift over its threshold; and the bound on place for each.
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
def _reads_rows(tree, bounds, node, place, n_terms):
    """Whether the rows of a node are read instead of its lists: in a leaf, if one may be delivered without a term
    found, or if there are fewer rows than terms.
    """
    if tree.levels[node] > 0:
        return False
    return n_terms > 2 * tree.counts[node] or may_qualify(bounds, node, place, 0.0)


@kernel
def count_visited(tree, annotations, visit):
    """How many entries of lists, and how many rows of leaves, `score_visited` would read."""
    n_listed = n_in_leaves = 0
    for i in range(len(visit.nodes)):
        node = visit.nodes[i]
        if _reads_rows(tree, annotations.bounds, node, visit.places[i], len(visit.terms)):
            n_in_leaves += np.int64(tree.counts[node])
        elif node != ROOT or tree.levels[ROOT] == 0:
            n_listed += count_entries(annotations.lists, node, visit.terms, 0)
    return n_listed, n_in_leaves


@kernel
def score_visited(tree, annotations, ranked, visit, message, found, n):
    """Score the rows that the visited nodes list; return what is found and the new n."""
    height = tree.levels[ROOT]
    for i in range(len(visit.nodes)):
        node, count = visit.nodes[i], tree.counts[visit.nodes[i]]
        if _reads_rows(tree, annotations.bounds, node, visit.places[i], len(visit.terms)):
            found = with_found_room(found, n, count)
            n = score_leaf(ranked, tree.slots[node, :count], tree.boxes[node], height - 1, message, found, n)
        elif node != ROOT or height == 0:
            found, n = _score_lists(ranked, annotations.lists, node, visit.terms, message, found, n)
    return found, n


@kernel
def _score_lists(ranked, lists, node, terms, message, found, n):
    """Score the rows that overlap and whose heaviest term found is listed here; return what is found and the new n."""
    keys, values, single = lists.keys, lists.values, np.empty(1, np.int32)
    for k in range(len(terms)):
        if k + AHEAD < len(terms):
            prefetch_slot(keys, values, term_key(node, terms[k + AHEAD]))
        which = np.int64(value_of(keys, values, term_key(node, terms[k])))
        if which != ABSENT:
            entries = list_entries(lists, which, single)
            found = with_found_room(found, n, len(entries.rows))
            n = score_listed(ranked, entries, terms[k], False, message, found, n)
    return found, n
