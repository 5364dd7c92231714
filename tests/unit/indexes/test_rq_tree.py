"""`rq-tree` from inside: every tree sound after every change, short lists plain, other words not looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import nearcast.indexes  # noqa: F401  registers every method
from changes_in_steps import Step, expect_sound_in_rounds, expect_sound_in_steps
from changing_world import World
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.indexes.rq_tree import QuadForest
from nearcast.matching.checks.cases import Message, Subscription, answers, built, insert, point, remove
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.structures.quadtree.nodes import NONE
from quad_soundness import expect_sound_forest
from quad_steps import CHANGES, MESSAGES

DEEP = ["rq-tree tau_num=2", "rq-tree tau_num=1 copies=1 depth=5", "rq-tree tau_num=4 copies=9 tau_area=0.01"]


def forest_of(matcher: SubscriptionSet) -> QuadForest:
    return matcher.method.structure  # type: ignore[attr-defined, no-any-return]


def expect_sound_method(matcher: SubscriptionSet) -> None:
    rows = matcher.store.live_rows()
    rows = rows[matcher.store.arrays.n_terms[rows] > 0].tolist()
    expect_sound_forest(forest_of(matcher), matcher.store, rows)


@pytest.mark.parametrize("method", DEEP)
@settings(max_examples=10 if JIT_DISABLED else 30, deadline=None)
@given(steps=CHANGES)
def test_every_step_leaves_every_tree_exact(method: str, steps: list[Step]) -> None:
    expect_sound_in_steps(method, steps, expect_sound_method, MESSAGES)


@pytest.mark.parametrize("method", DEEP)
def test_hundreds_of_changes_leave_every_tree_exact(method: str) -> None:
    world = World(7, 150 if JIT_DISABLED else 250, vocabulary=15)
    expect_sound_in_rounds(method, world, 4, expect_sound_method)


def test_short_lists_stay_plain_and_long_ones_get_a_quadtree() -> None:
    rare = [Subscription(i, [i], point(i / 200, 0.5)) for i in range(100, 150)]
    frequent = [Subscription(1000 + i, [3], point(i / 200, i / 200)) for i in range(150)]
    matcher = built("rq-tree tau_num=64", rare + frequent)
    forest = forest_of(matcher)
    nodes = forest.arrays.nodes
    assert (nodes.children[forest.roots[100:150]] == NONE).all()
    assert nodes.leaves[forest.roots[3]] >= 4
    assert answers(matcher, [Message([3, 120], point(0.6, 0.5))]) == [[120]]


def test_a_point_reads_the_lists_of_its_words_alone_and_there_the_cells_at_its_place() -> None:
    n = 300 if JIT_DISABLED else 3000
    subscriptions = random_subscriptions(3, n, vocabulary=50, largest=0.05)
    matcher = built("rq-tree tau_num=16", subscriptions)
    forest, store = forest_of(matcher), matcher.store
    messages = random_messages(4, 30, vocabulary=50)
    answers(matcher, messages)
    by_words = sum(int(np.isin(forest.filed[: store.high], message.terms).sum()) for message in messages)
    assert matcher.stats.matches <= matcher.stats.candidates < by_words / (1 if JIT_DISABLED else 4)


def test_a_word_that_comes_again_finds_its_root() -> None:
    matcher = built("rq-tree", [Subscription(1, [5], point(0.5, 0.5)), Subscription(2, [6], point(0.5, 0.5))])
    root = int(forest_of(matcher).roots[5])
    remove(matcher, [1])
    insert(matcher, [Subscription(3, [5], point(0.1, 0.1))])
    expect_sound_method(matcher)
    assert forest_of(matcher).roots[5] == root
    assert answers(matcher, [Message([5, 6], point(0.1, 0.1))]) == [[3]]
