"""Upper bounds on the scores of all ranked rows below a node.

The surplus of a row is its score minus its threshold: alpha * place + (1 - alpha) * words - threshold. It is linear in
place and in words, and it grows with both. A node keeps the largest surplus of its rows at each corner of the unit
square (place, words). The largest surplus at a point is at most the weighted sum of the corners of the triangle around
the point: (p, w) = w (1, 1) + (p - w) (1, 0) + (1 - p) (0, 0) if p >= w, else p (1, 1) + (w - p) (0, 1) + (1 - w) (0,
0). So rows of any alpha and threshold may be mixed.

A row whose terms have no weight has all of its words at every corner. For other rows, a node keeps the smallest own
weight, which bounds words by the weight found, and the smallest area, which bounds place by the area of the overlap. A
row without area has area 0; its place is 1 as soon as the message touches it.

In style LEVELS a node also keeps the largest surplus, with place and without, of rows of which the heaviest term is
missing, or the two or three heaviest terms (MISSED).

An inserted row joins the bounds of the nodes above it. Bounds are computed again from the entries of a node when a row
that had set one of them is removed, and when entries move between nodes. So removed rows leave no trace.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.score import SLACK
from nearcast.structures.ranked_rtree.terms import LEVELS, heaviest_first
from nearcast.structures.rtree.nodes import ROOT

BOTH, PLACE, WORDS, NEITHER, MISSED = range(5)  # positions in the bounds of a node, float64[n, N_BOUNDS]
MOST_MISSED = 3
LIGHTEST = MISSED + 2 * MOST_MISSED
SMALLEST, N_BOUNDS = LIGHTEST + 1, LIGHTEST + 2

_LEAST = -2.0  # no surplus is below -1
_SMALLEST_NORMAL, _LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


@kernel
def bound_all(tree, ranked, bounds):
    """The bounds of every node in use, leaves first."""
    for level in range(tree.levels[ROOT] + 1):
        for node in range(len(tree.counts)):
            if tree.levels[node] == level:
                bound_node(tree, ranked, bounds, node)


@kernel
def bound_node(tree, ranked, bounds, node):
    """Set the bounds of a node from its entries."""
    bounds[node, :LIGHTEST] = _LEAST
    bounds[node, LIGHTEST:] = np.inf
    for k in range(tree.counts[node]):
        if tree.levels[node] == 0:
            join_bounds(bounds, node, bounds_of(ranked, np.int64(tree.slots[node, k])))
        else:
            join_bounds(bounds, node, bounds[tree.slots[node, k]])


@kernel
def join_bounds(bounds, node, other):
    """Widen the bounds of a node to include those of a row or of an entry."""
    for k in range(LIGHTEST):
        bounds[node, k] = max(bounds[node, k], other[k])
    for k in range(LIGHTEST, N_BOUNDS):
        bounds[node, k] = min(bounds[node, k], other[k])


@kernel
def update_bounds_without(tree, ranked, bounds, node, other):
    """Update the bounds of a node after a row with the bounds `other` was removed. They change only if it set one."""
    for k in range(N_BOUNDS):
        if bounds[node, k] == other[k]:
            bound_node(tree, ranked, bounds, node)
            return


@kernel
def bounds_of(ranked, row):
    """The bounds of a single row."""
    out, params = np.empty(N_BOUNDS), ranked.rank_params
    alpha, threshold, own = params.alphas[row], params.thresholds[row], params.own_weights[row]
    always = 0.0 if own > 0.0 else 1.0 - alpha
    out[BOTH] = 1.0 - threshold
    out[PLACE] = alpha + always - threshold
    out[WORDS] = 1.0 - alpha - threshold
    out[NEITHER] = always - threshold
    out[LIGHTEST] = own if own > 0.0 else np.inf
    out[SMALLEST] = _area(ranked.rows.boxes[row])
    out[MISSED:LIGHTEST] = _LEAST
    if ranked.style == LEVELS:
        _bound_missed(ranked, row, out)
    return out


@kernel
def _bound_missed(ranked, row, out):
    """Set the surplus without the heaviest term, without the two heaviest, and so on; with place, then without."""
    params = ranked.rank_params
    order, n = heaviest_first(ranked.rows, params.weights, row)
    alpha, threshold, own = params.alphas[row], params.thresholds[row], params.own_weights[row]
    rest = 0.0
    for k in range(n - 1, -1, -1):
        if k < MOST_MISSED:
            _set_missed(out, k + 1, (1.0 - alpha) * (rest / own) - threshold, alpha)
        rest += params.weights[order[k]]
    for k in range(n, MOST_MISSED):
        _set_missed(out, k + 1, out[NEITHER], alpha)


@kernel
def _set_missed(out, missed, far, alpha):
    out[MISSED + 2 * missed - 2] = far + alpha
    out[MISSED + 2 * missed - 1] = far


@kernel
def _area(box):
    """The area of a box, as a divisor that is never too large: 0 on underflow, the largest float on overflow."""
    area = (box[2] - box[0]) * (box[3] - box[1])
    return min(area, _LARGEST) if area >= _SMALLEST_NORMAL else 0.0


@kernel
def surplus_at(bounds, node, place, words):
    """An upper bound on the surplus of the rows below a node whose place and words are at most these."""
    own = bounds[node]
    if place >= words:
        return words * own[BOTH] + (place - words) * own[PLACE] + (1.0 - place) * own[NEITHER]
    return place * own[BOTH] + (words - place) * own[WORDS] + (1.0 - words) * own[NEITHER]


@kernel
def may_qualify_without(bounds, node, place, missed):
    """Whether a row below may be delivered without its `missed` heaviest terms, of which MOST_MISSED at most count."""
    if missed == 0:
        return may_qualify(bounds, node, place, 1.0)
    at = MISSED + 2 * min(missed, MOST_MISSED) - 2
    return place * bounds[node, at] + (1.0 - place) * bounds[node, at + 1] >= -SLACK


@kernel
def may_qualify(bounds, node, place, words):
    """Whether a row below the node may be delivered with at most this place and these words."""
    return surplus_at(bounds, node, place, words) >= -SLACK


@kernel
def place_bound(own, box, smallest):
    """The largest place of a row within the box `own` whose area is `smallest` or more."""
    if own[0] > box[2] or own[2] < box[0] or own[1] > box[3] or own[3] < box[1]:
        return 0.0
    if smallest == 0.0 or (box[0] == box[2] and box[1] == box[3]):
        return 1.0
    over_x, over_y = min(own[2], box[2]) - max(own[0], box[0]), min(own[3], box[3]) - max(own[1], box[1])
    if over_x == 0.0 or over_y == 0.0:  # a range or a segment that only touches
        return 0.0
    return min(1.0, over_x * over_y / smallest)


@kernel
def words_bound(found, lightest):
    """The largest words of a row whose own weight is `lightest` or more, if the weight `found` is found."""
    return min(1.0, found / lightest)
