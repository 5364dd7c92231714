"""Boxes in lists and nodes: overlap tests without branches, and rounding from float64 to float32.

A list stores boxes as float32, rounded outward. A scan may therefore keep a box that the exact box test rejects, but it
never misses one.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel


@inline_kernel
def overlaps(boxes, at, box):
    """Whether the closed boxes boxes[at] and `box` share a point. No branch: scans cannot predict the outcome."""
    return (boxes[at, 0] <= box[2]) & (boxes[at, 2] >= box[0]) & (boxes[at, 1] <= box[3]) & (boxes[at, 3] >= box[1])


@kernel
def set_box(boxes, at, box):
    """Set boxes[at]. Numba takes a second to compile the assignment of a row, and nothing for four numbers."""
    boxes[at, 0], boxes[at, 1], boxes[at, 2], boxes[at, 3] = box[0], box[1], box[2], box[3]


@kernel
def rounded_down(value):
    """The largest float32 that is not above `value`."""
    nearest = np.float32(value)
    return np.nextafter(nearest, np.float32(-np.inf)) if nearest > value else nearest


def outward(boxes: np.ndarray) -> np.ndarray:
    """float32 boxes that contain these float64 boxes."""
    with np.errstate(over="ignore"):
        out = boxes.astype(np.float32)
    low, high = out[:, :2], out[:, 2:]
    np.copyto(low, np.nextafter(low, np.float32(-np.inf)), where=low > boxes[:, :2])
    np.copyto(high, np.nextafter(high, np.float32(np.inf)), where=high < boxes[:, 2:])
    return out


@kernel
def rounded_out_and_in(box):
    """float32[8]: a message's box rounded outward, then rounded inward."""
    out = np.empty(8, np.float32)
    round_out_and_in(box, out)
    return out


@lean_kernel
def round_out_and_in(box, out):
    """Write a message's box to out[:4] rounded outward, and to out[4:8] rounded inward."""
    for side in range(2):
        out[side], out[side + 4] = rounded_down(box[side]), -rounded_down(-box[side])
        out[side + 2], out[side + 6] = -rounded_down(-box[side + 2]), rounded_down(box[side + 2])


@inline_kernel
def surely_overlaps(boxes, at, rounded):
    """Whether boxes[at], rounded outward, overlaps a message rounded both ways by so much that the exact boxes must."""
    inside = (boxes[at, 0] < rounded[6]) & (boxes[at, 2] > rounded[4])
    return inside & (boxes[at, 1] < rounded[7]) & (boxes[at, 3] > rounded[5])
