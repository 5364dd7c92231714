"""Overlap tests for kernels. Boxes are closed: rows xmin, ymin, xmax, ymax of float64[n,4]. Touching boxes overlap."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel


@kernel
def boxes_overlap(boxes, i, xmin, ymin, xmax, ymax):
    """Whether box i shares a point with the box of these four sides."""
    return boxes[i, 0] <= xmax and xmin <= boxes[i, 2] and boxes[i, 1] <= ymax and ymin <= boxes[i, 3]


@kernel
def rows_overlap(boxes_a, i, boxes_b, j):
    """Whether row i of boxes_a shares a point with row j of boxes_b."""
    return boxes_overlap(boxes_a, i, boxes_b[j, 0], boxes_b[j, 1], boxes_b[j, 2], boxes_b[j, 3])


@kernel
def contains_point(boxes, i, x, y):
    """Whether the point is in box i or on its border."""
    return boxes[i, 0] <= x and x <= boxes[i, 2] and boxes[i, 1] <= y and y <= boxes[i, 3]


@kernel
def contains_box(boxes, i, xmin, ymin, xmax, ymax):
    """Whether box i contains the whole box of these four sides."""
    return boxes[i, 0] <= xmin and xmax <= boxes[i, 2] and boxes[i, 1] <= ymin and ymax <= boxes[i, 3]


def overlap_pairs(boxes_a: np.ndarray, boxes_b: np.ndarray) -> np.ndarray:
    """bool[n]: whether row i of boxes_a overlaps row i of boxes_b."""
    out = np.empty(len(boxes_a), np.bool_)
    _overlap_pairs(boxes_a, boxes_b, out)
    return out


@kernel
def _overlap_pairs(boxes_a, boxes_b, out):
    for i in range(len(boxes_a)):
        out[i] = rows_overlap(boxes_a, i, boxes_b, i)


def is_point(boxes: np.ndarray) -> np.ndarray:
    """bool[n]: whether each box has size 0."""
    return np.asarray((boxes[:, 0] == boxes[:, 2]) & (boxes[:, 1] == boxes[:, 3]))


def bounds_of(boxes: np.ndarray) -> np.ndarray:
    """float64[4]: the smallest box around all `boxes`, of which there must be at least one."""
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
