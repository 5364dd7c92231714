"""Checks of every kind: batches, threads, files, order, expiry, input arrays, and the work that a method does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from nearcast.arrays.bundle import read_bundle, write_bundle
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    WEIGHTS,
    Message,
    answers,
    batch_of,
    built,
    empty,
    expect_equal,
    insert,
    point,
    remove,
    rows_of,
)
from nearcast.matching.checks.random_cases import (
    random_messages,
    random_subscriptions,
    selective_subscriptions,
    tiny_messages,
    tiny_subscriptions,
)
from nearcast.matching.method import find_method
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import Kind

_FORMAT = ("nearcast-check", 1)


def check_an_empty_index_matches_nothing(method: str, kind: Kind) -> None:
    live = built(method, [], kind)
    assert answers(live, [Message([1, 2], point(0.5, 0.5)), Message([], EVERYWHERE)]) == [[], []]
    assert len(live) == 0


def check_an_empty_batch_gives_an_empty_answer(method: str, kind: Kind) -> None:
    assert answers(built(method, random_subscriptions(4, 20, kind=kind), kind), []) == []


def check_subscriptions_expire(method: str, kind: Kind) -> None:
    """A subscription is over at the moment of its expiry; a message without a time meets none that is over."""
    subscriptions = [s._replace(expires=1000) for s in random_subscriptions(25, 120, kind=kind)]
    endless = [s._replace(id=s.id + 5000) for s in random_subscriptions(26, 60, kind=kind)]
    live, messages = built(method, subscriptions + endless, kind), random_messages(27, 30, largest=0.2)
    both, rest = built("brute", subscriptions + endless, kind), built("brute", endless, kind)
    assert answers(live, [m._replace(time=999) for m in messages]) == answers(both, messages), "before the expiry"
    assert answers(live, messages) == answers(both, messages), "messages without a time"
    assert answers(live, [m._replace(time=1000) for m in messages]) == answers(rest, messages), "from the expiry on"


def check_a_batch_equals_one_by_one(method: str, kind: Kind) -> None:
    live = built(method, random_subscriptions(1, 200, kind=kind), kind)
    messages = random_messages(2, 40) + random_messages(3, 20, largest=0.3)
    assert answers(live, messages) == [answers(live, [message])[0] for message in messages]


def check_one_message_at_a_time_agrees_with_a_batch(method: str, kind: Kind) -> None:
    plain, rich = random_subscriptions(21, 200, kind=kind), tiny_subscriptions(22, 60, first_id=10_000, kind=kind)
    messages = random_messages(23, 30) + [m._replace(terms=[*m.terms, 5000]) for m in random_messages(24, 10)]
    for subscriptions in (plain, plain + rich):
        live = built(method, subscriptions[:150], kind)
        for more in (subscriptions[150:], []):
            insert(live, more)
            wanted = answers(live, messages)
            got = [live.match_one(np.array(m.terms, np.int32), *m.box[:2]).tolist() for m in messages]
            ids = [[pair[0] for pair in pairs] for pairs in wanted] if kind.is_scored else wanted
            assert got == ids, "match_one gives another answer than match"


def check_threads_give_the_same_answer(method: str, kind: Kind) -> None:
    live = built(method, random_subscriptions(4, 200, kind=kind), kind)
    messages = random_messages(5, 60, largest=0.1)
    alone = answers(live, messages)
    for threads in (2, 3, 100):
        assert answers(live, messages, threads) == alone, f"{threads} threads give another answer"


def check_answers_are_sorted_and_unique(method: str, kind: Kind) -> None:
    live = built(method, tiny_subscriptions(6, 150, kind=kind), kind)
    for found in answers(live, tiny_messages(7, 40, kind)):
        ids = [pair[0] for pair in found] if kind.is_scored else found
        assert ids == sorted(set(ids)), f"not sorted or not unique: {ids}"


def check_input_is_left_alone(method: str, kind: Kind) -> None:
    batch, shapes = rows_of(random_subscriptions(8, 100, kind=kind))
    messages, weights = batch_of(random_messages(9, 20)), WEIGHTS.copy()
    arrays = (*batch[:-1], *batch.params.values(), weights, *messages)
    before = [array.copy() for array in arrays]
    live = empty(method, kind, weights)
    live.insert(batch, shapes)
    first = answers(live, messages)
    for array, copy in zip(arrays, before, strict=True):
        assert np.array_equal(array, copy), "an input array was changed"
        array[...] = 0  # and none of them may have been kept
    assert answers(live, random_messages(9, 20)) == first, "an input array was kept, not copied"


def check_saved_and_opened_is_the_same_and_takes_changes(method: str, kind: Kind) -> None:
    subscriptions = random_subscriptions(10, 300, kind=kind) + tiny_subscriptions(11, 40, first_id=10_000, kind=kind)
    live = built(method, subscriptions[:250], kind)
    insert(live, subscriptions[250:])
    remove(live, [s.id for s in subscriptions[:20]])
    messages = random_messages(12, 30, largest=0.1) + tiny_messages(13, 20, kind)
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "saved", _FORMAT, *live.state())
        opened = SubscriptionSet.restored(*read_bundle(Path(folder) / "saved", _FORMAT), kind)
        assert answers(opened, messages) == answers(live, messages), "opened gives another answer than saved"
        insert(opened, subscriptions[:10])
        remove(opened, [s.id for s in subscriptions[30:60]])
        kept = subscriptions[:10] + subscriptions[20:30] + subscriptions[60:]
        expect_equal(opened, built("brute", kept, kind), messages)
        again = SubscriptionSet.restored(*read_bundle(Path(folder) / "saved", _FORMAT), kind)
        assert answers(again, messages) == answers(live, messages), "a change after opening reached the file"


def check_an_empty_index_can_be_saved_and_filled_later(method: str, kind: Kind) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(folder, _FORMAT, *built(method, [], kind).state())
        opened = SubscriptionSet.restored(*read_bundle(folder, _FORMAT), kind)
        assert answers(opened, random_messages(15, 3)) == [[], [], []]
        insert(opened, random_subscriptions(14, 50, kind=kind))
        expect_equal(opened, built("brute", random_subscriptions(14, 50, kind=kind), kind), random_messages(15, 20))


def check_stats_count_the_work(method: str, kind: Kind) -> None:
    live = built(method, random_subscriptions(16, 200, kind=kind), kind)
    found = answers(live, random_messages(17, 30))
    stats = live.stats
    assert stats.matches == sum(len(ids) for ids in found) > 0, "stats.matches is the number of pairs"
    assert stats.candidates >= stats.matches, "no match without a comparison"
    assert stats.nodes > 0, "no match without a visit"
    answers(live, random_messages(17, 30))
    assert live.stats.candidates == 2 * stats.candidates, "the same batch again is the same work again"


def check_effort_stays_below_the_ceiling(method: str, kind: Kind) -> None:
    """Right answers by too much work are a lost pruning rule."""
    subscriptions = selective_subscriptions(18, 2000, kind)
    messages = random_messages(19, 60, vocabulary=400)
    live = built(method, subscriptions, kind)
    answers(live, messages)
    share = live.stats.candidates / (len(subscriptions) * len(messages))
    ceiling = find_method(kind.name, method.split()[0]).effort_ceiling
    assert share <= ceiling, f"compared {share:.1%} of all pairs; the ceiling is {ceiling:.1%}"


def check_bytes_are_counted(method: str, kind: Kind) -> None:
    small, large = (built(method, random_subscriptions(20, n, kind=kind), kind) for n in (50, 2000))
    assert large.nbytes > 8 * small.nbytes / 10 and large.nbytes > 2000 * 40, "nbytes must follow the number of rows"
