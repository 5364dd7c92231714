"""Kind `rank`: changes in any order, batches, threads, expiry, files, input, and how hard a method works."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from nearcast.arrays.bundle import read_bundle, write_bundle
from nearcast.matching.checks.cases import Message, batch_of, point
from nearcast.matching.checks.random_cases import random_messages
from nearcast.matching.checks.rank_cases import (
    WEIGHTS,
    Ranked,
    expect,
    expect_equal,
    insert,
    random_ranked,
    ranked,
    ranks_of,
    remove,
    scores,
    tiny_places,
    tiny_ranked,
)
from nearcast.matching.rank_method import RANK_REGISTRY
from nearcast.matching.ranker import Ranker
from nearcast.model import NO_TIME

_FORMAT = ("nearcast-check", 1)
_BOX = (0.25, 0.25, 0.75, 0.75)
_CENTRE, _FAR = point(0.5, 0.5), point(0.9, 0.9)


def check_ranked_the_same_id_again_replaces(method: str) -> None:
    ranker = ranked(method, [Ranked(1, [0], _BOX, 0.5, 1.0), Ranked(2, [0], _BOX, 0.5, 1.0)])
    insert(ranker, [Ranked(1, [1], _BOX, 0.25, 0.75)])
    expect(ranker, Message([1], _FAR), {1: 0.75}, "new terms, alpha and threshold hold")
    expect(ranker, Message([0], _CENTRE), {2: 1.0}, "the old ones are gone")
    insert(ranker, [Ranked(1, [], (0.0, 0.0, 0.1, 0.1), 1.0, 0.0)])
    expect(ranker, Message([0], _CENTRE), {1: 0.0, 2: 1.0}, "replaced by one that takes everything")
    assert len(ranker) == 2


def check_ranked_remove_is_complete_and_forgiving(method: str) -> None:
    subscriptions = tiny_ranked(1, 80)
    ranker = ranked(method, subscriptions)
    remove(ranker, [3, 3, 5, 999, -7])
    expect_equal(ranker, ranked("brute", [s for s in subscriptions if s.id not in (3, 5)]), tiny_places(2, 60))
    remove(ranker, [s.id for s in subscriptions])
    assert not any(scores(ranker, tiny_places(2, 60))), "after all are removed nothing is found"
    assert len(ranker) == 0


def check_ranked_inserting_one_by_one_equals_building(method: str) -> None:
    subscriptions = random_ranked(3, 120)
    ranker = ranked(method, [])
    for subscription in subscriptions:
        insert(ranker, [subscription])
    expect_equal(ranker, ranked("brute", subscriptions), random_messages(4, 40, largest=0.3))


def check_ranked_updates_in_any_order_keep_the_answers_right(method: str) -> None:
    rng = np.random.default_rng(5)
    ranker, oracle = ranked(method, []), ranked("brute", [])
    for step in range(60):
        if rng.random() < 0.6:
            fresh = tiny_ranked(step, int(rng.integers(1, 12)), first_id=int(rng.integers(0, 40)))
            insert(ranker, fresh)
            insert(oracle, fresh)
        else:
            ids = rng.integers(0, 50, int(rng.integers(1, 15))).tolist()
            remove(ranker, ids)
            remove(oracle, ids)
        expect_equal(ranker, oracle, tiny_places(step + 1000, 8))
    assert len(ranker) == len(oracle)


def check_ranked_memory_is_given_back_after_removals(method: str) -> None:
    subscriptions = random_ranked(6, 3000)
    ranker = ranked(method, subscriptions)
    full = ranker.nbytes
    remove(ranker, [s.id for s in subscriptions[50:]])
    assert ranker.nbytes < full / 4, f"50 of 3000 left, yet {ranker.nbytes} of {full} bytes are held"
    expect_equal(ranker, ranked("brute", subscriptions[:50]), random_messages(7, 30, largest=0.2))


def check_ranked_memory_stays_bounded_under_replacement(method: str) -> None:
    subscriptions = random_ranked(8, 500)
    ranker = ranked(method, subscriptions)
    full = ranker.nbytes
    for seed in range(8):
        fresh = zip(random_ranked(seed, 500), subscriptions, strict=True)
        insert(ranker, [s._replace(id=old.id) for s, old in fresh])
    assert ranker.nbytes < 4 * full + 100_000, f"from {full} to {ranker.nbytes} bytes by replacing alone"


def check_ranked_a_batch_equals_one_by_one_and_threads(method: str) -> None:
    ranker = ranked(method, random_ranked(9, 200))
    messages = random_messages(10, 40) + random_messages(11, 20, largest=0.3)
    whole = scores(ranker, messages)
    assert whole == [scores(ranker, [message])[0] for message in messages], "one by one gives another answer"
    for threads in (2, 3, 100):
        assert scores(ranker, messages, threads) == whole, f"{threads} threads give another answer"
    assert all(found == sorted(dict(found).items()) for found in whole), "sorted by id, each once"


def check_ranked_one_message_at_a_time_agrees_with_a_batch(method: str) -> None:
    ranker = ranked(method, random_ranked(12, 200))
    messages = [m._replace(terms=[*m.terms, 5000]) for m in random_messages(13, 30)]
    for message, wanted in zip(messages, scores(ranker, messages), strict=True):
        got = ranker.match_one(np.array(message.terms, np.int32), *message.box[:2]).tolist()
        assert got == [number for number, _ in wanted], "match_one gives another answer than match"


def check_ranked_subscriptions_expire(method: str) -> None:
    ranker = ranked(
        method, [Ranked(1, [0], _BOX, expires=1000), Ranked(2, [0], _BOX), Ranked(3, [], _FAR, 0.5, 0.0, 7)]
    )
    expect(ranker, Message([0], _CENTRE, 6), {1: 1.0, 2: 1.0, 3: 0.5}, "before")
    expect(ranker, Message([0], _CENTRE, 999), {1: 1.0, 2: 1.0}, "one is past its time")
    expect(ranker, Message([0], _CENTRE, 1000), {2: 1.0}, "the moment itself is past")
    expect(ranker, Message([0], _CENTRE, NO_TIME), {1: 1.0, 2: 1.0, 3: 0.5}, "no time, no expiry")


def check_ranked_input_is_left_alone(method: str) -> None:
    batch, messages, weights = ranks_of(random_ranked(14, 100)), batch_of(random_messages(15, 20)), WEIGHTS.copy()
    inputs = (*batch.rows, batch.alphas, batch.thresholds, weights, *messages)
    before = [array.copy() for array in inputs]
    ranker = ranked(method, [], weights)
    ranker.insert(batch)
    first = scores(ranker, messages)
    for array, copy in zip(inputs, before, strict=True):
        assert np.array_equal(array, copy), "an input array was changed"
        array[...] = 0  # and none of them may have been kept
    assert scores(ranker, random_messages(15, 20)) == first, "an input array was kept, not copied"


def check_ranked_saved_and_opened_is_the_same_and_takes_changes(method: str) -> None:
    subscriptions = random_ranked(16, 300) + tiny_ranked(17, 40, first_id=10_000)
    ranker = ranked(method, subscriptions[:250])
    insert(ranker, subscriptions[250:])
    remove(ranker, [s.id for s in subscriptions[:20]])
    messages = random_messages(18, 30, largest=0.1) + tiny_places(19, 20)
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "saved", _FORMAT, *ranker.state())
        opened = Ranker.restored(*read_bundle(Path(folder) / "saved", _FORMAT))
        assert scores(opened, messages) == scores(ranker, messages), "opened gives another answer than saved"
        insert(opened, subscriptions[:10])
        remove(opened, [s.id for s in subscriptions[30:60]])
        kept = subscriptions[:10] + subscriptions[20:30] + subscriptions[60:]
        expect_equal(opened, ranked("brute", kept), messages)
        again = Ranker.restored(*read_bundle(Path(folder) / "saved", _FORMAT))
        assert scores(again, messages) == scores(ranker, messages), "a change after opening reached the file"


def check_ranked_an_empty_index_can_be_saved_and_filled_later(method: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(folder, _FORMAT, *ranked(method, []).state())
        opened = Ranker.restored(*read_bundle(folder, _FORMAT))
        assert scores(opened, random_messages(21, 3)) == [[], [], []]
        insert(opened, random_ranked(20, 50))
        expect_equal(opened, ranked("brute", random_ranked(20, 50)), random_messages(21, 20))


def check_ranked_stats_count_the_work(method: str) -> None:
    ranker = ranked(method, random_ranked(22, 200))
    found = scores(ranker, random_messages(23, 30))
    stats = ranker.stats
    assert stats.matches == sum(len(pairs) for pairs in found) > 0, "stats.matches is the number of pairs"
    assert stats.candidates >= stats.matches and stats.nodes > 0, "no match without a visit and a comparison"
    scores(ranker, random_messages(23, 30))
    assert ranker.stats.candidates == 2 * stats.candidates, "the same batch again is the same work again"


def check_ranked_effort_stays_below_the_ceiling(method: str) -> None:
    """Neither place nor words alone are enough here, so that both may prune."""
    rng = np.random.default_rng(24)
    subscriptions = [
        s._replace(alpha=float(rng.uniform(0.3, 0.7)), threshold=float(rng.uniform(0.75, 1.0)), terms=s.terms or [9])
        for s in random_ranked(25, 2000, vocabulary=400, largest=0.1)
    ]
    ranker = ranked(method, subscriptions)
    messages = random_messages(26, 60, vocabulary=400)
    scores(ranker, messages)
    share = ranker.stats.candidates / (len(subscriptions) * len(messages))
    ceiling = RANK_REGISTRY[method.split()[0]].effort_ceiling
    assert share <= ceiling, f"compared {share:.1%} of all pairs; the ceiling is {ceiling:.1%}"


def check_ranked_bytes_held_are_counted(method: str) -> None:
    small, large = ranked(method, random_ranked(27, 50)), ranked(method, random_ranked(27, 2000))
    assert large.nbytes > 2000 * 64 and large.nbytes > 8 * small.nbytes, "nbytes must follow the number of rows"
