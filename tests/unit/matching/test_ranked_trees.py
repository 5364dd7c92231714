"""Ranked R-trees: annotations stay as if rebuilt, no delivered row is pruned, and most others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.matching.checks.cases import Message, Subscription, answers, batch_of, expect_equal, insert, remove
from nearcast.matching.checks.random_cases import (
    random_messages,
    random_subscriptions,
    tiny_messages,
    tiny_subscriptions,
)
from nearcast.matching.checks.rank_cases import built_ranked, ranked
from nearcast.matching.score import SLACK, place_share, score_of, weight_found
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import RANK
from nearcast.structures.ranked_rtree.bounds import BOTH, LIGHTEST, MISSED, NEITHER, PLACE, SMALLEST, WORDS, surplus_at
from nearcast.structures.ranked_rtree.bounds import place_bound as bound_of_place
from nearcast.structures.ranked_rtree.terms import ANYWHERE, EVERY, FAR, PREFIX, RankedRows, filed_terms
from nearcast.structures.ranked_rtree.tree import RankTree
from nearcast.structures.rtree.nodes import ROOT, rows_below
from tree_soundness import rows_of_lists, table_of

METHODS = ("rt-tree", "rt+-tree", "rt++-tree")
TREES = [f"{name} {options}" for name in METHODS for options in ("b=2 B=4", "b=3 B=8")]
STEPS = 15 if JIT_DISABLED else 60


def rank_params(alpha: float, threshold: float) -> dict[str, float]:
    return {"alpha": alpha, "threshold": threshold}


def used_nodes(tree: Any) -> list[int]:
    found, at = [ROOT], 0
    while at < len(found):
        node = found[at]
        at += 1
        if tree.levels[node] > 0:
            found.extend(tree.slots[node, : tree.counts[node]].tolist())
    return found


def tree_of(live: SubscriptionSet) -> RankTree:
    assert isinstance(live.method, RankTree)
    return live.method


def kept_at_nodes(method: RankTree) -> dict[tuple[int, int], Any]:
    """For each (node, token): how many rows stand there, or which."""
    notes = method.annotations.arrays
    return table_of(*notes.sets) | rows_of_lists(notes.lists, method.store.arrays.boxes)


def expect_as_rebuilt(live: SubscriptionSet) -> None:
    method = tree_of(live)
    nodes = used_nodes(method.tree.arrays)
    kept, bounds = kept_at_nodes(method), method.annotations.arrays.bounds[nodes].copy()
    n_sets = int(method.annotations.arrays.n_sets[0])
    method.annotations.build(method.tree.arrays, method.view())
    assert kept_at_nodes(method) == kept, "a token is stale"
    assert np.array_equal(method.annotations.arrays.bounds[nodes], bounds), "a bound is stale"
    assert method.annotations.arrays.n_sets[0] == n_sets


def changed_at_random(method: str, steps: int) -> SubscriptionSet:
    rng = np.random.default_rng(1)
    live = built_ranked(method, [])
    for step in range(steps):
        if rng.random() < 0.6:
            make = tiny_subscriptions if step % 2 else random_subscriptions
            fresh = {int(rng.integers(0, 250)): s for s in make(step, int(rng.integers(1, 25)), kind=RANK)}
            insert(live, [s._replace(id=number) for number, s in fresh.items()])
        else:
            remove(live, rng.integers(0, 250, int(rng.integers(1, 40))).tolist())
    return live


@pytest.mark.parametrize("method", TREES)
def test_after_random_updates_sets_and_bounds_are_those_of_a_fresh_start(method: str) -> None:
    live = changed_at_random(method, STEPS)
    assert len(live) > 20 and tree_of(live).tree.height >= 1
    expect_as_rebuilt(live)
    remove(live, range(0, 250, 2))
    expect_as_rebuilt(live)
    remove(live, range(250))
    assert not kept_at_nodes(tree_of(live)), "terms are left when no row is"


def test_bounds_are_the_best_of_the_rows_below() -> None:
    live = changed_at_random("rt-tree b=2 B=4", STEPS)
    method = tree_of(live)
    tree, params, boxes = method.tree.arrays, live.store.params.arrays, live.store.arrays.boxes
    for node in used_nodes(tree):
        below = [
            row for k in range(tree.counts[node]) for row in rows_below(tree, tree.slots[node, k], tree.levels[node])
        ]
        alpha, theta, own = (values[below] for values in (params.alphas, params.thresholds, params.own_weights))
        always = np.where(own > 0, 0.0, 1.0)
        bounds = method.annotations.arrays.bounds[node]
        assert bounds[BOTH] == pytest.approx((1 - theta).max()) and bounds[WORDS] == pytest.approx(
            (1 - alpha - theta).max()
        )
        assert bounds[PLACE] == pytest.approx((alpha + (1 - alpha) * always - theta).max())
        assert bounds[NEITHER] == pytest.approx(((1 - alpha) * always - theta).max())
        assert bounds[LIGHTEST] == min([*own[own > 0], np.inf])
        assert bounds[SMALLEST] == ((boxes[below, 2] - boxes[below, 0]) * (boxes[below, 3] - boxes[below, 1])).min()


def test_no_row_below_a_node_scores_above_the_bound() -> None:
    live = changed_at_random("rt-tree b=2 B=4", STEPS)
    method = tree_of(live)
    tree, params, rows = method.tree.arrays, live.store.params.arrays, live.store.arrays
    marks, tight = np.zeros(live.store.n_terms, np.uint8), 0
    messages = batch_of(tiny_messages(2, 10, RANK) + random_messages(3, 10, largest=0.5))
    for m in range(messages.size):
        marks[:] = 0
        terms = messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]
        marks[terms[terms < len(marks)]] = 1
        for node in used_nodes(tree):
            if tree.levels[node] == 0:
                continue
            for k in range(tree.counts[node]):
                child = tree.slots[node, k]
                place = bound_of_place(
                    tree.boxes[node, k], messages.boxes[m], method.annotations.arrays.bounds[child, SMALLEST]
                )
                for row in rows_below(tree, child, tree.levels[node]):
                    assert place_share(rows.boxes[row], messages.boxes[m]) <= place
                    own = params.own_weights[row]
                    words = min(1.0, weight_found(rows, row, marks, params.weights) / own) if own > 0 else 0.0
                    surplus = score_of(rows, params, row, marks, messages.boxes[m]) - params.thresholds[row]
                    bound = surplus_at(method.annotations.arrays.bounds, child, place, words)
                    assert surplus <= bound + SLACK
                    tight += surplus > bound - 0.05
    assert tight > 100, "bounds that are always far off prune nothing"


def prefixes(terms: list[int], alpha: float, threshold: float) -> tuple[list[int], list[int]]:
    """Near and far prefix under the weights of the checks: 0 weighs 1, 1 weighs 3, 2 nothing, 3 weighs 2."""
    live = built_ranked("brute", [ranked(1, terms, (0.0, 0.0, 1.0, 1.0), alpha, threshold)])
    terms = filed_terms(RankedRows(live.store.arrays, live.store.params.arrays, PREFIX), 0).tolist()
    return [t for t in terms if t < FAR], [t if t == ANYWHERE else t - FAR for t in terms if t >= FAR]


def test_prefixes_are_the_heaviest_terms_that_the_others_cannot_replace() -> None:
    assert prefixes([0, 1, 3], 0.5, 1.0) == ([1], [])  # near: all words are needed; far: never enough
    assert prefixes([0, 1, 3], 0.5, 0.75) == ([1, 3], [])  # half of 6: 1 and 3 without 1 are just enough, so 3 too
    assert prefixes([0, 1, 3], 0.0, 0.5) == ([1, 3], [1, 3])
    assert prefixes([0, 1, 3], 0.0, 0.51) == ([1], [1])
    assert prefixes([0, 1, 3], 0.25, 0.75) == ([1], [1])  # far: 1 of 1 needed; near: two thirds of 6, 3 is less
    assert prefixes([0, 1, 2, 3], 0.5, 0.25) == ([1, 3, 0], [1, 3])  # place may be enough: all that weigh
    assert prefixes([0, 1, 3], 1.0, 0.5) == ([1, 3, 0], [])
    assert prefixes([0, 1, 3], 0.5, 0.0) == ([1, 3, 0], [ANYWHERE])  # no words are needed
    assert prefixes([], 0.5, 0.75) == prefixes([2], 0.5, 0.75) == ([], [])
    assert prefixes([], 0.5, 0.5) == prefixes([2], 0.5, 0.5) == ([], [ANYWHERE])  # half of the score, always


def test_every_token_stands_where_it_weighs() -> None:
    live = built_ranked("brute", [ranked(1, [0, 1, 2, 3], (0.0, 0.0, 1.0, 1.0))])
    ranked_rows = RankedRows(live.store.arrays, live.store.params.arrays, EVERY)
    assert sorted(t for t in filed_terms(ranked_rows, 0).tolist() if t < FAR) == [0, 1, 3]


@pytest.mark.parametrize("method", ["rt-tree", "rt+-tree", "rt++-tree"])
def test_far_terms_are_listed_at_the_root_and_near_ones_where_the_style_says(method: str) -> None:
    live = changed_at_random(f"{method} b=2 B=4", STEPS)
    found = tree_of(live)
    tree, lists = found.tree.arrays, rows_of_lists(found.annotations.arrays.lists, live.store.arrays.boxes)
    assert found.tree.height >= 2
    for row in np.flatnonzero(tree.leaves >= 0):
        terms = filed_terms(found.view(), row).tolist()
        where = {key for key, rows in lists.items() if row in rows}
        assert {term for node, term in where if node == ROOT} == {t for t in terms if t >= FAR}
        near = sorted((int(tree.levels[node]) for node, token in where if token < FAR), reverse=True)
        depths = [found.tree.height - min(i + 1, found.tree.height) for i, t in enumerate(terms) if t < FAR]
        assert near == (depths if method == "rt++-tree" else []), "the i-th token at depth i, the rest in the leaf"


def test_bounds_by_missed_terms_fall_from_all_words_to_none() -> None:
    box = (0.0, 0.0, 1.0, 1.0)
    subscriptions = [ranked(1, [0, 1, 3], box, 0.5, 0.5), ranked(2, [0], box, 0.25, 0.75)]
    bounds = tree_of(built_ranked("rt++-tree", subscriptions)).annotations.arrays.bounds[ROOT]
    # The weights are 1, 3 and 2: without the heaviest a half is left, without two a sixth.
    assert bounds[MISSED:LIGHTEST] == pytest.approx([0.25, -0.25, 1 / 12, -5 / 12, 0.0, -0.5])
    assert bounds[BOTH] == 0.5 and bounds[PLACE] == 0.0 and bounds[WORDS] == 0.0 and bounds[NEITHER] == -0.5


def workload(n: int, words_alone: bool) -> tuple[list[Subscription], list[Message]]:
    """Thresholds of 0.6 to 0.9. Where words alone are never enough, place prunes; where they are, terms do."""
    rng = np.random.default_rng(7)
    drawn = random_subscriptions(8, n, vocabulary=400, largest=0.1, kind=RANK)
    alphas = rng.uniform(0.1, 0.35, n) if words_alone else rng.uniform(0.45, 0.8, n)
    thetas = rng.uniform(0.6, 0.9, n)
    terms = [s.terms or [int(rng.integers(400))] for s in drawn]
    made = zip(drawn, terms, alphas, thetas, strict=True)
    return [s._replace(terms=t, params=rank_params(float(a), float(h))) for s, t, a, h in made], random_messages(
        9, 20, vocabulary=400
    ) + random_messages(10, 20, vocabulary=400, largest=0.1)


CEILINGS = {  # share of rows compared (all, where a scan is cheaper), share of nodes visited
    ("rt-tree", False): (0.03, 0.06),
    ("rt-tree", True): (0.12, 0.05),
    ("rt+-tree", False): (0.03, 0.06),
    ("rt++-tree", False): (0.08, 0.06),
    ("rt+-tree", True): (0.12, 0.05),
    ("rt++-tree", True): (0.25, 0.05),
}


@pytest.mark.parametrize(("method", "words_alone"), CEILINGS)
def test_most_nodes_and_rows_are_never_looked_at(method: str, words_alone: bool) -> None:
    subscriptions, messages = workload(2000, words_alone)
    live = built_ranked(f"{method} b=5 B=10", subscriptions)
    expect_equal(live, built_ranked("brute", subscriptions), messages)
    pairs = len(subscriptions) * len(messages)
    n_nodes = len(used_nodes(tree_of(live).tree.arrays)) * len(messages)
    compared, visited = live.stats.candidates / pairs, live.stats.nodes / n_nodes
    most_rows, most_nodes = CEILINGS[method, words_alone]
    assert compared <= most_rows and visited <= most_nodes, f"{compared:.1%} of pairs, {visited:.1%} of nodes"


@pytest.mark.parametrize("method", METHODS)
def test_where_nearly_all_is_delivered_each_row_is_read_once(method: str) -> None:
    drawn, messages = workload(200 if JIT_DISABLED else 1000, words_alone=True)
    subscriptions = [s._replace(params=rank_params(0.1, 0.05)) for s in drawn]
    live = built_ranked(f"{method} b=5 B=10", subscriptions)
    everything = [m._replace(terms=range(400)) for m in messages]
    expect_equal(live, built_ranked("brute", subscriptions), everything)
    assert live.stats.candidates == len(subscriptions) * len(everything)


def test_terms_prune_where_place_does_not() -> None:
    drawn, messages = workload(500 if JIT_DISABLED else 2000, words_alone=False)
    subscriptions = [s._replace(params=rank_params(0.3, 0.85)) for s in drawn]
    for method in ("rt-tree", "rt+-tree"):
        live, all_words = (
            built_ranked(f"{method} b=5 B=10", subscriptions),
            built_ranked(f"{method} b=5 B=10", subscriptions),
        )
        answers(live, messages)
        answers(all_words, [m._replace(terms=range(400)) for m in messages])
        shares = live.stats.nodes / all_words.stats.nodes, live.stats.candidates / all_words.stats.candidates
        assert shares[0] < 0.9 and shares[1] < 0.8, f"{method}: {shares} of nodes and rows that place alone leaves"
