"""Checks of every kind: exactness against brute force on random input, at first and after updates in any order."""

from __future__ import annotations

import numpy as np

from nearcast.matching.checks.cases import Message, answers, built, expect_as_brute, expect_equal, insert, remove
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


def check_replaced_subscriptions_are_as_new(method: str, kind: Kind) -> None:
    before, after = random_subscriptions(1, 150, kind=kind), random_subscriptions(2, 150, kind=kind)
    live = built(method, before, kind)
    replaced = [new._replace(id=old.id) for old, new in zip(before, after, strict=True)][:100]
    insert(live, replaced)
    assert len(live) == 150
    expect_equal(live, built("brute", replaced + before[100:], kind), random_messages(3, 40, largest=0.1))


def check_remove_is_complete_and_forgiving(method: str, kind: Kind) -> None:
    subscriptions = tiny_subscriptions(1, 80, kind=kind)
    live = built(method, subscriptions, kind)
    remove(live, [3, 3, 5, 999, -7])
    rest = [s for s in subscriptions if s.id not in (3, 5)]
    expect_equal(live, built("brute", rest, kind), tiny_messages(2, 60, kind))
    remove(live, [s.id for s in subscriptions])
    assert not any(answers(live, tiny_messages(2, 60, kind))), "after all are removed nothing is found"
    assert len(live) == 0


def check_removed_and_inserted_again_is_as_new(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(3, 200, kind=kind)
    live = built(method, subscriptions, kind)
    for start in range(0, 200, 50):
        remove(live, [s.id for s in subscriptions[start : start + 50]])
        insert(live, subscriptions[start : start + 50])
    expect_equal(live, built("brute", subscriptions, kind), random_messages(4, 40, largest=0.1))


def check_inserting_one_by_one_equals_building(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(5, 120, kind=kind)
    live = built(method, [], kind)
    for subscription in subscriptions:
        insert(live, [subscription])
    expect_equal(live, built("brute", subscriptions, kind), random_messages(6, 40, largest=0.1))


def check_updates_in_any_order_keep_the_answers_right(method: str, kind: Kind) -> None:
    rng = np.random.default_rng(7)
    live, oracle = built(method, [], kind), built("brute", [], kind)
    for step in range(60):
        if rng.random() < 0.6:
            fresh = tiny_subscriptions(step, int(rng.integers(1, 12)), first_id=int(rng.integers(0, 40)), kind=kind)
            insert(live, fresh)
            insert(oracle, fresh)
        else:
            ids = rng.integers(0, 50, int(rng.integers(1, 15))).tolist()
            remove(live, ids)
            remove(oracle, ids)
        expect_equal(live, oracle, tiny_messages(step + 1000, 8, kind))
    assert len(live) == len(oracle)


def check_a_crowded_term_takes_updates(method: str, kind: Kind) -> None:
    crowd = [s._replace(terms=[0]) for s in random_subscriptions(8, 600, kind=kind)]
    live = built(method, crowd[:300], kind)
    insert(live, crowd[300:])
    remove(live, [s.id for s in crowd[::2]])
    messages = [message._replace(terms=[0]) for message in random_messages(9, 40, largest=0.2)]
    expect_equal(live, built("brute", crowd[1::2], kind), messages)


def check_memory_is_given_back_after_removals(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(11, 3000, kind=kind)
    live = built(method, subscriptions, kind)
    full = live.nbytes
    remove(live, [s.id for s in subscriptions[50:]])
    assert live.nbytes < full / 4, f"50 of 3000 left, yet {live.nbytes} of {full} bytes are held"
    expect_equal(live, built("brute", subscriptions[:50], kind), random_messages(12, 30, largest=0.2))


def check_memory_stays_bounded_under_replacement(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(13, 500, kind=kind)
    live = built(method, subscriptions, kind)
    full = live.nbytes
    for seed in range(8):
        fresh = random_subscriptions(seed, 500, kind=kind)
        insert(live, [new._replace(id=old.id) for new, old in zip(fresh, subscriptions, strict=True)])
    assert live.nbytes < 4 * full + 100_000, f"from {full} to {live.nbytes} bytes by replacing alone"
