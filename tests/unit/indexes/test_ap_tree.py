"""The AP-tree from inside: soundness after every change, how it divides, drift, and how much it visits."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearcast.indexes  # noqa: F401  registers every method
from aptree_soundness import expect_sound
from changing_world import World, expect_right
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from nearcast.indexes.ap_tree import ApTree
from nearcast.indexes.ap_tree.cells import axis_of, chances_of, grid_counts, placed_edges
from nearcast.indexes.ap_tree.cuts import cost_of, heuristic_bounds, keyword_bounds, optimal_bounds
from nearcast.indexes.ap_tree.nodes import COUNT, K_NODE, KIND, LEAF, ROOT, S_NODE
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
from nearcast.matching.checks.random_cases import random_box, random_messages, random_subscriptions, tiny_subscriptions
from nearcast.matching.subscription_set import SubscriptionSet

SMALL = [
    "ap-tree f=3 theta_p=2",
    "ap-tree f=2 theta_p=1 copies=9",
    "ap-tree f=4 theta_p=3 partition=dp",
    "ap-tree f=6 theta_p=2 priority=keyword",
    "ap-tree f=9 theta_p=3 priority=space copies=30",
    "ap-tree f=5 theta_p=4 rebuild=false",
    "ap-tree theta_p=8 theta_kl=0",
]
UPDATES, CHECKS = (80, 2) if JIT_DISABLED else (800, 4)


def tree_of(matcher: SubscriptionSet) -> ApTree:
    return cast(ApTree, matcher.method)


def change(method: str, updates: int, n_ids: int, checks: int) -> SubscriptionSet:
    """Inserts, replacements and removals, many at a time or one by one."""
    world = World(7, n_ids, vocabulary=max(20, n_ids // 10))
    matcher = empty(method)
    matcher.insert(world.subscribe(n_ids // 2))
    done = 0
    for check in range(1, checks + 1):
        while done < updates * check // checks:
            size = 1 if world.rng.random() < 0.5 else int(world.rng.integers(1, 40))
            if world.rng.random() < (0.7 if check % 2 else 0.3):
                matcher.insert(world.subscribe(size))
            else:
                matcher.remove(world.unsubscribe(size))
            done += size
        expect_sound(tree_of(matcher))
        expect_right(matcher, world, 15)
    return matcher


@pytest.mark.parametrize("method", SMALL)
def test_many_changes_leave_the_tree_sound(method: str) -> None:
    matcher = change(method, UPDATES, 300, CHECKS)
    done = tree_of(matcher).keeper.done
    assert done.splits > 0
    assert (done.rebuilds > 0) == ("rebuild=false" not in method)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ap-tree", "ap-tree rebuild=false", *SMALL])
def test_a_hundred_thousand_changes_leave_the_tree_sound(method: str) -> None:
    change(method, 100_000, 20_000, checks=8)


STEPS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=4 if JIT_DISABLED else 12
)


@settings(max_examples=10 if JIT_DISABLED else 60, deadline=None)
@given(method=st.sampled_from(SMALL), steps=STEPS, seed=st.integers(0, 5))
def test_every_step_leaves_the_tree_sound(method: str, steps: list[tuple[bool, int, int]], seed: int) -> None:
    """Of subscriptions that are often equal: six boxes, four terms."""
    matcher = built(method, tiny_subscriptions(seed, 12))
    for step, (comes, first, size) in enumerate(steps):
        if comes:
            insert(matcher, tiny_subscriptions(100 * seed + step, size, first_id=first))
        else:
            remove(matcher, list(range(first, first + size)))
        expect_sound(tree_of(matcher))


@pytest.mark.parametrize("method", SMALL)
def test_a_tree_grows_from_nothing_and_shrinks_to_nothing(method: str) -> None:
    subscriptions = random_subscriptions(1, 60 if JIT_DISABLED else 150)
    matcher = built(method, subscriptions[:1])
    for k, subscription in enumerate(subscriptions[1:]):
        insert(matcher, [subscription])
        if k % 10 == 0:
            expect_sound(tree_of(matcher))
    for k, subscription in enumerate(subscriptions):
        remove(matcher, [subscription.id])
        if k % 10 == 0:
            expect_sound(tree_of(matcher))
    expect_sound(tree_of(matcher))


def test_identical_subscriptions_stay_in_one_leaf() -> None:
    box = (0.25, 0.25, 0.75, 0.75)
    matcher = built("ap-tree f=4 theta_p=2", [Subscription(i, [1, 2, 3], box) for i in range(300)])
    shape = tree_of(matcher).keeper.tree.shape
    assert shape.nodes[ROOT, KIND] == LEAF and shape.nodes[ROOT, COUNT] == 300
    insert(matcher, [Subscription(1000 + i, [1, 2, 3], box) for i in range(300)])
    insert(matcher, [Subscription(5000, [1, 4], box)])
    expect_sound(tree_of(matcher))
    assert answers(matcher, [Message([1, 2, 3, 4], point(0.5, 0.5))])[0] == sorted(
        [*range(300), *range(1000, 1300), 5000]
    )


def test_words_part_what_is_in_one_place_and_places_part_what_has_one_word() -> None:
    rng = np.random.default_rng(1)
    box = (0.4, 0.4, 0.6, 0.6)
    by_words = built("ap-tree theta_p=4", [Subscription(i, [i % 50], box) for i in range(200)])
    by_place = built("ap-tree theta_p=4", [Subscription(i, [1], random_box(rng, 0.02)) for i in range(200)])
    assert tree_of(by_words).keeper.tree.shape.nodes[ROOT, KIND] == K_NODE
    assert tree_of(by_place).keeper.tree.shape.nodes[ROOT, KIND] == S_NODE
    assert "k-nodes" in tree_of(by_words).plan


def test_priority_decides_the_first_division() -> None:
    rng = np.random.default_rng(2)
    mixed = [Subscription(i, [i % 20, 20 + i % 7], random_box(rng, 0.1)) for i in range(400)]
    for priority, kind in (("keyword", K_NODE), ("space", S_NODE)):
        matcher = built(f"ap-tree theta_p=4 priority={priority}", mixed)
        assert tree_of(matcher).keeper.tree.shape.nodes[ROOT, KIND] == kind
        expect_sound(tree_of(matcher))


@pytest.mark.parametrize("copies", [1, 2, 6])
def test_copies_are_bounded(copies: int) -> None:
    subscriptions = [s._replace(terms=[1]) for s in random_subscriptions(3, 600, largest=0.3)]
    matcher = built(f"ap-tree f=16 theta_p=4 copies={copies}", subscriptions)
    assert tree_of(matcher).keeper.tree.copies <= copies + 1e-9
    expect_sound(tree_of(matcher))


def test_ranges_over_all_cells_find_each_row_once() -> None:
    subscriptions = random_subscriptions(4, 400, vocabulary=8, largest=0.5)
    matcher = built("ap-tree f=16 theta_p=4 priority=space copies=30", subscriptions)
    assert tree_of(matcher).keeper.tree.copies > 3
    hits, work = tree_of(matcher).match(batch_of([Message(list(range(8)), EVERYWHERE)]))
    assert len(hits.rows) == len(set(hits.rows.tolist())) == 400 and work.candidates > 1200


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=3, max_size=9), st.integers(2, 5))
def test_dynamic_programming_finds_the_cheapest_cuts(terms: list[tuple[int, int]], cuts: int) -> None:
    rows = np.cumsum([0, *(weight for weight, _ in terms)]).astype(np.int64)
    chances = np.cumsum([0.0, *(chance / 20 for _, chance in terms)])
    cuts = min(cuts, len(terms))
    found = keyword_bounds(rows, chances, cuts, optimal=True)
    assert found[0] == 0 and found[-1] == len(terms) and (np.diff(found) > 0).all()
    cheapest = min(cost_of(rows, chances, bounds) for bounds in all_bounds(len(terms), cuts))
    assert cost_of(rows, chances, found) == pytest.approx(cheapest)
    heuristic = keyword_bounds(rows, chances, cuts, optimal=False)
    assert (np.diff(heuristic) > 0).all() and len(heuristic) == len(found)
    assert cost_of(rows, chances, heuristic) >= cheapest - 1e-9


def all_bounds(n: int, cuts: int) -> list[np.ndarray]:
    if n <= cuts:
        return [np.arange(n + 1)]
    starts = [np.array([0])]
    for _ in range(cuts - 1):
        starts = [np.append(part, at) for part in starts for at in range(part[-1] + 1, n)]
    return [np.append(part, n) for part in starts]


def test_the_heuristic_comes_close_to_the_cheapest_cuts() -> None:
    n, cuts = (60, 8) if JIT_DISABLED else (600, 40)
    weights = 1 + (5000 / np.arange(1, n + 1) ** 1.1).astype(np.int64)
    rows = np.concatenate([[0], np.cumsum(weights)])
    chances = np.concatenate([[0.0], np.cumsum(np.random.default_rng(1).permutation(weights) / weights.sum())])
    best, near = np.empty(cuts + 1, np.int64), np.empty(cuts + 1, np.int64)
    optimal_bounds(rows, chances, best)
    heuristic_bounds(rows, chances, near)
    assert cost_of(rows, chances, best) <= cost_of(rows, chances, near) <= 1.5 * cost_of(rows, chances, best)


def test_borders_avoid_boxes_and_follow_the_messages() -> None:
    boxes = np.array([(x, 0.0, x + 0.05, 1.0) for x in (0.0, 0.1, 0.2, 0.7, 0.8, 0.9)])
    region, nobody = np.array(EVERYWHERE), np.zeros((0, 4))
    edges = placed_edges(axis_of(boxes, nobody, region, 0), 3)
    counts, covering = grid_counts(boxes, region, edges, np.zeros(0))
    assert covering == 0 and counts.sum() == len(boxes), f"no border of {edges} lies in a box"
    crowd = np.tile((0.85, 0.5, 0.85, 0.5), (200, 1))
    chances = chances_of(axis_of(boxes, crowd, region, 0), edges)
    assert chances[-1] > 0.9 and chances.sum() == pytest.approx(1.0)


def drifting(seed: int, n: int, first_id: int, words: range, corner: float) -> list[Subscription]:
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        x, y = corner + 0.3 * rng.random(2)
        terms = sorted(set(rng.choice(np.array(words), int(rng.integers(1, 4))).tolist()))
        made.append(Subscription(first_id + i, terms, (x, y, x + 0.02, y + 0.02)))
    return made


def test_a_tree_follows_drift_and_does_not_where_it_is_told_not_to() -> None:
    n = 200 if JIT_DISABLED else 1000
    before, after = drifting(1, n, 0, range(0, 40), 0.0), drifting(2, 2 * n, 100_000, range(30, 200), 0.6)
    follows, stays = built("ap-tree theta_p=8", before), built("ap-tree theta_p=8 rebuild=false", before)
    for matcher in (follows, stays):
        for first in range(0, len(after), 100):
            insert(matcher, after[first : first + 100])
            remove(matcher, [s.id for s in before[first // 2 : first // 2 + 50]])
        expect_sound(tree_of(matcher))
    messages = batch_of(
        Message(sorted({*s.terms, 33, 90, 170}), point(s.box[0] + 0.01, s.box[1] + 0.01)) for s in after[:100]
    )
    assert answers(follows, messages) == answers(stays, messages)
    work = [tree_of(matcher).match(messages)[1] for matcher in (follows, stays)]
    assert tree_of(follows).keeper.done.rebuilds > 0 and tree_of(stays).keeper.done.rebuilds == 0
    assert work[0].candidates + 10 * work[0].nodes < work[1].candidates + 10 * work[1].nodes
    assert f"{tree_of(follows).keeper.done.rebuilt_rows:,} rows built anew" in tree_of(follows).plan


def test_rows_of_the_same_kind_make_no_drift() -> None:
    n = 200 if JIT_DISABLED else 2000
    matcher = built("ap-tree theta_p=20", drifting(1, n, 0, range(40), 0.2))
    insert(matcher, drifting(2, n, 50_000, range(40), 0.2))
    assert tree_of(matcher).keeper.done.rebuilt_rows <= n // 4, "a small node at most, by chance"


def test_expected_messages_decide_how_rows_are_divided() -> None:
    """All messages come to one corner: it is divided more finely than by area."""
    subscriptions = [s._replace(terms=[1]) for s in random_subscriptions(6, 2000, largest=0.02)]
    crowd = [Message([1], point(0.9 + 0.001 * k, 0.95)) for k in range(90)]
    told, untold = empty("ap-tree f=16 theta_p=8"), empty("ap-tree f=16 theta_p=8")
    told.expect(batch_of(crowd))
    for matcher in (told, untold):
        insert(matcher, subscriptions)
        expect_sound(tree_of(matcher))
    assert answers(told, crowd) == answers(untold, crowd)
    root = [tree_of(matcher).keeper.tree.shape.edges[:3] for matcher in (told, untold)]
    assert root[0][-1] > root[1][-1]
    assert tree_of(told).expected is not None and tree_of(untold).expected is None


def test_long_rows_and_messages_are_matched_in_full() -> None:
    subscriptions = [s._replace(terms=sorted({*s.terms, *range(5)})) for s in random_subscriptions(8, 200)]
    messages = [m._replace(terms=sorted({*m.terms, *range(5)})) for m in random_messages(9, 20, largest=0.3)]
    assert answers(built("ap-tree f=4 theta_p=3", subscriptions), messages) == answers(
        built("brute", subscriptions), messages
    )


@pytest.mark.parametrize(
    "options",
    [
        {"f": 1},
        {"f": 2.5},
        {"theta_p": 0},
        {"partition": "best"},
        {"priority": "none"},
        {"copies": 0.5},
        {"theta_kl": -1},
        {"rebuild": 1},
    ],
)
def test_unusable_options_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        SubscriptionSet("ap-tree", built("brute", []).space, options)
