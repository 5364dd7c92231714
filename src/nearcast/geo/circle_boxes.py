"""The bounding boxes of circles: one each, or two if the circle crosses the antimeridian."""

from __future__ import annotations

import math

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.geo.distance import EARTH_RADIUS_KM
from nearcast.geo.region import HUGE

PAD = 1e-12
"""Boxes are wider than their circle by this share and by this many degrees (0.1 µm). Distances and sums of coordinates
err by less than 1e-13 degrees, so every point of the circle is in a box."""


def circle_boxes(circles: np.ndarray, planar: bool) -> tuple[np.ndarray, np.ndarray]:
    """(boxes float64[m,4], starts int64[n+1]): the boxes of circle i are boxes[starts[i]:starts[i+1]].

    A row of `circles` is x, y, radius.
    """
    if planar:
        boxes = np.empty((len(circles), 4))
        write_planar_boxes(circles, boxes)
        return boxes, np.arange(len(circles) + 1)
    boxes, starts = np.empty((2 * len(circles), 4)), np.empty(len(circles) + 1, np.int64)
    return boxes[: write_boxes(circles, boxes, starts)], starts


@kernel
def write_planar_boxes(circles, out_boxes):
    """Write the boxes of circles in the plane."""
    for i in range(len(circles)):
        reach = min(circles[i, 2] * (1.0 + PAD), HUGE)
        for side in range(2):
            out_boxes[i, side] = max(np.nextafter(circles[i, side] - reach, -np.inf), -HUGE)
            out_boxes[i, side + 2] = min(np.nextafter(circles[i, side] + reach, np.inf), HUGE)


@kernel
def write_boxes(circles, out_boxes, out_starts):
    """Write the boxes of circles in lon/lat; return their number."""
    n = 0
    out_starts[0] = 0
    for i in range(len(circles)):
        x, y = circles[i, 0], circles[i, 1]
        angle = math.degrees(circles[i, 2] / EARTH_RADIUS_KM) * (1.0 + PAD) + PAD
        south, north = y - angle, y + angle
        reach = 180.0 if south <= -90.0 or north >= 90.0 else longitude_reach(y, angle)
        west, east = x - reach, x + reach
        out_boxes[n : n + 2, 1] = max(south, -90.0)
        out_boxes[n : n + 2, 3] = min(north, 90.0)
        out_boxes[n, 0], out_boxes[n, 2] = west, east
        if reach >= 180.0:
            out_boxes[n, 0], out_boxes[n, 2] = -180.0, 180.0
        elif west <= -180.0 or east >= 180.0:
            out_boxes[n, 0], out_boxes[n, 2] = -180.0, east if west <= -180.0 else east - 360.0
            n += 1
            out_boxes[n, 0], out_boxes[n, 2] = west + 360.0 if west <= -180.0 else west, 180.0
        n += 1
        out_starts[i + 1] = n
    return n


@kernel
def longitude_reach(y, angle):
    """Degrees of longitude to the meridians that touch a circle without a pole: sin(reach) = sin(angle) / cos(y)."""
    slope = math.sin(math.radians(angle)) / math.sin(math.radians(90.0 - abs(y)))
    return 180.0 if slope >= 1.0 else math.degrees(math.asin(slope)) * (1.0 + PAD) + PAD
