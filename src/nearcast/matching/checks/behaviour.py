"""How a method behaves: batches, threads, files, order, its input, and how hard it works."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from nearcast.arrays.bundle import read_bundle, write_bundle
from nearcast.matching.checks.cases import Message, answers, batch_of, built, empty, expect_equal, insert, rows_of
from nearcast.matching.checks.cases import remove as remove_ids
from nearcast.matching.checks.random_cases import (
    random_messages,
    random_subscriptions,
    tiny_messages,
    tiny_subscriptions,
)
from nearcast.matching.matcher import Matcher
from nearcast.matching.method import find_method

_FORMAT = ("nearcast-check", 1)


def check_a_batch_equals_one_by_one(method: str) -> None:
    matcher = built(method, random_subscriptions(1, 200))
    messages = random_messages(2, 40) + random_messages(3, 20, largest=0.3)
    assert answers(matcher, messages) == [answers(matcher, [message])[0] for message in messages]


def check_one_message_at_a_time_agrees_with_a_batch(method: str) -> None:
    plain, rich = random_subscriptions(21, 200), tiny_subscriptions(22, 60, first_id=10_000)
    messages = random_messages(23, 30) + [m._replace(terms=[*m.terms, 5000]) for m in random_messages(24, 10)]
    for subscriptions in (plain, plain + rich):
        matcher = built(method, subscriptions[:150])
        for more in (subscriptions[150:], []):
            insert(matcher, more)
            wanted = answers(matcher, messages)
            got = [matcher.match_one(np.array(m.terms, np.int32), *m.box[:2]).tolist() for m in messages]
            assert got == wanted, "match_one gives another answer than match"


def check_threads_give_the_same_answer(method: str) -> None:
    matcher = built(method, random_subscriptions(4, 200))
    messages = random_messages(5, 60, largest=0.1)
    alone = answers(matcher, messages)
    for threads in (2, 3, 100):
        assert answers(matcher, messages, threads) == alone, f"{threads} threads give another answer"


def check_answers_are_sorted_and_unique(method: str) -> None:
    matcher = built(method, tiny_subscriptions(6, 150))
    for found in answers(matcher, tiny_messages(7, 40)):
        assert found == sorted(set(found)), f"not sorted or not unique: {found}"


def check_input_is_left_alone(method: str) -> None:
    batch, regions = rows_of(random_subscriptions(8, 100))
    messages = batch_of(random_messages(9, 20))
    before = [array.copy() for array in (*batch, *messages)]
    matcher = empty(method)
    matcher.insert(batch, regions)
    first = answers(matcher, messages)
    for array, copy in zip((*batch, *messages), before, strict=True):
        assert np.array_equal(array, copy), "an input array was changed"
        array[...] = 0  # and none of them may have been kept
    assert answers(matcher, random_messages(9, 20)) == first, "an input array was kept, not copied"


def check_saved_and_opened_is_the_same_and_takes_changes(method: str) -> None:
    subscriptions = random_subscriptions(10, 300) + tiny_subscriptions(11, 40, first_id=10_000)
    matcher = built(method, subscriptions[:250])
    insert(matcher, subscriptions[250:])
    remove_ids(matcher, [s.id for s in subscriptions[:20]])
    messages = random_messages(12, 30, largest=0.1) + tiny_messages(13, 20)
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "saved", _FORMAT, *matcher.state())
        opened = Matcher.restored(*read_bundle(Path(folder) / "saved", _FORMAT))
        assert answers(opened, messages) == answers(matcher, messages), "opened gives another answer than saved"
        insert(opened, subscriptions[:10])
        remove_ids(opened, [s.id for s in subscriptions[30:60]])
        kept = subscriptions[:10] + subscriptions[20:30] + subscriptions[60:]
        expect_equal(opened, built("brute", kept), messages)
        again = Matcher.restored(*read_bundle(Path(folder) / "saved", _FORMAT))
        assert answers(again, messages) == answers(matcher, messages), "a change after opening reached the file"


def check_an_empty_index_can_be_saved_and_filled_later(method: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(folder, _FORMAT, *built(method, []).state())
        opened = Matcher.restored(*read_bundle(folder, _FORMAT))
        insert(opened, random_subscriptions(14, 50))
        expect_equal(opened, built("brute", random_subscriptions(14, 50)), random_messages(15, 20))


def check_stats_count_the_work(method: str) -> None:
    matcher = built(method, random_subscriptions(16, 200))
    found = answers(matcher, random_messages(17, 30))
    stats = matcher.stats
    assert stats.matches == sum(len(ids) for ids in found) > 0, "stats.matches is the number of pairs"
    assert stats.candidates >= stats.matches, "no match without a comparison"
    assert stats.nodes > 0, "no match without a visit"
    answers(matcher, random_messages(17, 30))
    assert matcher.stats.candidates == 2 * stats.candidates, "the same batch again is the same work again"


def check_effort_stays_below_the_ceiling(method: str) -> None:
    """Right answers by too much work are a lost pruning rule."""
    subscriptions = random_subscriptions(18, 2000, vocabulary=400, largest=0.1)
    messages = [Message(m.terms, m.box) for m in random_messages(19, 60, vocabulary=400)]
    matcher = built(method, subscriptions)
    answers(matcher, messages)
    share = matcher.stats.candidates / (len(subscriptions) * len(messages))
    ceiling = find_method(method.split()[0]).effort_ceiling
    assert share <= ceiling, f"compared {share:.1%} of all pairs; the ceiling is {ceiling:.1%}"


def check_bytes_held_are_counted(method: str) -> None:
    small, large = built(method, random_subscriptions(20, 50)), built(method, random_subscriptions(20, 2000))
    assert large.nbytes > 8 * small.nbytes / 10 and large.nbytes > 2000 * 40, "nbytes must follow the number of rows"
