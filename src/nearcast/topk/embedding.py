"""Places as float32 points in three dimensions, so that bounds on distances need no trigonometry.

In a plane the points are the places themselves; in lon/lat they lie on a sphere. One unit is `max_dist`. A straight
line is never longer than the way along the sphere, so squared distances between points are lower bounds; on the sphere,
`bend` adds the next term of the series of the arc: arc^2 >= chord^2 + chord^4 / (12 radius^2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel
from nearcast.geo.distance import EARTH_RADIUS_KM, cos_deg, sin_deg
from nearcast.geo.space import Space
from nearcast.topk.score import Metric


class Embedding(NamedTuple):
    """How a place becomes a point. Places far outside a plane's bounds are moved to a margin around them: this moves
    no two places apart.
    """

    planar: bool
    scale: float  # units per unit of the plane, or the sphere's radius in units
    x: float  # the middle of the plane
    y: float
    reach: float  # the largest coordinate of a point
    bend: float  # 0 in a plane
    slack: float  # what rounding to float32 can add to a distance, and to sums of rounded scores


def embedding_of(space: Space, metric: Metric) -> Embedding:
    xmin, ymin, xmax, ymax = space.bounds
    if space.planar:
        reach = 2.0 * max(xmax - xmin, ymax - ymin) / metric.max_dist
        middle = (0.5 * xmin + 0.5 * xmax, 0.5 * ymin + 0.5 * ymax)
        return Embedding(True, 1.0 / metric.max_dist, *middle, reach, 0.0, _slack(reach))
    radius = EARTH_RADIUS_KM / metric.max_dist
    return Embedding(False, radius, 0.0, 0.0, radius, 1.0 / (12.0 * radius * radius), _slack(radius))


def _slack(reach: float) -> float:
    """A coordinate errs by reach * 2^-24 twice (two points), in three dimensions; sums of scores err by some 2^-22."""
    return 4e-6 + 1e-6 * reach


@kernel
def embed(embedding, x, y):
    """The three coordinates of a place."""
    if embedding.planar:
        reach = embedding.reach
        px = min(max((x - embedding.x) * embedding.scale, -reach), reach)
        py = min(max((y - embedding.y) * embedding.scale, -reach), reach)
        return px, py, 0.0
    radius = embedding.scale
    across = radius * cos_deg(y)
    return across * math.cos(math.radians(x)), across * math.sin(math.radians(x)), radius * sin_deg(y)


@inline_kernel
def bent(square, bend):
    """A lower bound of the squared distance, at most 1, from the square of a straight line."""
    return min(square * (1.0 + bend * square), 1.0)


def embedded(embedding: Embedding, places: np.ndarray) -> np.ndarray:
    """float32[n,3]: the points of places (float64[n,2])."""
    out = np.empty((len(places), 3), np.float32)
    _embed_all(embedding, places, out)
    return out


@kernel
def _embed_all(embedding, places, out):
    for i in range(len(places)):
        px, py, pz = embed(embedding, places[i, 0], places[i, 1])
        out[i, 0] = px
        out[i, 1] = py
        out[i, 2] = pz
