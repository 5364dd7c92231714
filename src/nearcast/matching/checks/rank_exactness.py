"""Kind `rank`: exactness against brute force, and the named edges by hand."""

from __future__ import annotations

import numpy as np

from nearcast.matching.checks.cases import EVERYWHERE, Message, point
from nearcast.matching.checks.random_cases import random_messages, zipf_terms
from nearcast.matching.checks.rank_cases import (
    ALPHAS,
    WEIGHTS,
    Ranked,
    expect,
    expect_as_brute,
    insert,
    random_ranked,
    ranked,
    scores,
    tiny_places,
    tiny_ranked,
)

_BOX = (0.25, 0.25, 0.75, 0.75)
_CENTRE, _FAR = point(0.5, 0.5), point(0.9, 0.9)


def check_ranked_random_points_score_as_brute_does(method: str) -> None:
    expect_as_brute(method, random_ranked(1, 400), random_messages(2, 50))


def check_ranked_random_ranges_score_as_brute_does(method: str) -> None:
    expect_as_brute(method, random_ranked(3, 300), random_messages(4, 40, largest=0.6))


def check_ranked_tiny_and_giant_boxes_score_as_brute_does(method: str) -> None:
    for seed, largest in ((5, 0.001), (6, 3.0)):
        subscriptions = random_ranked(seed, 250, largest=largest)
        near = [Message(s.terms, point(*s.box[:2])) for s in subscriptions[:20]]
        expect_as_brute(method, subscriptions, near + random_messages(seed + 10, 20, largest=0.3))


def check_ranked_colliding_input_scores_as_brute_does(method: str) -> None:
    for seed in range(5):
        expect_as_brute(method, tiny_ranked(seed, 80), tiny_places(seed + 100, 40))


def check_ranked_long_rows_score_as_brute_does(method: str) -> None:
    rng = np.random.default_rng(7)
    subscriptions = [s._replace(terms=zipf_terms(rng, 30, 64)) for s in random_ranked(8, 120)]
    messages = [m._replace(terms=zipf_terms(rng, 40, 64)) for m in random_messages(9, 30, largest=0.4)]
    expect_as_brute(method, subscriptions, messages)


def check_ranked_a_score_equal_to_the_threshold_is_delivered(method: str) -> None:
    subscriptions = [s._replace(threshold=0.0) for s in random_ranked(10, 60)]
    for message in random_messages(11, 8, largest=0.5) + random_messages(12, 4):
        all_scores = dict(scores(ranked("brute", subscriptions), [message])[0])
        tied = [s._replace(threshold=all_scores[s.id]) for s in subscriptions]
        above = [s._replace(threshold=min(1.0, float(np.nextafter(all_scores[s.id], 2.0)))) for s in subscriptions]
        expect(ranked(method, tied), message, all_scores, "every score is its threshold")
        full = {number: score for number, score in all_scores.items() if score == 1.0}
        expect(ranked(method, above), message, full, "every threshold is a hair above, or 1")


def check_ranked_scores_are_those_of_the_formula(method: str) -> None:
    asked = [Ranked(1, [0, 1], _BOX, 0.5, 0.25), Ranked(2, [0, 1], _BOX, 0.25, 0.7), Ranked(3, [3], _BOX, 0.75, 0.2)]
    quarter = (0.5, 0.5, 1.0, 1.0)
    expect(
        ranked(method, asked), Message([1], quarter), {1: 0.5}, "a quarter of the area, three quarters of the weight"
    )
    expect(ranked(method, asked), Message([1, 3], _CENTRE), {1: 0.875, 2: 0.8125, 3: 1.0}, "a point inside is full")


def check_ranked_all_that_was_asked_scores_exactly_one(method: str) -> None:
    rng = np.random.default_rng(13)
    asked = [Ranked(k, zipf_terms(rng, 9, 60), _BOX, float(rng.random()), 1.0) for k in range(200)]
    expect(ranked(method, asked), Message(range(64), EVERYWHERE), {s.id: 1.0 for s in asked}, "threshold 1")


def check_ranked_threshold_zero_holds_everywhere(method: str) -> None:
    asked = [Ranked(k, [k % 4], _BOX, alpha, 0.0) for k, alpha in enumerate(ALPHAS)]
    for message in (Message([], _FAR), Message([60], point(-50.0, 70.0)), Message([], (0.8, 0.8, 0.9, 0.9))):
        # Term 2 weighs nothing: the row that has no other has all of its words.
        wanted = {s.id: 1.0 - s.alpha if s.terms == [2] else 0.0 for s in asked}
        expect(ranked(method, asked), message, wanted, "threshold 0 is every message")


def check_ranked_place_alone_can_be_enough(method: str) -> None:
    asked = [Ranked(1, [0, 1], _BOX, 0.5, 0.5), Ranked(2, [0, 1], _BOX, 0.5, 0.51), Ranked(3, [0], _BOX, 1.0, 1.0)]
    expect(ranked(method, asked), Message([], _CENTRE), {1: 0.5, 3: 1.0}, "no shared term, threshold <= alpha")
    expect(ranked(method, asked), Message([3, 61], _CENTRE), {1: 0.5, 3: 1.0}, "other terms change nothing")
    expect(ranked(method, asked), Message([], (0.25, 0.25, 0.75, 0.5)), {}, "half of the place is not enough")


def check_ranked_words_alone_can_be_enough(method: str) -> None:
    asked = [Ranked(1, [0, 1], _BOX, 0.5, 0.5), Ranked(2, [0, 1], _BOX, 0.5, 0.51), Ranked(3, [0], _BOX, 0.0, 1.0)]
    for place in (_FAR, point(-1000.0, 5.0), (0.8, 0.8, 3.0, 3.0)):
        expect(ranked(method, asked), Message([0, 1], place), {1: 0.5, 3: 1.0}, "far away, threshold <= 1 - alpha")


def check_ranked_points_on_the_border_are_inside(method: str) -> None:
    ranker = ranked(method, [Ranked(1, [0], _BOX, 1.0, 1.0)])
    for x, y in ((0.25, 0.25), (0.75, 0.5), (0.5, 0.75), (0.75, 0.25)):
        expect(ranker, Message([], point(x, y)), {1: 1.0}, "a point on a border or corner is inside")
    for x, y in ((0.25 - 1e-16, 0.5), (0.75 + 2e-16, 0.5), (0.5, 0.75 + 2e-16)):
        expect(ranker, Message([], point(x, y)), {}, "a hair outside is outside")


def check_ranked_ranges_that_only_touch_have_no_share(method: str) -> None:
    asked = [Ranked(1, [0], _BOX, 0.5, 0.5), Ranked(2, [0], _BOX, 0.5, 0.55)]
    for box in ((0.75, 0.0, 1.0, 1.0), (0.0, 0.0, 0.25, 0.25), (0.5, 0.3, 0.5, 0.6), (0.25, 0.5, 0.75, 0.5)):
        expect(ranked(method, asked), Message([0], box), {1: 0.5}, "overlap without area, of a row with area")


def check_ranked_rows_without_area_count_in_full_when_touched(method: str) -> None:
    asked = [
        Ranked(1, [0], point(0.5, 0.5), 1.0, 1.0),
        Ranked(2, [0], (0.25, 0.5, 0.75, 0.5), 1.0, 1.0),
        Ranked(3, [0], (0.5, 0.0, 0.5, 1.0), 1.0, 0.01),
    ]
    every = {1: 1.0, 2: 1.0, 3: 1.0}
    for box in (_CENTRE, (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 2.0, 2.0), (0.4, 0.4, 0.6, 0.6)):
        expect(ranked(method, asked), Message([], box), every, "touched at the middle")
    expect(ranked(method, asked), Message([], point(0.25, 0.5)), {2: 1.0}, "the end of the segment")
    expect(ranked(method, asked), Message([], (0.6, 0.6, 1.0, 1.0)), {}, "beside all three")


def check_ranked_rows_without_terms_or_weight_have_all_their_words(method: str) -> None:
    asked = [Ranked(1, [], _BOX, 0.5, 1.0), Ranked(2, [2], _BOX, 0.5, 1.0), Ranked(3, [], _BOX, 0.25, 0.75)]
    expect(ranked(method, asked), Message([], _CENTRE), {1: 1.0, 2: 1.0, 3: 1.0}, "no term weighs")
    expect(ranked(method, asked), Message([5], _FAR), {3: 0.75}, "words alone")
    expect(ranked(method, [*asked, Ranked(4, [2, 0], _BOX, 0.0, 0.5)]), Message([2], _FAR), {3: 0.75}, "2 weighs 0")


def check_ranked_where_all_weights_are_zero_place_decides(method: str) -> None:
    ranker = ranked(method, [Ranked(1, [0, 1], _BOX, 0.5, 1.0), Ranked(2, [3], _BOX, 0.0, 1.0)], np.zeros(4))
    expect(ranker, Message([], _CENTRE), {1: 1.0, 2: 1.0}, "inside")
    expect(ranker, Message([0, 1], _FAR), {2: 1.0}, "outside")


def check_ranked_identical_rows_are_all_found(method: str) -> None:
    ranker = ranked(method, [Ranked(k, [0, 1], _BOX, 0.5, 0.6) for k in range(700)])
    expect(ranker, Message([1], _CENTRE), dict.fromkeys(range(700), 0.875), "700 identical subscriptions")
    expect(ranker, Message([0], (0.25, 0.25, 0.5, 0.5)), {}, "below the threshold of all")


def check_ranked_later_terms_weigh_the_largest(method: str) -> None:
    ranker = ranked(method, [Ranked(1, [0], _BOX)])
    largest = float(WEIGHTS.max())
    insert(ranker, [Ranked(2, [0, 5000], _BOX, 0.0, 0.5)])
    expect(ranker, Message([5000], _FAR), {2: largest / (largest + 1.0)}, "a term without a weight")
    unweighed = ranked(method, [Ranked(1, [4, 9], _BOX, 0.0, 0.5)], np.empty(0))
    expect(unweighed, Message([9], _FAR), {1: 0.5}, "without any weight all weigh the same")
