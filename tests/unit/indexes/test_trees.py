"""The tree methods from inside: soundness under changes, and how much each of them visits."""

from __future__ import annotations

import numpy as np
import pytest

import nearcast.indexes  # noqa: F401  registers every method
from changing_world import World, expect_right
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.errors import InvalidInput
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
from nearcast.structures.rtree.nodes import ROOT
from nearcast.structures.rtree.term_search import counted_terms, visited_nodes
from nearcast.structures.rtree.term_sets import EVERY_TERM, TermRows
from tree_soundness import expect_sound, expect_sound_tree, terms_of

DEEP = [
    "rt-tree b=2 B=4",
    "rt+-tree b=2 B=5 cells=9",
    "rt++-tree b=2 B=4 cells=9",
    "rt++-tree b=3 B=7 tokens=df",
    "ir-tree b=2 B=4",
]
BROAD = ["rt-tree b=4 B=12", "rt+-tree b=3 B=9 tokens=df", "rt++-tree b=4 B=10", "ir-tree b=5 B=12"]
UPDATES = 300 if JIT_DISABLED else 3_000


def change(method: str, updates: int, n_ids: int, checks: int) -> None:
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
        expect_sound(matcher.method)  # type: ignore[arg-type]
        expect_right(matcher, world, 15)


@pytest.mark.parametrize("method", DEEP + BROAD)
def test_every_change_leaves_the_tree_and_its_tokens_exact(method: str) -> None:
    change(method, UPDATES, 400, checks=6)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rt-tree", "rt+-tree", "rt++-tree", "ir-tree", *DEEP])
def test_a_hundred_thousand_changes_leave_the_tree_and_its_tokens_exact(method: str) -> None:
    change(method, 100_000, 20_000, checks=8)


@pytest.mark.parametrize("method", DEEP)
def test_a_tree_grows_from_nothing_and_shrinks_to_nothing(method: str) -> None:
    subscriptions = random_subscriptions(1, 60 if JIT_DISABLED else 200)
    matcher = built(method, subscriptions[:5])
    heights = set()
    for subscription in subscriptions[5:]:
        insert(matcher, [subscription])
        heights.add(tree_method(matcher).tree.height)
    expect_sound(tree_method(matcher))
    for subscription in subscriptions:
        remove(matcher, [subscription.id])
        heights.add(tree_method(matcher).tree.height)
        expect_sound_tree(tree_method(matcher))
    expect_sound(tree_method(matcher))
    assert heights >= {0, 1, 2}


def tree_method(matcher: SubscriptionSet):  # type: ignore[no-untyped-def]
    return matcher.method


def visited(matcher: SubscriptionSet, message: Message) -> list[int]:
    """The nodes that `rt-tree` or `rt+-tree` visits."""
    method, batch = tree_method(matcher), batch_of([message])
    chosen = getattr(method, "chosen", EVERY_TERM)
    terms = batch.terms[batch.terms < matcher.store.n_terms]
    marks = np.zeros(matcher.store.n_terms, np.uint8)
    marks[terms] = 1
    view = TermRows(matcher.store.arrays, chosen)
    table = method.annotations.arrays
    known = counted_terms(table, terms)
    return visited_nodes(method.tree.arrays, table, view, batch.boxes[0], known, marks).tolist()


def visited_by_definition(matcher: SubscriptionSet, message: Message) -> set[int]:
    """The root, and what overlaps, stands with a token of the message, and has a parent that is visited."""
    method = tree_method(matcher)
    tree, chosen = method.tree.arrays, getattr(method, "chosen", None)
    tokens: dict[int, set[int]] = {}
    for row, path in expect_sound_tree(method).items():
        for node in path:
            own = terms_of(method, row) if chosen is None else [int(chosen.of_rows[row])]
            tokens.setdefault(node, set()).update(own)
    found, waiting = {ROOT}, [ROOT]
    x0, y0, x1, y1 = message.box
    while waiting:
        node = waiting.pop()
        for k in range(int(tree.counts[node]) if tree.levels[node] else 0):
            child, (xmin, ymin, xmax, ymax) = int(tree.slots[node, k]), tree.boxes[node, k]
            inside = xmin <= x1 and xmax >= x0 and ymin <= y1 and ymax >= y0
            if inside and tokens[child] & set(message.terms):
                found.add(child)
                waiting.append(child)
    return found


LONG = [m._replace(terms=sorted({*m.terms, *range(40, 400, 2)})) for m in random_messages(4, 6, largest=0.3)]
MESSAGES = random_messages(2, 12, vocabulary=400) + random_messages(3, 8, vocabulary=400, largest=0.4) + LONG


@pytest.mark.parametrize("method", ["rt-tree b=3 B=8", "rt+-tree b=3 B=8", "rt+-tree b=2 B=6 tokens=df"])
def test_exactly_the_nodes_that_overlap_and_share_a_token_are_visited(method: str) -> None:
    matcher = built(method, random_subscriptions(5, 250, vocabulary=400, largest=0.2))
    for message in MESSAGES:
        found = visited(matcher, message)
        assert len(found) == len(set(found))
        assert set(found) == visited_by_definition(matcher, message), message


@pytest.mark.parametrize("tokens", ["random", "df", "idf", "locality"])
def test_representatives_visit_a_subset_of_the_nodes_that_all_tokens_visit(tokens: str) -> None:
    subscriptions = random_subscriptions(6, 600, vocabulary=400, largest=0.1)
    all_tokens, one_token = (
        built("rt-tree b=4 B=8", subscriptions),
        built(f"rt+-tree b=4 B=8 tokens={tokens}", subscriptions),
    )
    slots = [tree_method(matcher).tree.arrays.slots for matcher in (all_tokens, one_token)]
    assert np.array_equal(*slots), "both have the same tree"
    fewer = 0
    for message in MESSAGES:
        more, less = set(visited(all_tokens, message)), set(visited(one_token, message))
        assert less <= more
        fewer += len(more) - len(less)
    assert fewer > 0


def nodes_visited(method: str, subscriptions: list[Subscription], messages: list[Message]) -> int:
    matcher = built(method, subscriptions)
    answers(matcher, messages)
    return matcher.stats.nodes


def test_each_tree_of_the_paper_visits_fewer_nodes_than_the_one_before() -> None:
    subscriptions = random_subscriptions(7, 500 if JIT_DISABLED else 3000, vocabulary=1000, largest=0.1)
    messages = random_messages(8, 30, vocabulary=1000)
    ir, rt, plus, plus_plus = (
        nodes_visited(f"{name} b=4 B=8", subscriptions, messages)
        for name in ("ir-tree", "rt-tree", "rt+-tree", "rt++-tree")
    )
    assert ir == rt > 1.2 * plus and plus > 1.2 * plus_plus, (ir, rt, plus, plus_plus)


def test_a_row_on_schedule_leads_to_its_own_child_alone_also_in_a_long_message() -> None:
    subscriptions = random_subscriptions(7, 500 if JIT_DISABLED else 3000, vocabulary=1000, largest=0.1)
    messages = [m._replace(terms=sorted({*m.terms, *range(0, 1000, 4)})) for m in random_messages(8, 20)]
    plus, plus_plus = (nodes_visited(f"{n} b=4 B=8", subscriptions, messages) for n in ("rt+-tree", "rt++-tree"))
    assert plus_plus < 0.5 * plus, (plus, plus_plus)


def test_locality_visits_fewer_nodes_where_words_are_local() -> None:
    """Everyone in the west asks for word 0, which is rare in the world; the other words are rare in the west alone."""
    rng = np.random.default_rng(9)
    n_west, n_east = (60, 600) if JIT_DISABLED else (200, 4000)

    def somewhere(x0: float) -> tuple[float, float, float, float]:
        x, y = x0 + 0.45 * rng.random(), rng.random()
        return (x, y, x + 0.02, y + 0.02)

    west = [Subscription(i, [0, int(rng.integers(1, 11))], somewhere(0.0)) for i in range(n_west)]
    east = [Subscription(10_000 + i, [int(rng.integers(1, 11)), 11], somewhere(0.5)) for i in range(n_east)]
    messages = [Message([0, int(rng.integers(1, 11)) * (i % 2)], (0.0, 0.0, 0.45, 1.0)) for i in range(20)]
    for name, share in (("rt+-tree b=2 B=4", 0.8), ("rt++-tree b=2 B=4", 1.0)):
        idf, local = (nodes_visited(f"{name} {how}", west + east, messages) for how in ("tokens=idf", "cells=100"))
        assert local <= share * idf, (name, local, idf)


def test_a_row_that_cannot_overlap_keeps_no_subtree_alive() -> None:
    far = [Subscription(i, [0, 1, 2, 3, 4], (0.9, 0.9, 0.9 + i / 1000, 1.0)) for i in range(40)]
    near = [Subscription(100 + i, [5, 6, 7, 8, 9], (0.1, 0.1, 0.1 + i / 1000, 0.2)) for i in range(40)]
    link = [Subscription(500, [10, 11, 12], EVERYWHERE)]  # makes some node's box cover all
    matcher = built("rt++-tree b=2 B=4", far + near + link)
    answers(matcher, [Message(list(range(5)), point(0.15, 0.15))])
    assert matcher.stats.matches == 0
    assert matcher.stats.nodes <= 8, matcher.stats


def test_one_token_shared_by_all_is_split_in_time() -> None:
    n = 300 if JIT_DISABLED else 6000
    matcher = built("rt++-tree b=2 B=4", [Subscription(i, [0], (0.2, 0.2, 0.6, 0.6)) for i in range(n // 3)])
    insert(matcher, [Subscription(i, [0], (0.2, 0.2, 0.6, 0.6)) for i in range(n // 3, n)])
    expect_sound(tree_method(matcher))
    assert len(answers(matcher, [Message([0], point(0.2, 0.6))])[0]) == n


@pytest.mark.parametrize("method", ["rt-tree", "rt+-tree", "rt++-tree", "ir-tree"])
def test_terms_that_came_with_rows_of_other_structures_are_within_the_marks(method: str) -> None:
    matcher = built(method, [Subscription(1, [0], EVERYWHERE)])
    message = Message([0, 5_000_000], point(0.5, 0.5))
    assert answers(matcher, [message]) == [[1]]
    insert(matcher, [Subscription(2, [], EVERYWHERE, [5_000_000])])  # the method never sees this row: it has no term
    assert answers(matcher, [message]) == [[1]]


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        ("rt-tree b=1 B=4", "2 <= b <= B/2; they are 1 and 4"),
        ("rt-tree b=3 B=5", "they are 3 and 5"),
        ("ir-tree B=63", "B is at most 62"),
        ("rt+-tree tokens=rare", "tokens is one of random, df, idf, locality, not 'rare'"),
        ("rt++-tree cells=0", "cells is a whole number from 1"),
    ],
)
def test_options_out_of_range_are_refused(method: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        empty(method)
