"""A quadtree over the places of rows, made at once. Rows that come later wait until it is made anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import lean_kernel
from nearcast.geo.distance import EARTH_RADIUS_KM, RADIANS, meridian_km, point_box_euclid
from nearcast.geo.space import Space
from nearcast.topk.embedding import bent
from nearcast.topk.rows import RowArrays
from nearcast.topk.score import ALPHA, THETA, X, Y

DEEPEST = 24
NONE = -1
SMALLEST_ALPHA = 1e-3
"""A row with a smaller alpha has no spatial limit: dividing by it would magnify rounding."""


ROUNDING = 1e-12
"""By which boxes in three dimensions are larger on each side, so that sines of a place in the cell lie in them."""


class Cells(NamedTuple):
    """One cell a row. Children have higher numbers than their parents."""

    boxes: np.ndarray  # float64[n,4]
    children: np.ndarray  # int32[n]  the first of four children, or NONE for a leaf
    parents: np.ndarray  # int32[n]
    least_place: np.ndarray  # float64[n]  the least spatial similarity that can matter to a row below
    lows: np.ndarray  # float64[n,3]  the box of a cell of the sphere in three dimensions, radius 1; empty in a plane
    highs: np.ndarray  # float64[n,3]


def make_cells(rows: RowArrays, numbers: np.ndarray, space: Space, leaf: int) -> tuple[Cells, np.ndarray]:
    """(cells, the leaf of each of these rows). A leaf has at most `leaf` rows, unless it is DEEPEST."""
    xs, ys = rows.numbers[numbers, X], rows.numbers[numbers, Y]
    xmin, ymin, xmax, ymax = space.bounds
    if len(numbers):
        xmin, xmax = min(xmin, xs.min()), max(xmax, xs.max())
        ymin, ymax = min(ymin, ys.min()), max(ymax, ys.max())
    boxes, children, parents = [(xmin, ymin, xmax, ymax)], [NONE], [NONE]
    leaves = np.zeros(len(numbers), np.int32)
    waiting = [(0, np.arange(len(numbers)), 0)]
    while waiting:
        cell, members, depth = waiting.pop()
        if len(members) <= leaf or depth == DEEPEST:
            leaves[members] = cell
            continue
        x0, y0, x1, y1 = boxes[cell]
        middle_x, middle_y = 0.5 * x0 + 0.5 * x1, 0.5 * y0 + 0.5 * y1
        children[cell] = len(boxes)
        quarter = (xs[members] > middle_x) + 2 * (ys[members] > middle_y)
        for k in range(4):
            own_x = (middle_x, x1) if k & 1 else (x0, middle_x)
            own_y = (middle_y, y1) if k & 2 else (y0, middle_y)
            waiting.append((len(boxes), members[quarter == k], depth + 1))
            boxes.append((own_x[0], own_y[0], own_x[1], own_y[1]))
            children.append(NONE)
            parents.append(cell)
    least = np.full(len(boxes), np.inf)
    tree = (np.array(children, np.int32), np.array(parents, np.int32))
    corners = np.array(boxes, np.float64).reshape(-1, 4)
    return Cells(corners, *tree, least, *sphere_boxes(corners[:0] if space.planar else corners)), leaves


def sphere_boxes(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lows, highs), float64[n,3]: boxes in three dimensions around boxes in lon/lat, on a sphere of radius 1."""
    (x0, y0, x1, y1), (west, south, east, north) = boxes.T, np.radians(boxes).T
    level = np.where((y0 <= 0.0) & (y1 >= 0.0), 1.0, np.maximum(np.cos(south), np.cos(north)))
    across = (np.minimum(np.cos(south), np.cos(north)).clip(min=0.0), level)
    eastward = _range_of(np.cos(west), np.cos(east), (x0 <= 0.0) & (x1 >= 0.0), (x0 <= -180.0) | (x1 >= 180.0))
    northward = _range_of(np.sin(west), np.sin(east), (x0 <= 90.0) & (x1 >= 90.0), (x0 <= -90.0) & (x1 >= -90.0))
    lows = [np.minimum(across[0] * low, across[1] * low) for low, _ in (eastward, northward)]
    highs = [np.maximum(across[0] * high, across[1] * high) for _, high in (eastward, northward)]
    return (
        np.ascontiguousarray(np.stack([*lows, np.sin(south)], axis=1) - ROUNDING),
        np.ascontiguousarray(np.stack([*highs, np.sin(north)], axis=1) + ROUNDING),
    )


def _range_of(
    first: np.ndarray, last: np.ndarray, has_top: np.ndarray, has_bottom: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The range of a sine or cosine between two angles, and whether it has its top and its bottom between them."""
    return np.where(has_bottom, -1.0, np.minimum(first, last)), np.where(has_top, 1.0, np.maximum(first, last))


@lean_kernel
def least_place_of(numbers, row):
    """The least spatial similarity with which a row can reach its theta, if all its words are met."""
    alpha, theta = numbers[row, ALPHA], numbers[row, THETA]
    if alpha < SMALLEST_ALPHA or theta < 0.0:
        return -np.inf
    return (theta - (1.0 - alpha)) / alpha


@lean_kernel
def lower_least_place(cells, leaf, least):
    """Lower the limit of a leaf and of the cells above it to `least`."""
    cell = leaf
    while cell != NONE and cells.least_place[cell] > least:
        cells.least_place[cell] = least
        cell = cells.parents[cell]


@lean_kernel
def distance_to_cell(cells, cell, embedding, place, point):
    """At most the distance from a message to a cell, in units of max_dist.

    `place` is x, y; `point` (float64[3]) the same place in the embedding. On the sphere the distance to the cell's box
    in three dimensions takes the place of an arc: 1,200 of 1,580 us of a search on map notes were trigonometry.
    """
    if embedding.planar:
        return point_box_euclid(place[0], place[1], cells.boxes, cell) * embedding.scale
    square, radius = 0.0, embedding.scale
    for d in range(3):
        gap = max(cells.lows[cell, d] * radius - point[d], point[d] - cells.highs[cell, d] * radius, 0.0)
        square += gap * gap
    return np.sqrt(bent(square, embedding.bend))


@lean_kernel
def distance_to_border(cells, cell, planar, x, y):
    """The distance from a place in a cell to the border of the cell."""
    xmin, ymin, xmax, ymax = cells.boxes[cell, 0], cells.boxes[cell, 1], cells.boxes[cell, 2], cells.boxes[cell, 3]
    if planar:
        return max(0.0, min(x - xmin, xmax - x, y - ymin, ymax - y))
    north = EARTH_RADIUS_KM * RADIANS * min(y - ymin, ymax - y)
    sides = min(meridian_km(x, y, xmin, ymin, ymax), meridian_km(x, y, xmax, ymin, ymax))
    return max(0.0, min(north, sides))
