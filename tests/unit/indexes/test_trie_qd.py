"""`trie-qd` from inside: trie and quadtrees sound after every change, long sets in quadtrees, short ones not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

import nearcast.indexes  # noqa: F401  registers every method
from changes_in_steps import Step, expect_sound_in_rounds, expect_sound_in_steps
from changing_world import World
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from nearcast.indexes.trie_qd.sets import SetQuads
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    Message,
    Subscription,
    answers,
    built,
    empty,
    insert,
    point,
    remove,
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.structures.trie.nodes import NONE
from quad_soundness import expect_counts, expect_exact_lists, expect_no_node_lost, span_by_hand, walked
from quad_steps import CHANGES, MESSAGES
from trie_soundness import expect_sound_trie

DEEP = ["trie-qd tau_num=2", "trie-qd tau_num=1 copies=1 depth=5", "trie-qd tau_num=4 copies=9 tau_area=0.01"]


def sets_of(matcher: SubscriptionSet) -> SetQuads:
    return matcher.method.structure  # type: ignore[attr-defined, no-any-return]


def expect_sound_method(matcher: SubscriptionSet) -> None:
    rows = matcher.store.live_rows()
    rows = rows[matcher.store.arrays.n_terms[rows] > 0]
    sets, arrays = sets_of(matcher), matcher.store.arrays
    by_terms: dict[tuple[int, ...], list[int]] = {}
    for row in rows.tolist():
        own = arrays.terms[arrays.offsets[row] :][: arrays.n_terms[row]]
        by_terms.setdefault(tuple(own.tolist()), []).append(row)
    homes = sets.trie.homes
    numbers = expect_each_set_in_one_place(sets, list(by_terms.values()))
    expect_sound_quadtrees(matcher, numbers)
    in_trie = np.array([row for row in rows.tolist() if homes[row] == NONE or sets.stand_ins[homes[row]] == row], int)
    boxes = arrays.boxes.copy()
    boxes[: len(homes)][homes[: len(boxes)] != NONE] = (-np.inf, -np.inf, np.inf, np.inf)
    as_the_trie_sees_it = SimpleNamespace(arrays=arrays._replace(boxes=boxes))
    expect_sound_trie(sets.trie, as_the_trie_sees_it, in_trie)  # type: ignore[arg-type]


def expect_each_set_in_one_place(sets: SetQuads, listed: list[list[int]]) -> dict[int, list[int]]:
    """All rows of a term set are in the trie, or of one number; return the rows of each number."""
    tau_num = sets._options.tau_num
    numbers: dict[int, list[int]] = {}
    for own in listed:
        (home,) = set(sets.trie.homes[own].tolist())
        if home == NONE:
            assert len(own) < tau_num
        else:
            assert 2 * len(own) >= tau_num and home not in numbers
            numbers[home] = own
            assert sets.members[home] == len(own) and sets.stand_ins[home] in own
    unused = [number for number in range(len(sets.members)) if number not in numbers]
    assert sorted(sets._free) == unused
    assert not sets.members[unused].any() and (sets.stand_ins[unused] == NONE).all()
    return numbers


def expect_sound_quadtrees(matcher: SubscriptionSet, numbers: dict[int, list[int]]) -> None:
    sets, store = sets_of(matcher), matcher.store
    all_cells: dict[int, tuple[int, int, int]] = {}
    for number, root in enumerate(sets.roots.tolist()):
        own, cells = numbers.get(number, []), walked(sets.arrays, root)
        assert not all_cells.keys() & cells.keys()
        all_cells |= cells
        spans = {row: span_by_hand(sets.arrays, store, row) for row in own}
        lists = expect_exact_lists(sets.arrays, store, cells, spans, {row: row for row in own})
        expect_counts(sets.arrays, cells, lists, spans)
    expect_no_node_lost(sets.arrays, all_cells)


@pytest.mark.parametrize("method", DEEP)
@settings(max_examples=10 if JIT_DISABLED else 30, deadline=None)
@given(steps=CHANGES)
def test_every_step_leaves_trie_and_quadtrees_exact(method: str, steps: list[Step]) -> None:
    expect_sound_in_steps(method, steps, expect_sound_method, MESSAGES)


@pytest.mark.parametrize("method", DEEP)
def test_hundreds_of_changes_leave_trie_and_quadtrees_exact(method: str) -> None:
    world = World(7, 150 if JIT_DISABLED else 250, vocabulary=8)
    expect_sound_in_rounds(method, world, 4, expect_sound_method)


def test_a_set_moves_to_a_quadtree_when_it_is_long_and_back_when_it_is_half_as_long() -> None:
    matcher = built("trie-qd tau_num=10", [Subscription(i, [1, 2], point(i / 30, 0.5)) for i in range(9)])
    sets = sets_of(matcher)
    assert (sets.trie.homes[:9] == NONE).all()
    insert(matcher, [Subscription(9, [1, 2], point(0.9, 0.9)), Subscription(50, [1], point(0.9, 0.9))])
    assert (sets.trie.homes[:10] != NONE).all() and sets.trie.homes[10] == NONE
    expect_sound_method(matcher)
    remove(matcher, range(4))  # the stand-in was among the first
    assert (sets.trie.homes[4:10] != NONE).all()
    expect_sound_method(matcher)
    remove(matcher, [4, 5])
    assert (sets.trie.homes == NONE).all()
    expect_sound_method(matcher)
    assert answers(matcher, [Message([1, 2], EVERYWHERE)]) == [[6, 7, 8, 9, 50]]


def test_numbers_and_roots_of_sets_are_used_again() -> None:
    matcher = built("trie-qd tau_num=4", [Subscription(0, [9], point(0.5, 0.5))])
    for turn in range(30):
        insert(matcher, [Subscription(1 + i, [turn % 7], point(i / 9, turn / 30)) for i in range(8)])
        assert answers(matcher, [Message([turn % 7], EVERYWHERE)]) == [list(range(1, 9))]
        remove(matcher, range(1, 9))
    assert len(sets_of(matcher).members) <= 8
    expect_sound_method(matcher)


def test_a_long_set_is_searched_at_the_message_s_place_alone() -> None:
    n = 500 if JIT_DISABLED else 5000
    rng = np.random.default_rng(1)
    low = rng.random((n, 2))
    subscriptions = [Subscription(i, [1, 2], (x, y, x + 0.01, y + 0.01)) for i, (x, y) in enumerate(low.tolist())]
    matcher, oracle = built("trie-qd", subscriptions), built("brute", subscriptions)
    messages = [Message([1, 2, 3], point(*place)) for place in rng.random((20, 2)).tolist()]
    assert answers(matcher, messages) == answers(oracle, messages)
    assert matcher.stats.candidates < 20 * n / (3 if JIT_DISABLED else 20)


def test_other_words_are_not_looked_at() -> None:
    matcher = built("trie-qd tau_num=16", random_subscriptions(3, 300 if JIT_DISABLED else 3000, vocabulary=50))
    answers(matcher, [Message([60, 70], EVERYWHERE)])
    assert matcher.stats.candidates == 0
    answers(matcher, random_messages(4, 30, vocabulary=50, largest=0.1))
    assert matcher.stats.matches <= matcher.stats.candidates


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_places_beyond_the_range_of_float32_find_long_sets(sign: float) -> None:
    far = sorted((sign * 1e300, sign * 1e305))
    subscriptions = [Subscription(0, [1], point(0.5, 0.5))]
    subscriptions += [Subscription(i, [1], (far[0], 0.0, far[1], 1.0)) for i in range(1, 9)]
    subscriptions += [Subscription(i, [2], (far[0], 0.0, far[1], 1.0)) for i in range(9, 18)]
    matcher = built("trie-qd tau_num=2", subscriptions)
    messages = [
        Message([1], point(far[1], 0.5)),
        Message([1], (far[0], 0.2, far[0], 0.3)),
        Message([1], point(0.5, 0.5)),
    ]
    assert answers(matcher, messages) == [list(range(1, 9)), list(range(1, 9)), [0]]


@pytest.mark.parametrize("options", ["tau_num=0", "depth=25", "copies=0", "tau_area=2"])
def test_options_out_of_range_are_refused_by_name(options: str) -> None:
    with pytest.raises(InvalidInput, match=options.split("=")[0]):
        empty(f"trie-qd {options}")
