"""Checks of every kind: insert, remove and replace, in any order."""

from __future__ import annotations

import numpy as np

from nearcast.matching.checks.cases import answers, built, expect_equal, insert, remove
from nearcast.matching.checks.random_cases import (
    random_messages,
    random_subscriptions,
    tiny_messages,
    tiny_subscriptions,
)
from nearcast.model import Kind


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
        insert(
            live,
            [
                s._replace(id=old.id)
                for s, old in zip(random_subscriptions(seed, 500, kind=kind), subscriptions, strict=True)
            ],
        )
    assert live.nbytes < 4 * full + 100_000, f"from {full} to {live.nbytes} bytes by replacing alone"
