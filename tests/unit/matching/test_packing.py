"""Packing: every node between b and B, each entry once, tiles that are compact."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.structures.rtree.grow import best_cut
from nearcast.structures.rtree.tree import packed_levels


@given(st.integers(0, 700), st.sampled_from([(2, 4), (2, 5), (3, 6), (3, 50), (25, 50), (4, 9)]), st.integers(0, 9))
def test_every_node_has_b_to_B_entries_and_each_entry_comes_once(n: int, sizes: tuple[int, int], seed: int) -> None:
    b, most = sizes
    low = np.random.default_rng(seed).integers(0, 4, (n, 2)) / 4
    levels = packed_levels(np.hstack([low, low + 0.1]), b, most)
    below = n
    for level in levels:
        assert sorted(level.order.tolist()) == list(range(below))
        counts = np.diff(level.starts)
        assert counts.sum() == below and counts.max() <= most
        assert level.size == 1 or counts.min() >= b
        below = level.size
    assert below == 1


def test_leaves_are_compact_tiles() -> None:
    points = np.random.default_rng(1).random((4000, 2))
    leaves = packed_levels(np.hstack([points, points]), 25, 50)[0]
    sides = leaves.boxes[:, 2:] - leaves.boxes[:, :2]
    assert leaves.size == 100 and sides.max() < 0.25 and (sides.prod(axis=1)).mean() < 0.012


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.3, 1.0, -1.7e308, 1.7e308])] * 2), min_size=5, max_size=12))
def test_a_cut_leaves_enough_on_both_sides_whatever_the_boxes(corners: list[tuple[float, float]]) -> None:
    boxes = np.array([(min(a), min(b), max(a), max(b)) for a, b in zip(corners, corners[::-1], strict=True)])
    order, cut = best_cut(boxes, len(boxes), 2)
    assert sorted(order.tolist()) == list(range(len(boxes)))
    assert 2 <= cut <= len(boxes) - 2


def test_two_clusters_are_told_apart() -> None:
    lows = np.array([(x, 0.1 * k) for k in range(6) for x in (0.0, 5.0)])
    order, cut = best_cut(np.hstack([lows, lows + 0.01]), 12, 2)
    assert cut == 6 and set(lows[order[:cut], 0]) == {0.0}
