"""`mbr-trie` from inside: soundness after every change, numbers that run out, and what each kind of probing visits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearcast.indexes  # noqa: F401  registers every method
from changes_in_steps import Step, expect_sound_in_rounds, expect_sound_in_steps
from changing_world import World
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from nearcast.indexes.mbr_trie import MbrTrie
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    Message,
    Subscription,
    answers,
    batch_of,
    built,
    empty,
    expect_equal,
    insert,
    point,
    remove,
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.structures.trie.nodes import GAP, N_FREE, RENUMBERED, ROOT, USED
from trie_soundness import expect_sound_trie

GAPS = ["mbr-trie gap=1", "mbr-trie gap=2", "mbr-trie gap=5", "mbr-trie"]


def trie_of(matcher: SubscriptionSet) -> MbrTrie:
    assert isinstance(matcher.method, MbrTrie)
    return matcher.method


def expect_sound(matcher: SubscriptionSet) -> None:
    store = matcher.store
    rows = store.live_rows()
    expect_sound_trie(trie_of(matcher).structure, store, rows[store.arrays.n_terms[rows] > 0])


TERMS = st.lists(st.integers(0, 7), min_size=1, max_size=5, unique=True).map(sorted)
BOXES = st.sampled_from([(0.0, 0.0, 1.0, 1.0), (0.1, 0.1, 0.3, 0.3), (0.25, 0.5, 0.25, 0.5), (0.2, 0.0, 0.9, 0.1)])
SUBSCRIBED = st.tuples(st.integers(0, 20), TERMS, BOXES).map(lambda s: Subscription(*s))
STEPS = st.lists(
    st.one_of(
        st.lists(SUBSCRIBED, min_size=1, max_size=5, unique_by=lambda s: s.id),
        st.lists(st.integers(0, 20), min_size=1, max_size=5),
    ),
    max_size=25,
)


MESSAGES = [Message([0, 1, 2, 5], point(0.25, 0.5)), Message(list(range(8)), (0.2, 0.05, 0.5, 0.6))]


@settings(max_examples=10 if JIT_DISABLED else 40, deadline=None)
@given(STEPS, st.sampled_from(GAPS))
def test_every_step_leaves_order_ranges_and_boxes_right(steps: list[Step], method: str) -> None:
    expect_sound_in_steps(method, steps, expect_sound, MESSAGES)


@pytest.mark.parametrize("method", GAPS)
def test_many_changes_leave_the_trie_sound_and_its_answers_right(method: str) -> None:
    world = World(3, 300, vocabulary=30)
    expect_sound_in_rounds(method, world, 2 if JIT_DISABLED else 8, expect_sound)


@pytest.mark.parametrize("method", ["mbr-trie gap=1", "mbr-trie gap=8"])
def test_gaps_that_are_used_up_are_made_anew_and_the_order_stays(method: str) -> None:
    """All at one place of the order: equal sets, sets that are longer and longer, and neighbours that close in."""
    matcher = built(method, [Subscription(0, [0], EVERYWHERE), Subscription(1, [50], EVERYWHERE)])
    trie_of(matcher).rebuild_growth = np.inf  # type: ignore[misc]
    sets = [[3]] * 20 + [list(range(n)) for n in range(1, 20)] + [[n] for n in range(49, 30, -1)]
    for number, terms in enumerate(sets):
        before = numbers_of(matcher)
        insert(matcher, [Subscription(10 + number, terms, EVERYWHERE)])
        after = numbers_of(matcher)
        kept = [row for row in after if row in before]
        assert kept == list(before), "the order of rows stays when they are numbered anew"
    expect_sound(matcher)
    assert trie_of(matcher).structure.arrays.head[RENUMBERED] > 0


def numbers_of(matcher: SubscriptionSet) -> dict[int, int]:
    """The rows in the order of their numbers."""
    a = trie_of(matcher).structure.arrays
    rows = np.flatnonzero(a.leaves >= 0)
    return {int(row): int(a.numbers[row]) for row in rows[np.argsort(a.numbers[rows])]}


def test_wide_gaps_last_for_hundreds_of_equal_rows_and_cost_few_new_numbers() -> None:
    n = 100 if JIT_DISABLED else 600
    matcher = built("mbr-trie gap=64", [Subscription(k, [k % 5], EVERYWHERE) for k in range(5)])
    trie_of(matcher).rebuild_growth = np.inf  # type: ignore[misc]
    for k in range(n):
        insert(matcher, [Subscription(10 + k, [2], EVERYWHERE)])
    a = trie_of(matcher).structure.arrays
    assert a.head[RENUMBERED] < 20 * n, "rows numbered anew, for each that came"
    expect_sound(matcher)


def test_everything_that_goes_leaves_one_empty_node_behind() -> None:
    subscriptions = random_subscriptions(4, 40)
    matcher = built("mbr-trie gap=3", subscriptions[:20])
    insert(matcher, subscriptions[20:])
    for subscription in subscriptions:
        remove(matcher, [subscription.id])
        expect_sound(matcher)
    a = trie_of(matcher).structure.arrays
    assert a.head[USED] - a.head[N_FREE] == 1 and a.below[ROOT] == 0
    insert(matcher, subscriptions)
    expect_equal(matcher, built("brute", subscriptions), random_messages(5, 40))


def test_a_wide_node_puts_off_making_its_box_tight_but_not_for_ever() -> None:
    """Two hundred rows of one set end at the same edges: each removal touches the box."""
    subscriptions = [Subscription(k, [1], (0.0, 0.0, 1.0 - k / 1_000, 1.0)) for k in range(200)]
    matcher = built("mbr-trie", [*subscriptions, Subscription(900, [2], EVERYWHERE)])
    debts = []
    for k in range(150):
        remove(matcher, [k])
        node = int(trie_of(matcher).structure.arrays.leaves[matcher.store.live_rows()[0]])
        debts.append(int(trie_of(matcher).structure.arrays.debts[node]))
    assert 0 < max(debts) <= 25
    assert debts.count(0) > 4, "it is made tight again and again"
    expect_sound(matcher)


@pytest.mark.parametrize("method", ["mbr-trie", "mbr-trie probe=trie", "lfilter way=trie", "trie-qd tau_num=5000"])
def test_a_walk_that_lacks_room_for_rows_or_nodes_goes_on_where_it_was(method: str) -> None:
    """There is room for 1,024 rows and 256 nodes at first; what is met is counted once all the same."""
    wide = [Subscription(k, [k], EVERYWHERE) for k in range(700)]
    below = [Subscription(1_000 + k, [k, 700], EVERYWHERE) for k in range(400)]
    equal = [Subscription(2_000 + k, [701], EVERYWHERE) for k in range(3_000)]
    matcher = built(method, wide + below + equal)
    messages = [Message([701], EVERYWHERE), Message(list(range(702)), EVERYWHERE), Message([5, 700], point(0.5, 0.5))]
    expect_equal(matcher, built("brute", wide + below + equal), messages)
    assert (matcher.stats.nodes, matcher.stats.candidates) == (2 + 1_102 + 3, 3_000 + 4_100 + 2)


def test_long_token_sets_are_no_deeper_than_the_stack() -> None:
    n = 300 if JIT_DISABLED else 3_000
    long = list(range(n))
    matcher = built("mbr-trie", [Subscription(1, long, EVERYWHERE), Subscription(2, [n - 1], EVERYWHERE)])
    insert(matcher, [Subscription(3, long[: n - 5], EVERYWHERE), Subscription(4, [*long, n + 7], EVERYWHERE)])
    assert answers(matcher, [Message([*long, n + 7], point(0.5, 0.5))]) == [[1, 2, 3, 4]]
    assert answers(matcher, [Message(long, point(0.5, 0.5))]) == [[1, 2, 3]]
    remove(matcher, [1, 4])
    assert answers(matcher, [Message(long, point(0.5, 0.5))]) == [[2, 3]]


def test_each_way_of_probing_reaches_the_same_nodes() -> None:
    subscriptions = random_subscriptions(6, 600, vocabulary=200, largest=0.2)
    messages = batch_of(random_messages(7, 40, vocabulary=200, largest=0.3))
    works = []
    for probe in ("tokens", "trie", "cost"):
        matcher = built(f"mbr-trie probe={probe}", subscriptions)
        matcher.match(messages)
        works.append(matcher.stats)
    assert works[0] == works[1] == works[2]
    assert works[0].candidates < 0.1 * len(subscriptions) * messages.size


def test_nodes_that_do_not_overlap_are_not_reached() -> None:
    matcher = built("mbr-trie", [Subscription(k, [1, 2], (0.0, 0.0, 0.1, 0.1)) for k in range(10)])
    assert answers(matcher, [Message([1, 2], point(0.5, 0.5))]) == [[]]
    assert matcher.stats.nodes == 0 and matcher.stats.candidates == 0


@pytest.mark.parametrize("options", [{"probe": "both"}, {"gap": 0}, {"gap": 1.5}, {"gap": True}, {"gap": 1 << 40}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        SubscriptionSet("mbr-trie", empty("brute").space, options)


def test_numbers_are_a_gap_apart_after_a_build() -> None:
    matcher = built("mbr-trie gap=7", random_subscriptions(8, 50))
    a = trie_of(matcher).structure.arrays
    assert set(np.diff(np.sort(a.numbers[a.leaves >= 0])).tolist()) == {a.head[GAP]}
