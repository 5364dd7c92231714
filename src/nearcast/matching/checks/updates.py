"""Insert, remove and replace, in any order."""

from __future__ import annotations

import numpy as np

from nearcast.matching.checks.cases import (
    EVERYWHERE,
    Message,
    Subscription,
    answers,
    built,
    expect,
    expect_equal,
    insert,
    point,
)
from nearcast.matching.checks.cases import remove as remove_ids
from nearcast.matching.checks.random_cases import (
    random_messages,
    random_subscriptions,
    tiny_messages,
    tiny_subscriptions,
)

_CENTRE = point(0.5, 0.5)
_BOX = (0.25, 0.25, 0.75, 0.75)


def check_the_same_id_again_replaces(method: str) -> None:
    matcher = built(method, [Subscription(1, [0], _BOX), Subscription(2, [0], _BOX)])
    insert(matcher, [Subscription(1, [3], (0.0, 0.0, 0.1, 0.1))])
    expect(matcher, Message([0, 3], _CENTRE), [2], "the old terms and box are gone")
    expect(matcher, Message([0, 3], point(0.05, 0.05)), [1], "the new terms and box hold")
    insert(matcher, [Subscription(1, [], EVERYWHERE)])
    expect(matcher, Message([], _CENTRE), [1], "replaced by one without tokens")
    insert(matcher, [Subscription(1, [0], _BOX)])
    expect(matcher, Message([], _CENTRE), [], "and back")
    assert len(matcher) == 2


def check_remove_is_complete_and_forgiving(method: str) -> None:
    subscriptions = tiny_subscriptions(1, 80)
    matcher = built(method, subscriptions)
    remove_ids(matcher, [3, 3, 5, 999, -7])
    rest = [s for s in subscriptions if s.id not in (3, 5)]
    expect_equal(matcher, built("brute", rest), tiny_messages(2, 60))
    remove_ids(matcher, [s.id for s in subscriptions])
    assert not any(answers(matcher, tiny_messages(2, 60))), "after all are removed nothing is found"
    assert len(matcher) == 0


def check_removing_many_rows_of_one_subscription_removes_them_all(method: str) -> None:
    shared = [Subscription(1, [t], _BOX) for t in range(5)]
    matcher = built(method, [*shared, Subscription(2, [0], _BOX)])
    remove_ids(matcher, [1])
    expect(matcher, Message([0, 1, 2, 3, 4], _CENTRE), [2], "all five rows of 1 are gone")


def check_removed_and_inserted_again_is_as_new(method: str) -> None:
    subscriptions = random_subscriptions(3, 200)
    matcher = built(method, subscriptions)
    for start in range(0, 200, 50):
        remove_ids(matcher, [s.id for s in subscriptions[start : start + 50]])
        insert(matcher, subscriptions[start : start + 50])
    expect_equal(matcher, built("brute", subscriptions), random_messages(4, 40, largest=0.1))


def check_inserting_one_by_one_equals_building(method: str) -> None:
    subscriptions = random_subscriptions(5, 120)
    matcher = built(method, [])
    for subscription in subscriptions:
        insert(matcher, [subscription])
    expect_equal(matcher, built("brute", subscriptions), random_messages(6, 40, largest=0.1))


def check_updates_in_any_order_keep_the_answers_right(method: str) -> None:
    rng = np.random.default_rng(7)
    matcher, oracle = built(method, []), built("brute", [])
    for step in range(60):
        if rng.random() < 0.6:
            fresh = tiny_subscriptions(step, int(rng.integers(1, 12)), first_id=int(rng.integers(0, 40)))
            insert(matcher, fresh)
            insert(oracle, fresh)
        else:
            ids = rng.integers(0, 50, int(rng.integers(1, 15))).tolist()
            remove_ids(matcher, ids)
            remove_ids(oracle, ids)
        expect_equal(matcher, oracle, tiny_messages(step + 1000, 8))
    assert len(matcher) == len(oracle)


def check_a_crowded_term_takes_updates(method: str) -> None:
    crowd = [s._replace(terms=[0]) for s in random_subscriptions(8, 600)]
    matcher = built(method, crowd[:300])
    insert(matcher, crowd[300:])
    remove_ids(matcher, [s.id for s in crowd[::2]])
    messages = [message._replace(terms=[0]) for message in random_messages(9, 40, largest=0.2)]
    expect_equal(matcher, built("brute", crowd[1::2]), messages)


def check_new_terms_may_arrive_later(method: str) -> None:
    matcher = built(method, random_subscriptions(10, 100, vocabulary=10))
    insert(matcher, [Subscription(5000, [77], _BOX), Subscription(5001, [3, 900], _BOX)])
    expect(matcher, Message([77, 900], _CENTRE), [5000], "a term that the build did not know")


def check_memory_is_given_back_after_removals(method: str) -> None:
    subscriptions = random_subscriptions(11, 3000)
    matcher = built(method, subscriptions)
    full = matcher.nbytes
    remove_ids(matcher, [s.id for s in subscriptions[50:]])
    assert matcher.nbytes < full / 4, f"50 of 3000 left, yet {matcher.nbytes} of {full} bytes are held"
    expect_equal(matcher, built("brute", subscriptions[:50]), random_messages(12, 30, largest=0.2))


def check_memory_stays_bounded_under_replacement(method: str) -> None:
    subscriptions = random_subscriptions(13, 500)
    matcher = built(method, subscriptions)
    full = matcher.nbytes
    for seed in range(8):
        insert(
            matcher,
            [s._replace(id=old.id) for s, old in zip(random_subscriptions(seed, 500), subscriptions, strict=True)],
        )
    assert matcher.nbytes < 4 * full + 100_000, f"from {full} to {matcher.nbytes} bytes by replacing alone"
