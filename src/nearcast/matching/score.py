"""The score of a ranked row on a message: these formulas, and no others.

    score = alpha * place + (1 - alpha) * words,    delivered where score >= threshold

`place`, between 0 and 1:
* a point message (its box has size 0 in both axes): 1 inside the row's closed box, else 0;
* a row without area (its box has size 0 in one axis or both): 1 where the boxes overlap or touch, else 0;
* else area of the overlap / area of the row. A range that only touches a row with area, and a message that is a segment
  (size 0 in one axis), overlap it in no area: 0. Only points are taken to have a place without an extent.

`words`, between 0 and 1: weight of the row's terms that occur / weight of all its terms; 1 where that is 0 (no terms,
or none that weighs).

Weights are summed in the order in which the row's terms lie, always: whoever takes the score from here gives it bit for
bit as others do. Rounding keeps the order of numbers, so place <= 1, words <= 1, and a row that is met in full scores
exactly 1, whatever alpha is. A bound made of other sums may lie a few units of the last place too low: give it SLACK,
and let the exact score decide.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel

SLACK = 1e-9
"""What to add to a bound on a score before it is compared with a threshold. Scores are at most 1; the rounding of a sum
of 65,535 weights is below 2e-11.
"""

_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@kernel
def place_share(own, box):
    """`place` of a row's box `own` (float64[4]) under a message's box."""
    if own[0] > box[2] or own[2] < box[0] or own[1] > box[3] or own[3] < box[1]:
        return 0.0
    if own[0] == own[2] or own[1] == own[3] or (box[0] == box[2] and box[1] == box[3]):
        return 1.0
    width, height = own[2] - own[0], own[3] - own[1]
    over_x, over_y = min(own[2], box[2]) - max(own[0], box[0]), min(own[3], box[3]) - max(own[1], box[1])
    area = width * height
    if _SMALLEST_NORMAL <= area < np.inf:
        return over_x * over_y / area
    return _side_share(own[0], own[2], box[0], box[2]) * _side_share(own[1], own[3], box[1], box[3])


@kernel
def _side_share(low, high, other_low, other_high):
    """The overlapped share of one side, for boxes whose area is past the floats. Half of a side is never infinite."""
    own = 0.5 * high - 0.5 * low
    if own == 0.0:  # the side is the smallest float there is, and cannot be halved
        return (min(high, other_high) - max(low, other_low)) / (high - low)
    return (0.5 * min(high, other_high) - 0.5 * max(low, other_low)) / own


@kernel
def weight_of(rows, row, weights):
    """The weight of all terms of a row."""
    total = 0.0
    first = rows.offsets[row]
    for k in range(first, first + rows.n_terms[row]):
        total += weights[rows.terms[k]]
    return total


@kernel
def weight_found(rows, row, marks, weights):
    """The weight of the row's terms that are marked."""
    total = 0.0
    first = rows.offsets[row]
    for k in range(first, first + rows.n_terms[row]):
        term = rows.terms[k]
        if marks[term] != 0:
            total += weights[term]
    return total


@kernel
def word_share(found, own):
    """`words` from the weight found and the row's own."""
    return found / own if own > 0.0 else 1.0


@kernel
def combined(alpha, place, words):
    """The score from its two parts."""
    return alpha * place + (1.0 - alpha) * words


@inline_kernel
def score_of(rows, rank_params, row, marks, box):
    """The exact score of a row on the message whose terms are marked. `rank_params` are the arrays of RankParams.

    Pasted into its callers: 12 ns a row of five terms, where handing over ten arrays at each call made it 48.
    """
    place = place_share(rows.boxes[row], box)
    words = word_share(weight_found(rows, row, marks, rank_params.weights), rank_params.own_weights[row])
    return combined(rank_params.alphas[row], place, words)
