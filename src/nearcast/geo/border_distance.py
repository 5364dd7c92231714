"""Great-circle distance to the border of a polygon, whose edges are straight in lon/lat coordinates.

Edges are split into segments of at most one degree in either direction. On a segment the distance has one minimum,
which golden-section search finds to 0.1 mm. Only segments that could be nearer than the nearest corner are searched:
usually two or three.
"""

from __future__ import annotations

import math

import numpy as np
import shapely

from nearcast.arrays.jit import kernel
from nearcast.geo.distance import EARTH_RADIUS_KM, RADIANS, great_circle_km

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
STEPS = 44  # 0.618^44 of a degree is 0.07 mm


def border_segments(geometry: shapely.Geometry) -> np.ndarray:
    """float64[m,4]: the segments x1, y1, x2, y2 of the border, each at most one degree wide and high."""
    coordinates, rings = shapely.get_coordinates(shapely.get_rings(shapely.get_parts(geometry)), return_index=True)
    same_ring = rings[1:] == rings[:-1]
    starts, steps = coordinates[:-1][same_ring], np.diff(coordinates, axis=0)[same_ring]
    counts = np.maximum(np.ceil(np.abs(steps).max(axis=1)).astype(np.int64), 1)
    edge = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin, end = (nth / counts[edge])[:, None], ((nth + 1) / counts[edge])[:, None]
    return np.hstack([starts[edge] + steps[edge] * begin, starts[edge] + steps[edge] * end])


@kernel
def border_km(x, y, segments):
    """Kilometres from the point to the nearest point of the segments."""
    corner_km = np.empty(len(segments))
    for i in range(len(segments)):
        corner_km[i] = great_circle_km(x, y, segments[i, 0], segments[i, 1])
    best = corner_km.min()
    for i in range(len(segments)):
        length = math.hypot(segments[i, 2] - segments[i, 0], segments[i, 3] - segments[i, 1])
        if corner_km[i] - length * RADIANS * EARTH_RADIUS_KM < best:
            best = min(best, _segment_km(x, y, segments, i))
    return best


@kernel
def _along_km(x, y, segments, i, t):
    lon = segments[i, 0] + t * (segments[i, 2] - segments[i, 0])
    lat = segments[i, 1] + t * (segments[i, 3] - segments[i, 1])
    return great_circle_km(x, y, lon, lat)


@kernel
def _segment_km(x, y, segments, i):
    low, high = 0.0, 1.0
    left, right = 1.0 - GOLDEN, GOLDEN
    left_km, right_km = _along_km(x, y, segments, i, left), _along_km(x, y, segments, i, right)
    for _ in range(STEPS):
        if left_km <= right_km:
            high, right, right_km = right, left, left_km
            left = high - GOLDEN * (high - low)
            left_km = _along_km(x, y, segments, i, left)
        else:
            low, left, left_km = left, right, right_km
            right = low + GOLDEN * (high - low)
            right_km = _along_km(x, y, segments, i, right)
    return min(left_km, right_km)
