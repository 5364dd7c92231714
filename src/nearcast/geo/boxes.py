"""Overlap tests. Boxes are closed: rows xmin, ymin, xmax, ymax of float64[n,4]. Touching boxes overlap."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import kernel


@kernel
def boxes_overlap(boxes, i, xmin, ymin, xmax, ymax):
    """Whether box i shares a point with the box of these four sides."""
    return boxes[i, 0] <= xmax and xmin <= boxes[i, 2] and boxes[i, 1] <= ymax and ymin <= boxes[i, 3]


def overlap_pairs(boxes_a: np.ndarray, boxes_b: np.ndarray) -> np.ndarray:
    """bool[n]: whether row i of boxes_a overlaps row i of boxes_b; either may be a single row."""
    low, high = np.maximum(boxes_a[:, :2], boxes_b[:, :2]), np.minimum(boxes_a[:, 2:], boxes_b[:, 2:])
    return np.asarray((low <= high).all(axis=1))


def bounds_of(boxes: np.ndarray) -> np.ndarray:
    """float64[4]: the smallest box around all `boxes`, of which there must be at least one."""
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
