"""`match_one` of `ap-tree`, whose kernel reads addresses: they must never be those of arrays that are no more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.matching.checks.cases import EVERYWHERE, Message, Subscription, answers, built, insert, point, remove
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet

MESSAGES = random_messages(1, 30)
MANY = 500 if JIT_DISABLED else 9_000
METHOD = "ap-tree f=3 theta_p=2"


def one(matcher: SubscriptionSet, message: Message) -> list[int]:
    return matcher.match_one(np.array(message.terms, np.int32), *message.box[:2]).tolist()  # type: ignore[no-any-return]


def expect_as_a_batch(matcher: SubscriptionSet) -> None:
    assert [one(matcher, message) for message in MESSAGES] == answers(matcher, MESSAGES)


def test_the_tree_is_followed_through_splits_collapses_and_builds_anew() -> None:
    subscriptions = random_subscriptions(2, 900)
    matcher = built(METHOD, [])
    expect_as_a_batch(matcher)
    for start in range(0, 900, 30):
        insert(matcher, subscriptions[start : start + 30])
        expect_as_a_batch(matcher)
    for start in range(0, 900, 70):
        remove(matcher, [s.id for s in subscriptions[start : start + 70]])
        expect_as_a_batch(matcher)
    assert len(matcher) == 0


def test_terms_packed_by_the_store_leave_no_old_address() -> None:
    subscriptions = [s._replace(terms=range(i % 20, i % 20 + 4)) for i, s in enumerate(random_subscriptions(3, 200))]
    matcher = built(METHOD, subscriptions)
    remove(matcher, [s.id for s in subscriptions[:100]])
    expect_as_a_batch(matcher)
    insert(matcher, [Subscription(10_000 + i, [], EVERYWHERE, range(23)) for i in range(100)])
    remove(matcher, range(10_000, 10_100))  # so much that the store packs its terms: other offsets, in another array
    expect_as_a_batch(matcher)
    assert len(matcher.store.arrays.terms) == 400


def test_terms_that_no_row_of_the_tree_has_are_passed_over() -> None:
    matcher = built(METHOD, [Subscription(1, [0], EVERYWHERE), Subscription(2, [0], EVERYWHERE)])
    message = Message([0, 5_000_000], point(0.5, 0.5))
    remove(matcher, [2])
    assert one(matcher, message) == [1]
    insert(matcher, [Subscription(2, [], EVERYWHERE, [5_000_000])])  # takes the number of the row that went
    remove(matcher, [2])
    assert one(matcher, message) == [1]


def test_answers_of_several_threads_are_their_own_and_stay() -> None:
    matcher = built(METHOD, random_subscriptions(4, 300))
    terms = [np.array(message.terms, np.int32) for message in MESSAGES]
    asked = [(own, *message.box[:2]) for own, message in zip(terms, MESSAGES, strict=True)] * 20
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: matcher.match_one(*each), asked))
    assert [ids.tolist() for ids in found] == answers(matcher, MESSAGES) * 20


def test_a_crowd_of_equal_rows_is_found_in_order() -> None:
    crowd = [Subscription(7 * i % MANY, [0], (0.2, 0.2, 0.6, 0.6)) for i in range(1, MANY)]
    matcher = built(METHOD, crowd[: MANY // 2])
    insert(matcher, crowd[MANY // 2 :])
    assert one(matcher, Message([0], point(0.5, 0.5))) == sorted(s.id for s in crowd)


def test_work_is_counted_as_for_a_batch() -> None:
    single, batch = (built(METHOD, random_subscriptions(5, 300)) for _ in range(2))
    for message in MESSAGES:
        one(single, message)
    answers(batch, MESSAGES)
    assert single.stats == batch.stats and single.stats.matches > 0
