"""norm-lists: its buckets stay right, it prunes, its buffers have a limit; the message index has true headers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.topk.buffered.buffers import UNIT as ROOM_UNIT
from nearcast.topk.dissemination.norm_lists.lists import N_LISTS, NEVER, NONE, bucket_of
from nearcast.topk.methods.norm_lists import NormListsTop
from nearcast.topk.refill.kd_order import BLOCK
from nearcast.topk.score import THETA

UNIT = (0.0, 0.0, 1.0, 1.0)


def drawn(rng: np.random.Generator, n: int, n_words: int, first_id: int = 0) -> dict[str, Any]:
    words = [[f"w{int(n_words * draw**3)}" for draw in rng.random(rng.integers(1, 5))] for _ in range(n)]
    places = {"x": rng.random(n), "y": rng.random(n)}
    return {"id": np.arange(first_id, first_id + n), "tokens": [sorted(set(each)) for each in words], **places}


def played(method: str, n_words: int = 60, **options: Any) -> nc.TopK:
    rng, n = np.random.default_rng(5), 600
    top = nc.TopK(
        drawn(rng, n, n_words) | {"k": np.full(n, 3), "alpha": rng.random(n)}, 500, method, space=UNIT, **options
    )
    for k in range(4):
        top.publish(drawn(rng, 400, n_words, 1000 * k))
        top.subscribe(drawn(rng, 40, n_words, 300 * k) | {"k": np.full(40, 2)})
    return top


def test_every_slot_is_in_a_bucket_that_a_search_reaches() -> None:
    method = played("norm-lists", 15).method
    assert isinstance(method, NormListsTop)
    lists, slots = method.dissemination.lists, method.dissemination.slots
    long_lists = [k for k in range(method.dissemination._head[N_LISTS]) if lists.tables[k] != NONE]
    assert len(long_lists) > 3
    moved = 0
    for k in long_lists:
        ends, start = lists.ends[lists.tables[k]], lists.starts[k]
        assert (np.diff(ends) >= 0).all() and ends[NEVER] == lists.counts[k]
        for slot in range(start, start + lists.counts[k]):
            bucket = int(np.searchsorted(ends, slot - start, side="right"))
            assert bucket <= bucket_of(slots, slot)
            moved += bucket > 0
            row, rank = slots.rows[slot], slots.ranks[slot]
            assert lists.own[method.rows.arrays.offsets[row] + rank] == slot
    assert moved > 50


def test_it_scores_few_of_the_rows_that_share_a_term() -> None:
    ours, plain = played("norm-lists").stats, played("term-lists").stats
    assert ours["inserts"] == plain["inserts"] > 1000
    assert ours["scored"] < 0.5 * plain["scored"] and ours["scanned"] < plain["scanned"]


def test_group_and_cell_bounds_prune_more_than_bounds_on_single_rows() -> None:
    whole, single = (played("skype", 400, leaf=50, prune=name).stats for name in ("igpt", "ipt"))
    assert whole["scored"] == single["scored"] and whole["scanned"] < single["scanned"]
    assert min(whole[name] for name in ("groups_pruned", "ended_early", "prefix_pruned")) > 0


def test_cells_far_from_a_message_are_pruned() -> None:
    rng = np.random.default_rng(7)
    table = drawn(rng, 400, 3) | {"k": np.full(400, 1), "alpha": np.full(400, 0.95)}
    top = nc.TopK(table, 500, "skype", space=UNIT, leaf=20)
    top.publish(drawn(rng, 300, 3, 0))
    top.subscribe(drawn(rng, 60, 3, 1000) | {"k": np.full(60, 1), "alpha": np.full(60, 0.95)})  # makes limits anew
    before = top.stats
    top.publish(drawn(rng, 100, 3, 5000))
    cells, pruned = (top.stats[name] - before[name] for name in ("cells", "cells_pruned"))
    assert pruned > 0.2 * cells


def test_buffers_have_a_limit_when_every_message_is_worse_than_the_one_before() -> None:
    """No message dominates another then: a k-skyband would keep the whole window."""
    table = {"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0], "k": [5], "alpha": [1.0]}
    top = nc.TopK(table, 5000, space=UNIT)
    top.publish({"id": np.arange(3000), "text": ["a"] * 3000, "x": np.linspace(0, 1, 3000), "y": np.zeros(3000)})
    method = top.method
    assert isinstance(method, NormListsTop)
    assert top.results(1)["message"].to_pylist() == [0, 1, 2, 3, 4]
    assert method.buffers.arrays.counts[0] <= method.buffers.arrays.sizes[0, 0] < 20


@pytest.mark.parametrize("refill", ["raising", "kmax"])
def test_memory_has_a_bound_when_one_stream_fills_every_buffer(refill: str) -> None:
    """The bound of docs/measurements/top-k.md: two rooms of the largest size, a tenth more, and 24 bytes of columns."""
    n, k = 300, 20
    table = {"id": np.arange(n), "tokens": [["a"]] * n, "x": np.zeros(n), "y": np.zeros(n), "k": np.full(n, k)}
    top = nc.TopK(table | {"alpha": np.ones(n)}, 250, space=UNIT, refill=refill)
    method = top.method
    assert isinstance(method, NormListsTop)
    most = int(method.policy.sizes(np.array([k]))[0, 0]) + 1
    bound = 24 + 6 * 2.2 * (most + ROOM_UNIT)
    reached = 0
    for number, x in enumerate(np.linspace(0, 1, 400)):  # each message is worse than the one before
        top.publish({"id": [number], "text": ["a"], "x": [x], "y": [0.0]})
        rows = len(method.buffers.arrays.counts)  # room for further subscriptions counts as subscriptions
        assert method.buffers.nbytes <= bound * rows
        reached = max(reached, int(method.buffers.arrays.counts[:n].min()))
    assert reached >= most - 1, "the stream did not fill the buffers"


def test_a_message_below_the_kth_score_enters_the_buffer_without_a_change() -> None:
    table = {"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0], "k": [2], "alpha": [1.0]}
    top = nc.TopK(table, 50, space=UNIT)
    top.publish({"id": np.arange(20), "text": ["a"] * 20, "x": np.linspace(0.1, 0.9, 20), "y": np.zeros(20)})
    method = top.method
    assert isinstance(method, NormListsTop)
    theta, kth = float(top.rows.arrays.numbers[0, THETA]), top.results(1)["score"][1].as_py()
    assert 0.0 < theta < kth, "a full buffer has a theta below its k-th score"
    x = np.sqrt(2) * (1 - (theta + kth) / 2)
    before, inserts = int(method.buffers.arrays.counts[0]), top.stats["inserts"]
    changes = top.publish({"id": [99], "text": ["a"], "x": [x], "y": [0.0]})
    assert changes.num_rows == 0 and top.stats["inserts"] == inserts + 1
    assert method.buffers.arrays.counts[0] == before + 1 or method.buffers.arrays.counts[0] < before, "it shrank"
    below = top.publish({"id": [100], "text": ["a"], "x": [1.0], "y": [1.0]})
    assert below.num_rows == 0 and top.stats["inserts"] == inserts + 1, "a message below theta entered"


def test_headers_of_blocks_hold_their_postings() -> None:
    rng = np.random.default_rng(6)
    top = nc.TopK(drawn(rng, 5, 3), 1500, space=UNIT)
    for k in range(5):
        top.publish(drawn(rng, 700, 3, 1000 * k))
    method = top.method
    assert isinstance(method, NormListsTop)
    stretches, postings = method.messages.stretches, method.messages.postings
    blocks = 0
    for term in range(len(top.vocabulary)):
        first = int(stretches.starts[term])
        for p in range(first, first + int(stretches.ordered[term])):
            block = p // BLOCK
            assert (postings.lows[block] <= postings.points[p]).all() and (
                postings.highs[block] >= postings.points[p]
            ).all()
            assert postings.tops[block, 0] >= postings.values[p] and postings.tops[block, 1] >= postings.gains[p]
            blocks += p % BLOCK == 0
    assert blocks > 20
