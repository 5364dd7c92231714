"""`match_one` of `pyramid`, whose kernel reads addresses: they must never be those of arrays that are no more."""

from __future__ import annotations

import numpy as np
import pytest

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.matching.checks.cases import EVERYWHERE, Message, Subscription, answers, built, insert, point, remove
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet

MESSAGES = random_messages(1, 30)
MANY = 500 if JIT_DISABLED else 9_000


def one(matcher: SubscriptionSet, message: Message) -> list[int]:
    return matcher.match_one(np.array(message.terms, np.int32), *message.box[:2]).tolist()  # type: ignore[no-any-return]


def expect_as_a_batch(matcher: SubscriptionSet) -> None:
    assert [one(matcher, message) for message in MESSAGES] == answers(matcher, MESSAGES)


def test_every_state_of_the_runs_and_the_young_part_is_followed() -> None:
    subscriptions = random_subscriptions(2, 900)
    matcher = built("pyramid young=40 crowded=4", [])
    expect_as_a_batch(matcher)
    for start in range(0, 900, 30):  # young, young and runs, runs alone, in turn
        insert(matcher, subscriptions[start : start + 30])
        expect_as_a_batch(matcher)
    for start in range(0, 900, 70):  # dead entries, runs built anew, runs dropped
        remove(matcher, [s.id for s in subscriptions[start : start + 70]])
        expect_as_a_batch(matcher)
    assert len(matcher) == 0


def test_a_row_without_terms_that_came_and_went_leaves_no_old_address() -> None:
    subscriptions = [s._replace(terms=range(i % 20, i % 20 + 4)) for i, s in enumerate(random_subscriptions(3, 200))]
    matcher = built("pyramid", subscriptions)
    remove(matcher, [s.id for s in subscriptions[:100]])
    expect_as_a_batch(matcher)
    insert(matcher, [Subscription(10_000 + i, [], EVERYWHERE, range(23)) for i in range(100)])
    remove(matcher, range(10_000, 10_100))  # so much that the store packs its terms: other offsets, in another array
    expect_as_a_batch(matcher)
    assert len(matcher.store.arrays.terms) == 400


def test_terms_that_only_a_row_without_terms_brought_are_within_the_marks() -> None:
    matcher = built("pyramid", [Subscription(1, [0], EVERYWHERE), Subscription(2, [0], EVERYWHERE)])
    message = Message([0, 5_000_000], point(0.5, 0.5))
    remove(matcher, [2])
    assert one(matcher, message) == [1]
    insert(matcher, [Subscription(2, [], EVERYWHERE, [5_000_000])])
    remove(matcher, [2])
    assert one(matcher, message) == [1]
    assert matcher.store.n_terms == 5_000_001 <= matcher.method._memory._n_terms  # type: ignore[attr-defined]


def test_answers_are_not_overwritten_by_later_ones() -> None:
    matcher = built("pyramid", random_subscriptions(4, 300))
    terms = [np.array(message.terms, np.int32) for message in MESSAGES]
    found = [matcher.match_one(own, *message.box[:2]) for own, message in zip(terms, MESSAGES, strict=True)]
    assert [ids.tolist() for ids in found] == answers(matcher, MESSAGES)


def test_more_matches_than_there_was_room_for_are_all_found_in_order() -> None:
    crowd = [Subscription(7 * i % MANY, [0], (0.2, 0.2, 0.6, 0.6)) for i in range(1, MANY)]
    matcher = built("pyramid", crowd[: MANY // 2])
    insert(matcher, crowd[MANY // 2 :])
    assert one(matcher, Message([0], point(0.5, 0.5))) == sorted(s.id for s in crowd)


@pytest.mark.parametrize("number", [int, float, np.float32, np.float64, np.int64])
def test_a_place_may_be_of_any_type_of_number(number: type) -> None:
    matcher = built("pyramid", [Subscription(1, [0], (0.0, 0.0, 1.0, 1.0)), Subscription(2, [0], (0.5, 0.0, 0.9, 1.0))])
    assert matcher.match_one(np.zeros(1, np.int32), number(1), number(0)).tolist() == [1]


def test_work_is_counted_as_for_a_batch() -> None:
    subscriptions = random_subscriptions(5, 300)
    single, batch = (built("pyramid young=40 crowded=4", subscriptions[:200]) for _ in range(2))
    for matcher in (single, batch):
        insert(matcher, subscriptions[200:230])
    for message in MESSAGES:
        one(single, message)
    answers(batch, MESSAGES)
    assert single.stats == batch.stats and single.stats.matches > 0
