"""Distances against chords of the unit sphere and against dense sampling."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.geo.distance import EARTH_RADIUS_KM, great_circle_km, point_box_euclid, point_box_km

BUDGET = settings(max_examples=60 if JIT_DISABLED else 300, deadline=None)
lons = st.sampled_from([-180.0, -179.999, -90.0, 0.0, 1e-9, 45.0, 90.0, 179.5, 180.0]) | st.floats(-180, 180)
lats = st.sampled_from([-90.0, -89.9999, -45.0, 0.0, 1e-9, 30.0, 89.999999, 90.0]) | st.floats(-90, 90)


def vector(x: np.ndarray | float, y: np.ndarray | float) -> np.ndarray:
    lon, lat = np.radians(x), np.radians(y)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def chord_km(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The angle between unit vectors, from their chord and the chord to the antipode."""
    near, far = np.linalg.norm(u - v, axis=-1), np.linalg.norm(u + v, axis=-1)
    return np.asarray(2 * EARTH_RADIUS_KM * np.arctan2(near, far))


@BUDGET
@given(lons, lats, lons, lats)
def test_great_circles_agree_with_chords(x1: float, y1: float, x2: float, y2: float) -> None:
    km = great_circle_km(x1, y1, x2, y2)
    assert abs(km - chord_km(vector(x1, y1), vector(x2, y2))) < 1e-11 * EARTH_RADIUS_KM
    assert km == great_circle_km(x2, y2, x1, y1)
    assert 0 <= km <= math.pi * EARTH_RADIUS_KM


@st.composite
def boxes(draw: st.DrawFn) -> np.ndarray:
    x, y = sorted([draw(lons), draw(lons)]), sorted([draw(lats), draw(lats)])
    return np.array([[x[0], y[0], x[1], y[1]]])


def grid(box: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.linspace(box[0], box[2], n), np.linspace(box[1], box[3], n))
    return x.ravel(), y.ravel()


@BUDGET
@given(lons, lats, boxes())
def test_the_distance_to_a_box_is_the_least_of_its_points(x: float, y: float, box: np.ndarray) -> None:
    n = 61
    km = point_box_km(x, y, box, 0)
    sampled = chord_km(vector(x, y), vector(*grid(box[0], n))).min()
    spacing = math.hypot(box[0, 2] - box[0, 0], box[0, 3] - box[0, 1]) / (n - 1)
    assert km <= sampled + 1e-7
    assert km >= sampled - math.radians(spacing) * EARTH_RADIUS_KM - 1e-7


@BUDGET
@given(lons, lats, boxes())
def test_the_nearest_corner_or_side_is_not_missed_by_a_metre(x: float, y: float, box: np.ndarray) -> None:
    xmin, ymin, xmax, ymax = box[0]
    side = np.linspace(ymin, ymax, 4_001)
    edge = np.linspace(xmin, xmax, 4_001)
    borders = np.concatenate(
        [vector(np.full_like(side, lon), side) for lon in (xmin, xmax)]
        + [vector(edge, np.full_like(edge, lat)) for lat in (ymin, ymax)]
    )
    inside = point_box_km(x, y, box, 0) == 0
    if not inside:
        sampled = chord_km(vector(x, y), borders).min()
        # Off the nearest point by half a spacing h the distance d grows by at most min(h, h^2 / sin(d) / 2).
        half = math.radians(max(ymax - ymin, xmax - xmin)) / 8_000
        angle = sampled / EARTH_RADIUS_KM
        slack = min(half, half**2 / max(math.sin(angle), 1e-9)) * EARTH_RADIUS_KM
        assert sampled - slack - 1e-6 <= point_box_km(x, y, box, 0) <= sampled + 1e-6


@BUDGET
@given(st.integers(-9, 9), st.integers(-9, 9), st.lists(st.integers(-9, 9), min_size=4, max_size=4))
def test_planar_boxes_by_clamping(x: int, y: int, sides: list[int]) -> None:
    (x0, x1), (y0, y1) = sorted(sides[:2]), sorted(sides[2:])
    nearest_x, nearest_y = min(max(x, x0), x1), min(max(y, y0), y1)
    box = np.array([[x0, y0, x1, y1]], np.float64)
    assert point_box_euclid(float(x), float(y), box, 0) == math.dist((x, y), (nearest_x, nearest_y))
