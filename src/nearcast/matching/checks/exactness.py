"""Checks of every kind: exactness against brute force on random input."""

from __future__ import annotations

import numpy as np

from nearcast.matching.checks.cases import Message, expect_as_brute
from nearcast.matching.checks.random_cases import (
    random_messages,
    random_subscriptions,
    tiny_messages,
    tiny_subscriptions,
    zipf_terms,
)
from nearcast.model import Kind


def check_random_points_match_as_brute_does(method: str, kind: Kind) -> None:
    expect_as_brute(method, random_subscriptions(1, 400, kind=kind), random_messages(2, 60), kind)


def check_random_ranges_match_as_brute_does(method: str, kind: Kind) -> None:
    expect_as_brute(method, random_subscriptions(3, 300, kind=kind), random_messages(4, 40, largest=0.5), kind)


def check_tiny_boxes_match_as_brute_does(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(5, 300, largest=0.001, kind=kind)
    near = [Message(s.terms, (*s.box[:2], *s.box[:2])) for s in subscriptions[:30]]
    expect_as_brute(method, subscriptions, near + random_messages(6, 20, largest=0.2), kind)


def check_giant_boxes_match_as_brute_does(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(7, 300, largest=3.0, kind=kind)
    expect_as_brute(method, subscriptions, random_messages(8, 40, largest=0.3), kind)


def check_colliding_input_matches_as_brute_does(method: str, kind: Kind) -> None:
    for seed in range(5):
        expect_as_brute(method, tiny_subscriptions(seed, 80, kind=kind), tiny_messages(seed + 100, 40, kind), kind)


def check_few_terms_shared_by_all_match_as_brute_does(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(9, 300, vocabulary=3, kind=kind)
    expect_as_brute(method, subscriptions, random_messages(10, 40, vocabulary=4, largest=0.1), kind)


def check_long_subscriptions_match_as_brute_does(method: str, kind: Kind) -> None:
    rng = np.random.default_rng(16)
    subscriptions = [s._replace(terms=zipf_terms(rng, 25, 80)) for s in random_subscriptions(17, 120, kind=kind)]
    for n_terms, largest in ((200, 0.0), (40, 0.4)):
        messages = random_messages(18, 30, largest=largest)
        expect_as_brute(method, subscriptions, [m._replace(terms=zipf_terms(rng, n_terms, 80)) for m in messages], kind)
