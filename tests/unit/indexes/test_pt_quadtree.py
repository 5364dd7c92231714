"""`pt-quadtree` from inside: sound after every change, exactly the nodes of the paper's rule, and a bounded tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import nearcast.indexes  # noqa: F401  registers every method
from changes_in_steps import Step, expect_sound_in_rounds, expect_sound_in_steps
from changing_world import World, expect_right
from nearcast.arrays.intmap import ABSENT
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
from nearcast.indexes.lfilter.costs import estimate_lists
from nearcast.matching.checks.cases import (
    EVERYWHERE,
    UNIT,
    Message,
    Subscription,
    answers,
    batch_of,
    built,
    empty,
    insert,
    point,
    remove,
    rows_of,
)
from nearcast.matching.checks.random_cases import random_messages, random_subscriptions
from nearcast.matching.store import RowStore
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.structures.quadtree.nodes import NONE, ROOT
from nearcast.structures.quadtree.pivots import covers
from nearcast.structures.quadtree.quadtrees import PivotalQuadtree, QuadOptions
from nearcast.structures.quadtree.search import visited_nodes
from quad_soundness import cells_at, cells_of, expect_sound, span_of_box
from quad_steps import CHANGES, MESSAGES

DEEP = [
    "pt-quadtree tau_num=2 copies=4",
    "pt-quadtree tau_num=3 copies=9 depth=5",
    "pt-quadtree tau_num=1 lists=mx-cif depth=6",
    "pt-quadtree tau_num=6 copies=2 tau_area=0.01",
]


def tree_of(matcher: SubscriptionSet) -> PivotalQuadtree:
    return matcher.method.structure  # type: ignore[attr-defined, no-any-return]


def expect_sound_method(matcher: SubscriptionSet) -> None:
    rows = matcher.store.live_rows()
    rows = rows[matcher.store.arrays.n_terms[rows] > 0].tolist()
    expect_sound(tree_of(matcher), matcher.store, rows, {row: row for row in rows})


@pytest.mark.parametrize("method", DEEP)
@settings(max_examples=10 if JIT_DISABLED else 50, deadline=None)
@given(steps=CHANGES)
def test_every_step_leaves_cells_lists_and_both_sets_exact(method: str, steps: list[Step]) -> None:
    expect_sound_in_steps(method, steps, expect_sound_method, MESSAGES)


@pytest.mark.parametrize("method", DEEP)
def test_hundreds_of_changes_leave_the_tree_exact(method: str) -> None:
    world = World(7, 150 if JIT_DISABLED else 250, vocabulary=40)
    expect_sound_in_rounds(method, world, 6, expect_sound_method)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pt-quadtree", "pt-quadtree tau_num=4", "pt-quadtree tau_num=4 lists=mx-cif"])
def test_a_hundred_thousand_changes_leave_right_answers(method: str) -> None:
    world, matcher = World(8, 20_000, vocabulary=2_000), empty(method)
    for check in range(20):
        for _ in range(50):
            if world.rng.random() < (0.3 if check % 2 else 0.7):
                matcher.insert(world.subscribe(100))
            else:
                matcher.remove(world.unsubscribe(100))
        expect_right(matcher, world, 15)


@pytest.mark.parametrize("method", DEEP)
def test_a_tree_grows_from_nothing_and_shrinks_to_one_leaf(method: str) -> None:
    subscriptions = random_subscriptions(1, 40 if JIT_DISABLED else 120, largest=0.2)
    matcher = empty(method)
    for subscription in subscriptions:
        insert(matcher, [subscription])
    expect_sound_method(matcher)
    assert tree_of(matcher).arrays.nodes.leaves[ROOT] > 10
    for subscription in subscriptions[:-1]:
        remove(matcher, [subscription.id])
    expect_sound_method(matcher)
    remove(matcher, [subscriptions[-1].id])
    assert tree_of(matcher).arrays.nodes.children[ROOT] == NONE and tree_of(matcher).arrays.size[0] == 0


@pytest.mark.parametrize("lists", ["leaf", "mx-cif"])
@pytest.mark.parametrize("box", [(0.3, 0.3, 0.31, 0.31), point(0.3, 0.7), (0.5, 0.0, 0.5, 1.0)])
def test_a_thousand_identical_boxes_stay_one_leaf(lists: str, box: tuple[float, float, float, float]) -> None:
    n = 50 if JIT_DISABLED else 1000
    same = [Subscription(i, [i % 7, 9], box) for i in range(n)]
    matcher = built(f"pt-quadtree tau_num=4 lists={lists}", same[: n // 2])
    insert(matcher, same[n // 2 :])
    nodes, entries = tree_of(matcher).arrays.nodes, tree_of(matcher).arrays.lists.counts.sum()
    assert nodes.leaves[ROOT] == 1 and entries == n
    insert(matcher, [Subscription(n, [9], (0.9, 0.9, 0.9, 0.9))])  # something to part from them, far away
    expect_sound_method(matcher)
    assert len(answers(matcher, [Message(list(range(10)), box)])[0]) == n


def test_lists_follow_numbers_that_are_not_rows() -> None:
    subscriptions = random_subscriptions(3, 200, largest=0.3)
    store = RowStore(UNIT)
    rows = store.add(*rows_of(subscriptions))
    numbers = np.random.default_rng(4).permutation(len(rows)).astype(np.int64)
    by_row = dict(enumerate(numbers.tolist()))
    tree = PivotalQuadtree(store, UNIT, QuadOptions(tau_num=4, copies=4))
    tree.build(rows[:80], numbers)
    tree.insert(rows[80:], numbers)
    expect_sound(tree, store, rows.tolist(), by_row)
    wider = 10 * numbers + 3  # numbered anew: the same order
    tree.remove(rows[20:150], wider)
    kept = rows[:20].tolist() + rows[150:].tolist()
    expect_sound(tree, store, kept, by_row)


def pivotal_sets(tree: PivotalQuadtree) -> dict[int, set[int]]:
    """By definition: the pivotal terms of a node's own list and of all lists below it."""
    quad, cells = tree.arrays, cells_of(tree.arrays)
    found: dict[int, set[int]] = {}
    for node in sorted(cells, key=lambda each: -cells[each][0]):
        first = int(quad.lists.offsets[node])
        found[node] = set(tree.pivots[quad.lists.rows[first : first + quad.lists.counts[node]]].tolist())
        if quad.nodes.children[node] != NONE:
            found[node].update(*(found[int(quad.nodes.children[node]) + k] for k in range(4)))
    return found


def visited_by_definition(tree: PivotalQuadtree, message: Message) -> set[int]:
    """Place and one of the sets; below a term of the cover set place alone. A covered term is in no set below."""
    quad, cells, pivotal = tree.arrays, cells_of(tree.arrays), pivotal_sets(tree)
    span = span_of_box(quad, np.array(message.box))
    found, waiting = set(), [(ROOT, False, frozenset(message.terms))]
    while waiting:
        node, covered, terms = waiting.pop()
        if cells[node] not in cells_at(span, cells[node][0]) or not pivotal[node]:
            continue
        if not covered and not terms & pivotal[node]:
            continue
        found.add(node)
        first = int(quad.nodes.children[node])
        if first != NONE:
            cover = set.intersection(*(pivotal[first + k] for k in range(4)))
            for child in range(first, first + 4):
                waiting.append((child, covered or bool(terms & cover), terms - cover))
    return found


@pytest.mark.parametrize("method", ["pt-quadtree tau_num=8", "pt-quadtree tau_num=8 lists=mx-cif"])
@pytest.mark.parametrize("vocabulary", [30, 400])
def test_exactly_the_nodes_of_the_papers_rule_are_visited(method: str, vocabulary: int) -> None:
    matcher = built(method, random_subscriptions(5, 250, vocabulary, largest=0.1))
    short = random_messages(2, 15, vocabulary) + random_messages(3, 15, vocabulary, largest=0.4)
    long = [m._replace(terms=sorted({*m.terms, *range(0, vocabulary, 3)})) for m in short[::3]]
    tree, pruned = tree_of(matcher), 0
    for message in short + long:
        batch = batch_of([message])
        found = visited_nodes(tree.arrays, batch.terms[batch.terms < matcher.store.n_terms], batch.boxes[0]).tolist()
        assert len(found) == len(set(found))
        assert set(found) == visited_by_definition(tree, message), message
        pruned += len(cells_of(tree.arrays)) - len(found)
    assert pruned > 0


def test_copies_bound_what_is_stored_and_more_of_them_leave_fewer_candidates() -> None:
    n = 300 if JIT_DISABLED else 3000
    subscriptions = random_subscriptions(6, n, largest=0.3) + [Subscription(-1000, [1], EVERYWHERE)]
    seen, entries = [], []
    for copies in (1, 4, 16):
        matcher = built(f"pt-quadtree tau_num=16 copies={copies}", subscriptions)
        answers(matcher, random_messages(7, 40))
        seen.append(matcher.stats.candidates)
        entries.append(int(tree_of(matcher).arrays.nodes.entries[ROOT]))
        assert entries[-1] <= copies * len(subscriptions)
    assert entries[0] == len(subscriptions) < entries[1] < entries[2]
    assert seen[0] > 1.2 * seen[1] > 1.2 * seen[2]


def test_a_covered_term_is_looked_up_once_and_then_place_alone_decides() -> None:
    corners = [Subscription(i, [0], (x, y, x + 0.1, y + 0.1)) for i, (x, y) in enumerate(CORNERS)]
    rest = [Subscription(10 + i, [1 + i], (x, y, x + 0.1, y + 0.1)) for i, (x, y) in enumerate(CORNERS)]
    tree = tree_of(built("pt-quadtree tau_num=2 depth=1 lists=mx-cif", corners + rest))
    box = np.array(EVERYWHERE)
    assert len(visited_nodes(tree.arrays, np.array([0], np.int32), box)) == 5
    assert len(visited_nodes(tree.arrays, np.array([3], np.int32), box)) == 2
    assert len(visited_nodes(tree.arrays, np.array([9], np.int32), box)) == 0


def test_a_token_of_three_quarters_does_not_cover_and_one_of_four_does() -> None:
    """Of the paper's example, the piece that agrees with its rules: leaves with d, b, b, b."""
    b, d = 0, 1
    leaves = [
        Subscription(i, [term], (x, y, x, y))
        for i, (term, (x, y)) in enumerate(zip((d, b, b, b), CORNERS, strict=True))
    ]
    matcher = built("pt-quadtree tau_num=2 depth=1", leaves)
    assert sets_of(tree_of(matcher)) == (set(), {b, d})
    insert(matcher, [Subscription(9, [b], (*CORNERS[0], *CORNERS[0]))])
    assert sets_of(tree_of(matcher)) == ({b}, {d})
    remove(matcher, [2])
    assert sets_of(tree_of(matcher)) == (set(), {b, d})


def sets_of(tree: PivotalQuadtree) -> tuple[set[int], set[int]]:
    """The root's cover set and non-cover set, as the table has them."""
    keys, values = tree.arrays.table
    root = (values != ABSENT) & (keys >> 32 == ROOT)
    terms = {int(key): bool(covers(value)) for key, value in zip(keys[root], values[root], strict=True)}
    return {t for t, is_cover in terms.items() if is_cover}, {t for t, is_cover in terms.items() if not is_cover}


CORNERS = [(0.1, 0.1), (0.7, 0.1), (0.1, 0.7), (0.7, 0.7)]


def test_the_estimate_for_a_range_is_exact_where_cells_are_whole_and_within_bounds_elsewhere() -> None:
    matcher = built("pt-quadtree tau_num=4 copies=1 depth=4", random_subscriptions(9, 200, largest=0.05))
    quad = tree_of(matcher).arrays
    for level in range(4):
        leaves, entries = estimate_lists(quad, quad.nodes.bounds, level)
        occupied = (quad.nodes.children == NONE) & (quad.nodes.entries > 0)
        assert entries == 200 and occupied.sum() <= leaves <= quad.nodes.leaves[ROOT]
    assert estimate_lists(quad, np.array(point(0.3, 0.3)), 9)[0] == 1.0


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("pt-quadtree tau_num=0", "tau_num is a whole number"),
        ("pt-quadtree depth=25", "from 1 to 24"),
        ("pt-quadtree copies=1.5", "copies is a whole number"),
        ("pt-quadtree tau_area=2", "share of the whole"),
        ("pt-quadtree lists=grid", "one of leaf, mx-cif"),
    ],
)
def test_unusable_options_are_refused_by_name(method: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        empty(method)
