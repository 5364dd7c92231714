"""`iq-tree` from inside: the cheapest cells after every change, rare words in large cells, and little to look at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import nearcast.indexes  # noqa: F401  registers every method
from changes_in_steps import Step, expect_sound_in_rounds, expect_sound_in_steps
from changing_world import World
from iq_soundness import cover_by_hand, expect_sound_cells
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from nearcast.indexes.iq_tree import CellTree
from nearcast.indexes.iq_tree.cover import FINEST_GRID, WHOLE, doublings_of, mass_of, masses_of
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    Message,
    Subscription,
    answers,
    batch_of,
    built,
    empty,
    insert,
    point,
    remove,
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet
from quad_steps import CHANGES, MESSAGES

SETTINGS = ["iq-tree horizon=1", "iq-tree horizon=60 depth=4", "iq-tree horizon=1000 depth=5"]
UNIT = np.array(EVERYWHERE)


def tree_of(matcher: SubscriptionSet) -> CellTree:
    return matcher.method.structure  # type: ignore[attr-defined, no-any-return]


def expect_sound_method(matcher: SubscriptionSet) -> None:
    rows = matcher.store.live_rows()
    rows = rows[matcher.store.arrays.n_terms[rows] > 0].tolist()
    expect_sound_cells(tree_of(matcher), matcher.store, rows)


@pytest.mark.parametrize("method", SETTINGS)
@settings(max_examples=10 if JIT_DISABLED else 30, deadline=None)
@given(steps=CHANGES)
def test_every_step_leaves_every_row_in_its_cheapest_cells(method: str, steps: list[Step]) -> None:
    expect_sound_in_steps(method, steps, expect_sound_method, MESSAGES)


@pytest.mark.parametrize("method", SETTINGS)
def test_hundreds_of_changes_leave_the_tree_exact(method: str) -> None:
    world = World(7, 150 if JIT_DISABLED else 250, vocabulary=15)
    expect_sound_in_rounds(method, world, 4, expect_sound_method)


def test_what_comes_and_goes_leaves_no_list_and_no_node_behind() -> None:
    matcher = built("iq-tree horizon=1000", random_subscriptions(1, 50, vocabulary=5))
    tree = tree_of(matcher)
    before = tree.counts
    matcher.remove(np.array([s.id for s in random_subscriptions(1, 50, vocabulary=5)]))
    assert before[0] > 1 and tree.counts == (1, 0, 0)
    insert(matcher, random_subscriptions(2, 20, vocabulary=5))
    expect_sound_method(matcher)


def copies_of(matcher: SubscriptionSet, subscription: int) -> list[tuple[int, int, int]]:
    return cover_by_hand(tree_of(matcher), matcher.store, subscription)


def test_a_rare_word_lies_in_large_cells_and_a_frequent_one_in_small() -> None:
    box = (0.3, 0.3, 0.45, 0.45)
    subscriptions = [Subscription(i, [7] if i else [8], box) for i in range(500)]
    corners = [Subscription(1000 + k, [9], point(k, k)) for k in (0, 1)]
    matcher = built("iq-tree horizon=5000", subscriptions + corners)
    rare, frequent = copies_of(matcher, 0), copies_of(matcher, 1)
    assert len(rare) < len(frequent)
    assert max(level for level, _, _ in rare) < max(level for level, _, _ in frequent)
    expect_sound_method(matcher)


def test_a_box_around_everything_is_one_entry_at_the_root() -> None:
    world = [Subscription(i, [1], (-9.0, -9.0, 9.0, 9.0)) for i in range(20)]
    matcher = built("iq-tree", world)
    assert tree_of(matcher).counts == (1, 1, 20)
    assert answers(matcher, [Message([1], point(0.2, 0.7))]) == [list(range(20))]


def test_a_small_box_on_the_middle_lies_in_four_small_cells() -> None:
    subscriptions = [Subscription(i, [1], (0.499, 0.499, 0.501, 0.501)) for i in range(10)]
    spread = [Subscription(10 + k, [2], point(k % 16 / 15, k // 16 / 15)) for k in range(256)]
    cells = copies_of(built("iq-tree horizon=2000", subscriptions + spread), 0)
    assert len(cells) == 4 and min(level for level, _, _ in cells) > 3


def test_thousands_of_identical_rows_are_found_and_go_again() -> None:
    n = 200 if JIT_DISABLED else 3000
    matcher = built("iq-tree horizon=500", [Subscription(i, [1, 2], (0.1, 0.1, 0.3, 0.2)) for i in range(n)])
    assert answers(matcher, [Message([1, 2], point(0.2, 0.2)), Message([1], point(0.2, 0.2))]) == [list(range(n)), []]
    remove(matcher, range(0, n, 2))
    insert(matcher, [Subscription(i, [1, 2], (0.1, 0.1, 0.3, 0.2)) for i in range(0, n, 4)])
    kept = sorted({*range(1, n, 2), *range(0, n, 4)})
    assert answers(matcher, [Message([1, 2], (0.0, 0.0, 1.0, 1.0))]) == [kept]


def test_a_sample_of_messages_says_where_cells_should_be_small() -> None:
    subscriptions = random_subscriptions(3, 200 if JIT_DISABLED else 1000, vocabulary=20, largest=0.1)
    left = [Message(m.terms, point(m.box[0] / 4, m.box[1])) for m in random_messages(4, 400, vocabulary=20)]
    sampled, unsampled = empty("iq-tree horizon=2000"), empty("iq-tree horizon=2000")
    sampled.expect(batch_of(left[:300]))
    works = []
    for matcher in (sampled, unsampled):
        insert(matcher, subscriptions)
        answers(matcher, left[300:])
        works.append(matcher.stats.candidates)
    assert works[0] < works[1], "fewer candidates where messages are"
    assert answers(sampled, left[300:]) == answers(unsampled, left[300:])


def test_a_point_looks_at_little_more_than_what_matches_by_its_rarest_word() -> None:
    n = 300 if JIT_DISABLED else 3000
    subscriptions = random_subscriptions(3, n, vocabulary=50, largest=0.05)
    messages = random_messages(4, 30, vocabulary=50)
    matcher = built("iq-tree", subscriptions)
    answers(matcher, messages)
    filed, boxes = tree_of(matcher).filed[:n], matcher.store.arrays.boxes
    here = by_words = 0
    for message in messages:
        has_term = np.isin(filed, message.terms)
        inside = (boxes[:, :2] <= message.box[:2]).all(axis=1) & (boxes[:, 2:] >= message.box[:2]).all(axis=1)
        here, by_words = here + int((has_term & inside).sum()), by_words + int(has_term.sum())
    assert here <= matcher.stats.candidates < by_words / 4
    loose = built("iq-tree horizon=1", subscriptions)
    answers(loose, messages)
    assert loose.stats.candidates == by_words, "where copies are dear every row is at the root"


def test_chances_follow_the_sample_then_the_rows_then_the_area() -> None:
    nothing = np.zeros((0, 4))
    even = masses_of(nothing, nothing, UNIT)
    assert mass_of(even, 0, 0, 0) == WHOLE
    assert mass_of(even, 1, 1, 0) == WHOLE >> 2 and mass_of(even, 12, 700, 9) == WHOLE >> 24
    n = 300 if JIT_DISABLED else 10**6
    assert masses_of(np.zeros((n, 4)), nothing, UNIT).grid == (4 if JIT_DISABLED else FINEST_GRID)
    rows, sample = np.tile([0.1, 0.1, 0.1, 0.1], (1000, 1)), np.tile([0.9, 0.9, 0.9, 0.9], (8, 1))
    skewed = masses_of(rows, nothing, UNIT)
    assert mass_of(skewed, 1, 0, 0) > 0.99 * WHOLE > 0.01 * WHOLE > mass_of(skewed, 1, 1, 1) > 0
    for level in range(6):
        own = sum(int(mass_of(skewed, level, x, y)) for x in range(1 << level) for y in range(1 << level))
        assert own <= WHOLE
    both = masses_of(rows, sample, UNIT)
    assert 0.49 * WHOLE < mass_of(both, 1, 0, 0) < 0.51 * WHOLE > mass_of(both, 1, 1, 1) > 0.49 * WHOLE
    assert mass_of(masses_of(rows, np.repeat(sample, 100, axis=0), UNIT), 1, 1, 1) > 0.98 * WHOLE


def test_how_often_a_term_is_met_is_a_power_of_two_of_bounded_size() -> None:
    chances = np.array([1.0, 0.5, 0.001, 0.0])
    assert doublings_of(chances, 1024).tolist() == [10, 9, 1, 0]
    assert doublings_of(chances, 10**9)[0] == 30


@pytest.mark.parametrize("options", ["horizon=0", "horizon=1.5", "horizon=10000000000", "depth=0", "depth=25"])
def test_options_out_of_range_are_refused_by_name(options: str) -> None:
    with pytest.raises(InvalidInput, match=options.split("=")[0]):
        empty(f"iq-tree {options}")


def test_the_plan_tells_what_the_tree_is_made_of() -> None:
    matcher = built("iq-tree", [Subscription(1, [1], point(0.5, 0.5)), Subscription(2, [2], EVERYWHERE)])
    assert "2 lists" in matcher.method.plan and "2 entries" in matcher.method.plan
