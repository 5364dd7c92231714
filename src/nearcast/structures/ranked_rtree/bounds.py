"""What bounds the scores of all ranked rows below a node.

A row's surplus is its score less its threshold: alpha * place + (1 - alpha) * words - threshold. It grows with place
and with words, and it is linear in both. So a node keeps the largest surplus of its rows at each corner of (place,
words), and the largest one at any point is at most what the corners of the triangle around that point give, weighed as
they make up the point: (p, w) = w (1, 1) + (p - w) (1, 0) + (1 - p) (0, 0) where p >= w, else p (1, 1) + (w - p) (0, 1)
+ (1 - w) (0, 0). Rows of any alpha and threshold may be mixed.

A row whose terms weigh nothing has all of its words at every corner. For the others a node keeps the smallest own
weight, which bounds words from the weight found; and the smallest area, which bounds place from the area overlapped. A
row without area has area 0: place is then 1 as soon as the node is touched.

Where rows stand at levels, a node also keeps the largest surplus, with place and without, of rows whose heaviest term
was missed, or their two or three heaviest ones (MISSED).

A row that comes joins the bounds of the nodes above it. Where one goes that had set a bound, and where nodes are split
or poured together, they are computed anew from the entries: nothing that went leaves a trace.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.matching.score import SLACK
from nearcast.structures.ranked_rtree.tokens import LEVELS, heaviest_first
from nearcast.structures.rtree.nodes import ROOT

BOTH, PLACE, WORDS, NEITHER, MISSED = range(5)  # places in the bounds of a node, float64[n, N_BOUNDS]
MOST_MISSED = 3
LIGHTEST = MISSED + 2 * MOST_MISSED
SMALLEST, N_BOUNDS = LIGHTEST + 1, LIGHTEST + 2

_LEAST = -2.0  # no surplus is below -1
_SMALLEST_NORMAL, _LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


@kernel
def bound_all(tree, held, bounds):
    """The bounds of every node in use, leaves first."""
    for level in range(tree.levels[ROOT] + 1):
        for node in range(len(tree.counts)):
            if tree.levels[node] == level:
                bound_node(tree, held, bounds, node)


@kernel
def bound_node(tree, held, bounds, node):
    """Set the bounds of a node from its entries."""
    bounds[node, :LIGHTEST] = _LEAST
    bounds[node, LIGHTEST:] = np.inf
    for k in range(tree.counts[node]):
        if tree.levels[node] == 0:
            join_bounds(bounds, node, bounds_of(held, np.int64(tree.slots[node, k])))
        else:
            join_bounds(bounds, node, bounds[tree.slots[node, k]])


@kernel
def join_bounds(bounds, node, other):
    """Make the bounds of a node hold for these too: those of a row that came, or of an entry."""
    for k in range(LIGHTEST):
        bounds[node, k] = max(bounds[node, k], other[k])
    for k in range(LIGHTEST, N_BOUNDS):
        bounds[node, k] = min(bounds[node, k], other[k])


@kernel
def part_bounds(tree, held, bounds, node, other):
    """Bring the bounds of a node up to date when a row with these went: they change only where it set one of them."""
    for k in range(N_BOUNDS):
        if bounds[node, k] == other[k]:
            bound_node(tree, held, bounds, node)
            return


@kernel
def bounds_of(held, row):
    """The bounds of a row alone."""
    out = np.empty(N_BOUNDS)
    alpha, threshold, own = held.asked.alphas[row], held.asked.thresholds[row], held.asked.own_weights[row]
    always = 0.0 if own > 0.0 else 1.0 - alpha
    out[BOTH] = 1.0 - threshold
    out[PLACE] = alpha + always - threshold
    out[WORDS] = 1.0 - alpha - threshold
    out[NEITHER] = always - threshold
    out[LIGHTEST] = own if own > 0.0 else np.inf
    out[SMALLEST] = _area(held.rows.boxes[row])
    out[MISSED:LIGHTEST] = _LEAST
    if held.style == LEVELS:
        _bound_missed(held, row, out)
    return out


@kernel
def _bound_missed(held, row, out):
    """The surplus without the heaviest term, without the two heaviest, and so on; near, then far."""
    order, n = heaviest_first(held.rows, held.asked.weights, row)
    alpha, threshold, own = held.asked.alphas[row], held.asked.thresholds[row], held.asked.own_weights[row]
    rest = 0.0
    for k in range(n - 1, -1, -1):
        if k < MOST_MISSED:
            _set_missed(out, k + 1, (1.0 - alpha) * (rest / own) - threshold, alpha)
        rest += held.asked.weights[order[k]]
    for k in range(n, MOST_MISSED):
        _set_missed(out, k + 1, out[NEITHER], alpha)


@kernel
def _set_missed(out, missed, far, alpha):
    out[MISSED + 2 * missed - 2] = far + alpha
    out[MISSED + 2 * missed - 1] = far


@kernel
def _area(box):
    """0 too where the area is below the floats, the largest float where it is past them: never too large a divisor."""
    area = (box[2] - box[0]) * (box[3] - box[1])
    return min(area, _LARGEST) if area >= _SMALLEST_NORMAL else 0.0


@kernel
def surplus_at(bounds, node, place, words):
    """The largest surplus that a row below the node may have, where place and words are no more than these."""
    own = bounds[node]
    if place >= words:
        return words * own[BOTH] + (place - words) * own[PLACE] + (1.0 - place) * own[NEITHER]
    return place * own[BOTH] + (words - place) * own[WORDS] + (1.0 - words) * own[NEITHER]


@kernel
def may_qualify_without(bounds, node, place, missed):
    """Whether a row below the node may still be delivered, so many of its heaviest terms missed. Those past MOST_MISSED
    are taken as found.
    """
    if missed == 0:
        return may_qualify(bounds, node, place, 1.0)
    at = MISSED + 2 * min(missed, MOST_MISSED) - 2
    return place * bounds[node, at] + (1.0 - place) * bounds[node, at + 1] >= -SLACK


@kernel
def may_qualify(bounds, node, place, words):
    return surplus_at(bounds, node, place, words) >= -SLACK


@kernel
def place_bound(own, box, smallest):
    """The largest `place` of a row within the box `own` that has the area `smallest` or more."""
    if own[0] > box[2] or own[2] < box[0] or own[1] > box[3] or own[3] < box[1]:
        return 0.0
    if smallest == 0.0 or (box[0] == box[2] and box[1] == box[3]):
        return 1.0
    over_x, over_y = min(own[2], box[2]) - max(own[0], box[0]), min(own[3], box[3]) - max(own[1], box[1])
    if over_x == 0.0 or over_y == 0.0:  # touched only, by a range or a segment
        return 0.0
    return min(1.0, over_x * over_y / smallest)


@kernel
def words_bound(found, lightest):
    """The largest `words` of a row that has weight, where so much is found and no row weighs less than `lightest`."""
    return min(1.0, found / lightest)
