"""Checks of kind `rank`: the score formula and its edges, by hand.

Weights, sides, alphas and most thresholds are multiples of small powers of two: sums are exact, and ties are real.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nearcast.matching.checks.cases import (
    EVERYWHERE,
    WEIGHTS,
    Box,
    Message,
    Subscription,
    answers,
    built,
    expect,
    insert,
    point,
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions, zipf_terms
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import RANK

ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
_BOX = (0.25, 0.25, 0.75, 0.75)
_CENTRE, _FAR = point(0.5, 0.5), point(0.9, 0.9)


def ranked(number: int, terms: Sequence[int], box: Box, alpha: float = 0.5, threshold: float = 0.5) -> Subscription:
    """A ranked subscription."""
    return Subscription(number, terms, box, params={"alpha": alpha, "threshold": threshold})


def built_ranked(method: str, subscriptions: Iterable[Subscription], weights: np.ndarray = WEIGHTS) -> SubscriptionSet:
    """A set of these ranked subscriptions."""
    return built(method, subscriptions, RANK, weights)


def _at_threshold(subscription: Subscription, threshold: float) -> Subscription:
    return subscription._replace(params={**subscription.params, "threshold": threshold})


def check_the_same_id_again_replaces(method: str) -> None:
    live = built_ranked(method, [ranked(1, [0], _BOX, 0.5, 1.0), ranked(2, [0], _BOX, 0.5, 1.0)])
    insert(live, [ranked(1, [1], _BOX, 0.25, 0.75)])
    expect(live, Message([1], _FAR), {1: 0.75}, "new terms, alpha and threshold hold")
    expect(live, Message([0], _CENTRE), {2: 1.0}, "the old ones are gone")
    insert(live, [ranked(1, [], (0.0, 0.0, 0.1, 0.1), 1.0, 0.0)])
    expect(live, Message([0], _CENTRE), {1: 0.0, 2: 1.0}, "replaced by one that takes everything")
    assert len(live) == 2


def check_a_score_equal_to_the_threshold_is_delivered(method: str) -> None:
    subscriptions = [_at_threshold(s, 0.0) for s in random_subscriptions(10, 60, kind=RANK)]
    for message in random_messages(11, 8, largest=0.5) + random_messages(12, 4):
        all_scores = dict(answers(built_ranked("brute", subscriptions), [message])[0])
        tied = [_at_threshold(s, all_scores[s.id]) for s in subscriptions]
        above = [_at_threshold(s, min(1.0, float(np.nextafter(all_scores[s.id], 2.0)))) for s in subscriptions]
        expect(built_ranked(method, tied), message, all_scores, "every score is its threshold")
        full = {number: score for number, score in all_scores.items() if score == 1.0}
        expect(built_ranked(method, above), message, full, "every threshold is a hair above, or 1")


def check_scores_are_those_of_the_formula(method: str) -> None:
    rows = [ranked(1, [0, 1], _BOX, 0.5, 0.25), ranked(2, [0, 1], _BOX, 0.25, 0.7), ranked(3, [3], _BOX, 0.75, 0.2)]
    live, quarter = built_ranked(method, rows), (0.5, 0.5, 1.0, 1.0)
    expect(live, Message([1], quarter), {1: 0.5}, "a quarter of the area, three quarters of the weight")
    expect(live, Message([1, 3], _CENTRE), {1: 0.875, 2: 0.8125, 3: 1.0}, "a point inside is full")


def check_a_row_met_in_full_scores_exactly_one(method: str) -> None:
    rng = np.random.default_rng(13)
    rows = [ranked(k, zipf_terms(rng, 9, 60), _BOX, float(rng.random()), 1.0) for k in range(200)]
    expect(built_ranked(method, rows), Message(range(64), EVERYWHERE), {s.id: 1.0 for s in rows}, "threshold 1")


def check_threshold_zero_holds_everywhere(method: str) -> None:
    rows = [ranked(k, [k % 4], _BOX, alpha, 0.0) for k, alpha in enumerate(ALPHAS)]
    for message in (Message([], _FAR), Message([60], point(-50.0, 70.0)), Message([], (0.8, 0.8, 0.9, 0.9))):
        # Term 2 weighs nothing: the row that has no other has all of its words.
        wanted = {s.id: 1.0 - s.params["alpha"] if s.terms == [2] else 0.0 for s in rows}
        expect(built_ranked(method, rows), message, wanted, "threshold 0 is every message")


def check_place_alone_can_be_enough(method: str) -> None:
    rows = [ranked(1, [0, 1], _BOX, 0.5, 0.5), ranked(2, [0, 1], _BOX, 0.5, 0.51), ranked(3, [0], _BOX, 1.0, 1.0)]
    expect(built_ranked(method, rows), Message([], _CENTRE), {1: 0.5, 3: 1.0}, "no shared term, threshold <= alpha")
    expect(built_ranked(method, rows), Message([3, 61], _CENTRE), {1: 0.5, 3: 1.0}, "other terms change nothing")
    expect(built_ranked(method, rows), Message([], (0.25, 0.25, 0.75, 0.5)), {}, "half of the place is not enough")


def check_words_alone_can_be_enough(method: str) -> None:
    rows = [ranked(1, [0, 1], _BOX, 0.5, 0.5), ranked(2, [0, 1], _BOX, 0.5, 0.51), ranked(3, [0], _BOX, 0.0, 1.0)]
    for place in (_FAR, point(-1000.0, 5.0), (0.8, 0.8, 3.0, 3.0)):
        expect(built_ranked(method, rows), Message([0, 1], place), {1: 0.5, 3: 1.0}, "far away, threshold <= 1 - alpha")


def check_points_on_the_border_are_inside(method: str) -> None:
    live = built_ranked(method, [ranked(1, [0], _BOX, 1.0, 1.0)])
    for x, y in ((0.25, 0.25), (0.75, 0.5), (0.5, 0.75), (0.75, 0.25)):
        expect(live, Message([], point(x, y)), {1: 1.0}, "a point on a border or corner is inside")
    for x, y in ((0.25 - 1e-16, 0.5), (0.75 + 2e-16, 0.5), (0.5, 0.75 + 2e-16)):
        expect(live, Message([], point(x, y)), {}, "a hair outside is outside")


def check_ranges_that_only_touch_have_no_share(method: str) -> None:
    rows = [ranked(1, [0], _BOX, 0.5, 0.5), ranked(2, [0], _BOX, 0.5, 0.55)]
    for box in ((0.75, 0.0, 1.0, 1.0), (0.0, 0.0, 0.25, 0.25), (0.5, 0.3, 0.5, 0.6), (0.25, 0.5, 0.75, 0.5)):
        expect(built_ranked(method, rows), Message([0], box), {1: 0.5}, "overlap without area, of a row with area")


def check_rows_without_area_count_in_full_when_touched(method: str) -> None:
    rows = [
        ranked(1, [0], point(0.5, 0.5), 1.0, 1.0),
        ranked(2, [0], (0.25, 0.5, 0.75, 0.5), 1.0, 1.0),
        ranked(3, [0], (0.5, 0.0, 0.5, 1.0), 1.0, 0.01),
    ]
    every = {1: 1.0, 2: 1.0, 3: 1.0}
    for box in (_CENTRE, (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 2.0, 2.0), (0.4, 0.4, 0.6, 0.6)):
        expect(built_ranked(method, rows), Message([], box), every, "touched at the middle")
    expect(built_ranked(method, rows), Message([], point(0.25, 0.5)), {2: 1.0}, "the end of the segment")
    expect(built_ranked(method, rows), Message([], (0.6, 0.6, 1.0, 1.0)), {}, "beside all three")


def check_rows_without_terms_or_weight_have_all_their_words(method: str) -> None:
    rows = [ranked(1, [], _BOX, 0.5, 1.0), ranked(2, [2], _BOX, 0.5, 1.0), ranked(3, [], _BOX, 0.25, 0.75)]
    expect(built_ranked(method, rows), Message([], _CENTRE), {1: 1.0, 2: 1.0, 3: 1.0}, "no term weighs")
    expect(built_ranked(method, rows), Message([5], _FAR), {3: 0.75}, "words alone")
    rows.append(ranked(4, [2, 0], _BOX, 0.0, 0.5))
    expect(built_ranked(method, rows), Message([2], _FAR), {3: 0.75}, "2 weighs 0")


def check_where_all_weights_are_zero_place_decides(method: str) -> None:
    live = built_ranked(method, [ranked(1, [0, 1], _BOX, 0.5, 1.0), ranked(2, [3], _BOX, 0.0, 1.0)], np.zeros(4))
    expect(live, Message([], _CENTRE), {1: 1.0, 2: 1.0}, "inside")
    expect(live, Message([0, 1], _FAR), {2: 1.0}, "outside")


def check_identical_rows_are_all_found(method: str) -> None:
    live = built_ranked(method, [ranked(k, [0, 1], _BOX, 0.5, 0.6) for k in range(700)])
    expect(live, Message([1], _CENTRE), dict.fromkeys(range(700), 0.875), "700 identical subscriptions")
    expect(live, Message([0], (0.25, 0.25, 0.5, 0.5)), {}, "below the threshold of all")


def check_later_terms_weigh_the_largest(method: str) -> None:
    live = built_ranked(method, [ranked(1, [0], _BOX)])
    largest = float(WEIGHTS.max())
    insert(live, [ranked(2, [0, 5000], _BOX, 0.0, 0.5)])
    expect(live, Message([5000], _FAR), {2: largest / (largest + 1.0)}, "a term without a weight")
    unweighed = built_ranked(method, [ranked(1, [4, 9], _BOX, 0.0, 0.5)], np.empty(0))
    expect(unweighed, Message([9], _FAR), {1: 0.5}, "without any weight all weigh the same")
