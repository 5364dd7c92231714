"""The descent of `rt-tree` and `rt+-tree` for kind `rank`, by sets of terms and bounds on the score.

A child is skipped if its bounds forbid every row below it even if all words were found, and visited if they allow one
even if no word is found. Otherwise its terms decide. Style `EVERY`: the weight of the message's terms in the set, over
the smallest own weight, bounds words. Terms are looked up heaviest first, until the weight found is enough or the rest
cannot be enough. Style `PREFIX`: a row below is delivered only if the message has a term of its near prefix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.intmap import find
from nearcast.arrays.jit import kernel
from nearcast.structures.node_table import known_terms, term_key, value_of
from nearcast.structures.ranked_rtree.bounds import LIGHTEST, SMALLEST, may_qualify, place_bound, words_bound
from nearcast.structures.ranked_rtree.scoring import score_leaf, with_found_room
from nearcast.structures.ranked_rtree.terms import EVERY
from nearcast.structures.rtree.nodes import ROOT


class KnownTerms(NamedTuple):
    """The terms of a message that some row is filed under, in the order in which they are looked up."""

    terms: np.ndarray  # int32[n]
    rests: np.ndarray  # float64[n + 1]  the weight of all terms from each one on


@kernel
def known_with_rests(ranked, table, terms):
    """The known terms, heaviest first; for prefixes the most frequent first, which are found soonest."""
    by = np.zeros(len(terms))
    for k in range(len(terms)):
        count = find(table, term_key(ROOT, terms[k]))
        if count > 0:
            by[k] = ranked.rank_params.weights[terms[k]] if ranked.style == EVERY else count
    kept = known_terms(terms, by)
    rests = np.zeros(len(kept) + 1)
    for k in range(len(kept) - 1, -1, -1):
        rests[k] = rests[k + 1] + ranked.rank_params.weights[kept[k]]
    return KnownTerms(kept, rests)


@kernel
def visit_sets(tree, annotations, ranked, known, box):
    """The root, and each node below a visited one that may have a row to deliver; the number of rows in leaves."""
    bounds = annotations.bounds
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
                or (is_leaf and len(known.terms) > 2 * tree.counts[child])  # it is cheaper to read its rows
                or _terms_allow(annotations, ranked, child, known, place)
            ):
                found[n] = child
                n += 1
    return found[:n], n_below


@kernel
def _terms_allow(annotations, ranked, node, known, place):
    """Whether the terms of a node allow a row below it to be delivered."""
    sets = annotations.sets
    if ranked.style == EVERY:
        return _weighs_enough(sets, annotations.bounds, ranked.rank_params.weights, node, known, place)
    for k in range(len(known.terms)):
        if value_of(sets.keys, sets.values, term_key(node, np.int64(known.terms[k]))) > 0:
            return True
    return False


@kernel
def _weighs_enough(table, bounds, weights, node, known, place):
    terms, rests = known.terms, known.rests
    lightest = bounds[node, LIGHTEST]
    found = 0.0
    for k in range(len(terms)):
        if not may_qualify(bounds, node, place, words_bound(found + rests[k], lightest)):
            return False
        if value_of(table.keys, table.values, term_key(node, terms[k])) > 0:
            found += weights[terms[k]]
            if may_qualify(bounds, node, place, words_bound(found, lightest)):
                return True
    return False


@kernel
def score_leaves(tree, ranked, visited, message, found, n):
    """Score the rows of the leaves visited; return what is found and the new n."""
    for i in range(len(visited)):
        if tree.levels[visited[i]] == 0:
            leaf, count = visited[i], tree.counts[visited[i]]
            found = with_found_room(found, n, count)
            n = score_leaf(ranked, tree.slots[leaf, :count], tree.boxes[leaf], 0, message, found, n)
    return found, n
