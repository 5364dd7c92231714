"""Counts the crossings of borders before GEOS resolves them: it takes time and memory for each, and cannot be stopped.

A polygon of n corners may have n^2 / 2 crossings: 3,000 corners then take minutes and gigabytes.
"""

from __future__ import annotations

import numpy as np
import shapely

from nearcast.errors import InvalidInput
from nearcast.limits import LIMITS

_AT_ONCE = 64  # edges: so many are compared with all others before the counts are looked at


def require_few_crossings(geometry: shapely.Geometry) -> None:
    """Raise InvalidInput for borders with more crossings, or more edges to compare, than the limits say."""
    starts, ends = _edges(geometry)
    tree = shapely.STRtree(shapely.linestrings(np.stack([starts, ends], axis=1)))
    crossings = meetings = 0
    for first in range(0, len(starts), _AT_ONCE):
        some, others = tree.query(tree.geometries[first : first + _AT_ONCE])
        some, others = (some + first)[some + first < others], others[some + first < others]
        meetings += len(some)
        crossings += _n_crossings(starts[some], ends[some], starts[others], ends[others])
        if crossings > LIMITS.region_crossings:
            raise _too_many(f"its borders cross more than {LIMITS.region_crossings:,} times")
        if meetings > LIMITS.region_meetings:
            raise _too_many(f"more than {LIMITS.region_meetings:,} pairs of its edges must be compared")


def _too_many(reason: str) -> InvalidInput:
    return InvalidInput(f"the polygon is not valid, and {reason}; repair it first", column="region")


def _edges(geometry: shapely.Geometry) -> tuple[np.ndarray, np.ndarray]:
    """(starts, ends), float64[m,2] each, of the edges of all rings."""
    rings = shapely.get_rings(shapely.get_parts(shapely.get_parts(geometry)))
    corners, ring = shapely.get_coordinates(rings, return_index=True)
    is_edge = (ring[1:] == ring[:-1]) & (corners[1:] != corners[:-1]).any(axis=1)
    return corners[:-1][is_edge], corners[1:][is_edge]


def _n_crossings(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> int:
    """How many of the edges ab cross their cd in a point within both."""
    from_ab, from_cd = _side(a, b, c) * _side(a, b, d), _side(c, d, a) * _side(c, d, b)
    return int(np.count_nonzero((from_ab < 0) & (from_cd < 0)))


def _side(a: np.ndarray, b: np.ndarray, p: np.ndarray) -> np.ndarray:
    """1, 0 or -1: on which side of the line ab a point is."""
    with np.errstate(over="ignore", invalid="ignore"):  # coordinates of a plane may be of any size
        turn = (b[:, 0] - a[:, 0]) * (p[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (p[:, 0] - a[:, 0])
        return np.asarray(np.sign(turn))
