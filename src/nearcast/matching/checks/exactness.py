"""Exactness against brute force on random input."""

from __future__ import annotations

import numpy as np

from nearcast.geo.circle import CircleRegion
from nearcast.matching.checks.cases import Message, Subscription, expect_as_brute
from nearcast.matching.checks.random_cases import (
    random_messages,
    random_subscriptions,
    tiny_messages,
    tiny_subscriptions,
    zipf_terms,
)


def check_random_points_match_as_brute_does(method: str) -> None:
    expect_as_brute(method, random_subscriptions(1, 400), random_messages(2, 60))


def check_random_ranges_match_as_brute_does(method: str) -> None:
    expect_as_brute(method, random_subscriptions(3, 300), random_messages(4, 40, largest=0.5))


def check_tiny_boxes_match_as_brute_does(method: str) -> None:
    subscriptions = random_subscriptions(5, 300, largest=0.001)
    near = [Message(s.terms, (*s.box[:2], *s.box[:2])) for s in subscriptions[:30]]
    expect_as_brute(method, subscriptions, near + random_messages(6, 20, largest=0.2))


def check_giant_boxes_match_as_brute_does(method: str) -> None:
    expect_as_brute(method, random_subscriptions(7, 300, largest=3.0), random_messages(8, 40, largest=0.3))


def check_colliding_input_matches_as_brute_does(method: str) -> None:
    for seed in range(5):
        expect_as_brute(method, tiny_subscriptions(seed, 60), tiny_messages(seed + 100, 40))


def check_few_terms_shared_by_all_match_as_brute_does(method: str) -> None:
    subscriptions = random_subscriptions(9, 300, vocabulary=3)
    expect_as_brute(method, subscriptions, random_messages(10, 40, vocabulary=4, largest=0.1))


def check_exact_shapes_decide_after_the_box(method: str) -> None:
    subscriptions = []
    for s in random_subscriptions(11, 120):
        x, y = s.box[:2]
        circle = CircleRegion(x, y, 0.2, planar=True)
        subscriptions.append(Subscription(s.id, s.terms, (x - 0.2, y - 0.2, x + 0.2, y + 0.2), (), circle))
    messages = random_messages(12, 40) + random_messages(13, 20, largest=0.2)
    expect_as_brute(method, subscriptions, messages)


def check_subscriptions_of_many_rows_are_found_once(method: str) -> None:
    subscriptions = [s._replace(id=s.id // 21) for s in sorted(random_subscriptions(14, 300))]
    expect_as_brute(method, subscriptions, random_messages(15, 40, largest=0.2))


def check_long_subscriptions_match_as_brute_does(method: str) -> None:
    rng = np.random.default_rng(16)
    subscriptions = [s._replace(terms=zipf_terms(rng, 25, 80)) for s in random_subscriptions(17, 100)]
    messages = [m._replace(terms=zipf_terms(rng, 200, 80)) for m in random_messages(18, 30)]
    expect_as_brute(method, subscriptions, messages)
