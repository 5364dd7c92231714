"""`lfilter` from inside: two structures over one order after every change, its strategies and their costs."""

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
from nearcast.indexes.lfilter import LFilter
from nearcast.indexes.lfilter.choice import BY_CELLS, BY_LISTS, BY_TRIE, STRATEGIES
from nearcast.indexes.lfilter.costs import TOKEN, cost_by_trie
from nearcast.indexes.lfilter.loads import LENGTHS
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
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet
from quad_soundness import expect_sound as expect_sound_quadtree
from trie_soundness import expect_sound_trie

EVERY_STRATEGY = [f"lfilter way={strategy} gap=2 tau_num=2" for strategy in (*STRATEGIES, "cost")]


def method_of(matcher: SubscriptionSet) -> LFilter:
    assert isinstance(matcher.method, LFilter)
    return matcher.method


def expect_sound(matcher: SubscriptionSet) -> None:
    """Both structures are, and the quadtree's lists are in the order of the trie: by number, and so by rarest term."""
    method, store = method_of(matcher), matcher.store
    rows = store.live_rows()
    rows = rows[store.arrays.n_terms[rows] > 0]
    expect_sound_trie(method.trie, store, rows)
    numbers = {int(row): int(method.trie.arrays.numbers[row]) for row in rows}
    expect_sound_quadtree(method.quadtree, store, rows.tolist(), numbers)
    lists, ranks = method.quadtree.arrays.lists, method.trie.ranks
    for offset, count in zip(lists.offsets.tolist(), lists.counts.tolist(), strict=True):
        for row, term in zip(lists.rows[offset:][:count], lists.pivots[offset:][:count], strict=True):
            first, n = store.arrays.offsets[row], store.arrays.n_terms[row]
            assert ranks[term] == ranks[store.arrays.terms[first : first + n]].max(), "the entry holds the rarest term"
        assert (np.diff(ranks[lists.pivots[offset : offset + count]]) >= 0).all(), "and lists are sorted by it"


TERMS = st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True).map(sorted)
BOXES = st.sampled_from([(0.0, 0.0, 1.0, 1.0), (0.1, 0.1, 0.3, 0.3), (0.25, 0.5, 0.25, 0.5), (0.4, 0.0, 0.9, 0.1)])
SUBSCRIBED = st.tuples(st.integers(0, 20), TERMS, BOXES).map(lambda s: Subscription(*s))
STEPS = st.lists(
    st.one_of(
        st.lists(SUBSCRIBED, min_size=1, max_size=6, unique_by=lambda s: s.id),
        st.lists(st.integers(0, 20), min_size=1, max_size=5),
    ),
    max_size=12,
)
MESSAGES = [
    Message([0, 1, 2, 5], point(0.25, 0.5)),
    Message(list(range(8)), (0.2, 0.05, 0.5, 0.6)),
    Message([3], EVERYWHERE),
]


@settings(max_examples=5 if JIT_DISABLED else 15, deadline=None)
@given(STEPS, st.sampled_from(EVERY_STRATEGY))
def test_every_step_leaves_both_structures_right_over_one_order(steps: list[Step], method: str) -> None:
    expect_sound_in_steps(method, steps, expect_sound, MESSAGES, ask_each_time=True)


@pytest.mark.parametrize("method", EVERY_STRATEGY)
def test_many_changes_leave_the_answers_right(method: str) -> None:
    world = World(5, 250, vocabulary=25)
    expect_sound_in_rounds(method, world, 1 if JIT_DISABLED else 4, expect_sound)


SIZE = 300 if JIT_DISABLED else 4_000
SUBSCRIPTIONS = random_subscriptions(1, SIZE, vocabulary=300, largest=0.2)
POINTS, RANGES = random_messages(2, 30, vocabulary=300), random_messages(3, 30, vocabulary=300, largest=0.3)
LONG = [m._replace(terms=sorted({*m.terms, *range(0, 300, 2)})) for m in random_messages(4, 10, largest=0.2)]


@pytest.mark.parametrize("options", ["tau_num=4 copies=16", "tau_num=16", "copies=1 tau_num=8"])
def test_all_ways_find_the_same_and_a_row_of_many_lists_once(options: str) -> None:
    oracle = built("brute", SUBSCRIPTIONS)
    for strategy in (*STRATEGIES, "cost"):
        matcher = built(f"lfilter way={strategy} {options}", SUBSCRIPTIONS)
        expect_equal(matcher, oracle, POINTS + RANGES + LONG)


def test_lists_that_are_cut_leave_less_to_verify_than_either_structure_alone() -> None:
    seen = {}
    for strategy in STRATEGIES:
        matcher = built(f"lfilter way={strategy} tau_num=64", SUBSCRIPTIONS)
        matcher.match(batch_of(POINTS))
        seen[strategy] = matcher.stats.candidates
    assert seen["lists"] < 0.5 * min(seen["trie"], seen["cells"])


def strategies_of(matcher: SubscriptionSet, messages: list[Message]) -> list[int]:
    """How many messages take each strategy."""
    before = method_of(matcher).choices.copy()
    answers(matcher, messages)
    return (method_of(matcher).choices - before)[:, 0].astype(int).tolist()  # type: ignore[no-any-return]


def test_a_short_message_for_everywhere_takes_the_trie_and_a_long_one_at_a_point_the_cells() -> None:
    matcher = built("lfilter", SUBSCRIPTIONS)
    assert strategies_of(matcher, [Message([299], EVERYWHERE)] * 3)[BY_TRIE] == 3
    assert strategies_of(matcher, [Message(list(range(300)), point(0.01, 0.99))] * 3)[BY_CELLS] == 3


def test_one_message_that_the_quadtree_would_save_little_on_opens_it_not_but_many_do() -> None:
    """Twenty tokens are 16 us at least in the trie, and a point meets a few entries; to open the quadtree is 50."""
    matcher = built("lfilter", SUBSCRIPTIONS)
    odd, usual = Message(list(range(280, 300)), point(0.01, 0.99)), Message([299], point(0.5, 0.5))
    assert strategies_of(matcher, [odd]) == [1, 0, 0]
    assert strategies_of(matcher, [usual, odd, usual]) == [3, 0, 0]
    taken = strategies_of(matcher, [usual, odd, odd] * 20)
    assert taken[BY_TRIE] == 20, "what takes the trie at once does so among the others too"
    expect_equal(matcher, built("brute", SUBSCRIPTIONS), [odd, usual, *[usual, odd, odd] * 20])


def test_long_lists_and_few_tokens_take_lists() -> None:
    n = 500 if JIT_DISABLED else 60_000
    rng = np.random.default_rng(6)
    terms, corners = rng.integers(0, 40, n), rng.random((n, 2)) * 0.05
    subscriptions = [
        Subscription(k, [int(term), 40 + k % 7], (float(x), float(y), float(x) + 0.9, float(y) + 0.9))
        for k, (term, (x, y)) in enumerate(zip(terms, corners, strict=True))
    ]
    matcher = built("lfilter", subscriptions)
    message = Message([3, 41], point(0.5, 0.5))
    if not JIT_DISABLED:
        assert strategies_of(matcher, [message]) != [0, 1, 0], "the cell's list has all rows"
    forced = built("lfilter way=lists", subscriptions)
    assert answers(matcher, [message]) == answers(forced, [message])
    assert strategies_of(forced, [message])[BY_LISTS] == 1
    assert forced.stats.candidates < 0.1 * n


def test_expected_and_spent_costs_are_reported_and_are_of_one_size() -> None:
    messages = POINTS + RANGES + LONG
    for strategy in STRATEGIES:
        matcher = built(f"lfilter way={strategy}", SUBSCRIPTIONS)
        matcher.match(batch_of(messages))
        stats = matcher.stats
        assert stats.expected_ns > 0 and stats.spent_ns > 0
        assert 1 / 4 < stats.expected_ns / stats.spent_ns < 4, strategy
        assert f"{strategy} for {len(messages)} messages" in matcher.method.plan
        again = matcher.stats
        matcher.match(batch_of(messages))
        assert matcher.stats.expected_ns == 2 * again.expected_ns


def test_one_message_at_a_time_tells_the_same_costs_as_a_batch() -> None:
    single, batch = (built("lfilter", SUBSCRIPTIONS) for _ in range(2))
    for message in POINTS:
        single.match_one(np.array(message.terms, np.int32), *message.box[:2])
        answers(batch, [message])
    assert single.stats == batch.stats and single.stats.expected_ns > 0 and single.stats.spent_ns > 0


def test_the_choices_add_up_to_the_messages() -> None:
    matcher = built("lfilter", SUBSCRIPTIONS)
    matcher.match(batch_of(POINTS + RANGES + LONG), threads=3)
    assert method_of(matcher).choices[:, 0].sum() == len(POINTS + RANGES + LONG)


def test_what_terms_cost_is_learned_again_when_rows_have_changed() -> None:
    matcher = built("lfilter", [Subscription(k, [k % 5], EVERYWHERE) for k in range(100)])
    loads = method_of(matcher)._loads
    before = loads.model.loads.copy()
    assert (before[:5] > 0).all() and (np.diff(before[0]) >= 0).all(), "longer messages cost no less"
    insert(matcher, [Subscription(200 + k, [2], EVERYWHERE) for k in range(80)])
    assert (loads.model.loads[2] > 2 * before[2]).all()
    costs = [
        cost_by_trie(loads.model.loads, LENGTHS, np.array(terms, np.int32), np.inf) for terms in ([0], [2], [0, 2])
    ]
    assert costs[0] < costs[1] < costs[2]
    assert cost_by_trie(loads.model.loads, LENGTHS, np.arange(1_000, dtype=np.int32), 5.0) < costs[2] + 1_000 * TOKEN


@pytest.mark.parametrize("options", [{"way": "both"}, {"gap": 0}, {"tau_num": 0}, {"copies": 0}])
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        SubscriptionSet("lfilter", empty("brute").space, options)
