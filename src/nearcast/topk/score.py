"""The score of a message for a subscription of kind `top`: this formula, and no other.

    score = alpha * place + (1 - alpha) * words,    only where the two share a term

`place` = max(0, 1 - distance / max_dist): Euclidean distance in a plane, great-circle kilometres in lon/lat.
`words` = the cosine of the two vectors of tf * weight; tf of a subscription's term is 1.

A message carries, for each of its terms, the value tf * weight^2 / norm of the message. The cosine is then the sum of
the values of the shared terms, divided by the norm of the subscription. The sum always runs over ascending terms, from
either side, so that all methods give the same score bit for bit. Weights are scaled so that the largest is 1: a cosine
does not change, and no square is infinite.

Messages are ordered by (score, arrival), best first: of two equal scores the newer message is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.geo.distance import great_circle_km
from nearcast.geo.space import Space

ABSENT = -1.0
"""The value of a term that a message does not have, and the score where no term is shared."""

SLACK = 1e-9
"""What to add to a bound on a score before it is compared with a score. Scores are at most 1, and a sum of 65,535
values has an error below 2e-11.
"""

LONGEST_KM = 20_015.0
"""Half of the Earth's circumference: the default of `max_dist` in lon/lat."""

X, Y, ALPHA, NORM, THETA = range(5)
"""The columns of `RowArrays.numbers`."""


class Metric(NamedTuple):
    """How distance becomes `place`."""

    planar: bool
    max_dist: float


def metric_of(space: Space, max_dist: float | None) -> Metric:
    """The metric of a space; `max_dist` overrides the diagonal of the plane, or LONGEST_KM."""
    xmin, ymin, xmax, ymax = space.bounds
    longest = math.hypot(xmax - xmin, ymax - ymin) if space.planar else LONGEST_KM
    return Metric(space.planar, longest if max_dist is None else float(max_dist))


@inline_kernel
def distance_between(metric, x1, y1, x2, y2):
    """The distance from a subscription's place (first) to a message's place."""
    if metric.planar:
        return math.hypot(x1 - x2, y1 - y2)
    return great_circle_km(x1, y1, x2, y2)


@inline_kernel
def cosine(total, norm):
    """`words` from the sum of the shared terms' values and the norm of the subscription."""
    return min(1.0, total / norm) if norm > 0.0 else 0.0


@lean_kernel
def combined(numbers, row, metric, total, x, y):
    """The score of a row on a message at (x, y) whose shared terms have these values in total."""
    distance = distance_between(metric, numbers[row, X], numbers[row, Y], x, y)
    place = max(0.0, 1.0 - distance / metric.max_dist)
    alpha = numbers[row, ALPHA]
    return alpha * place + (1.0 - alpha) * cosine(total, numbers[row, NORM])


@lean_kernel
def shared_value(rows, row, values):
    """The sum of the values of the row's terms, or ABSENT if the message has none of them.

    `values` (float64, by term) has the values of one message, and ABSENT elsewhere.
    """
    total = ABSENT
    first = rows.offsets[row]
    for k in range(first, first + rows.n_terms[row]):
        value = values[rows.terms[k]]
        if value >= 0.0:
            total = value if total < 0.0 else total + value
    return total


@lean_kernel
def score_row(rows, row, metric, values, x, y):
    """The exact score of a row on the message whose values are set, or ABSENT."""
    total = shared_value(rows, row, values)
    return combined(rows.numbers, row, metric, total, x, y) if total >= 0.0 else ABSENT


@lean_kernel
def score_message(ring, arrival, rows, row, metric, marks):
    """The exact score of the row whose terms are marked (uint8, by term) on a message of the window, or ABSENT."""
    at = arrival & (len(ring.ids) - 1)
    mask = len(ring.terms) - 1
    total = ABSENT
    for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
        if marks[ring.terms[k & mask]] != 0:
            value = ring.values[k & mask]
            total = value if total < 0.0 else total + value
    if total < 0.0:
        return ABSENT
    return combined(rows.numbers, row, metric, total, ring.places[at, 0], ring.places[at, 1])


@lean_kernel
def set_values(ring, arrival, out_values):
    """Set the values of one message by term."""
    at, mask = arrival & (len(ring.ids) - 1), len(ring.terms) - 1
    for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
        out_values[ring.terms[k & mask]] = ring.values[k & mask]


@lean_kernel
def clear_values(ring, arrival, out_values):
    """Undo `set_values`."""
    at, mask = arrival & (len(ring.ids) - 1), len(ring.terms) - 1
    for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
        out_values[ring.terms[k & mask]] = ABSENT


@kernel
def mark_row(rows, row, value, out_marks):
    """Set out_marks[term] for each term of a row: 1 before its messages are scored, 0 after."""
    first = rows.offsets[row]
    for k in range(first, first + rows.n_terms[row]):
        out_marks[rows.terms[k]] = value


@inline_kernel
def is_better(score, arrival, other_score, other_arrival):
    """Whether the first of two messages comes before the second: the higher score, or the newer of equal scores."""
    return score > other_score or (score == other_score and arrival > other_arrival)
