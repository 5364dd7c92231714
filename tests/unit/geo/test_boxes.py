from __future__ import annotations

import itertools

import numpy as np

from nearcast.geo.boxes import bounds_of, boxes_overlap, overlap_pairs

SIDES = [(low, high) for low in range(4) for high in range(low, 4)]
BOXES = np.array([(x0, y0, x1, y1) for (x0, x1), (y0, y1) in itertools.product(SIDES, SIDES)], np.float64)


def cells(box: np.ndarray) -> set[tuple[int, int]]:
    """The grid points of a box with whole corners: two such boxes overlap iff they share one."""
    return {(x, y) for x in range(int(box[0]), int(box[2]) + 1) for y in range(int(box[1]), int(box[3]) + 1)}


def test_boxes_overlap_iff_they_share_a_point_borders_included() -> None:
    held = [cells(box) for box in BOXES]
    first, second = np.divmod(np.arange(len(BOXES) ** 2), len(BOXES))
    expected = [bool(held[i] & held[j]) for i, j in zip(first, second, strict=True)]
    assert overlap_pairs(BOXES[first], BOXES[second]).tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_the_kernel_on_one_pair_agrees_with_the_grid_points() -> None:
    held = [cells(box) for box in BOXES]
    for i, j in itertools.product(range(0, len(BOXES), 7), range(0, len(BOXES), 3)):
        assert boxes_overlap(BOXES, i, *BOXES[j]) == bool(held[i] & held[j])


def test_bounds_and_no_boxes() -> None:
    assert bounds_of(np.array([[1, 2, 3, 4], [-1, 3, 0, 9]], np.float64)).tolist() == [-1, 2, 3, 9]
    assert len(overlap_pairs(np.empty((0, 4)), np.empty((0, 4)))) == 0
