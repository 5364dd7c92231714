from __future__ import annotations

import math

import numpy as np
import pytest
from pyproj import Geod

from nearcast.geo.distance import EARTH_RADIUS_KM, great_circle_km, point_box_distance, point_box_km

HALF_ROUND = math.pi * EARTH_RADIUS_KM
SPHERE = Geod(a=EARTH_RADIUS_KM * 1000, b=EARTH_RADIUS_KM * 1000)


@pytest.mark.parametrize(
    ("first", "second", "km"),
    [
        ((0, 0), (0, 0), 0),
        ((180, 12.3), (-180, 12.3), 0),
        ((10, 90), (-77, 90), 0),
        ((10, -90), (170, -90), 0),
        ((0, 0), (180, 0), HALF_ROUND),
        ((33, 90), (-120, -90), HALF_ROUND),
        ((20, 30), (-160, -30), HALF_ROUND),
        ((0, 0), (90, 0), HALF_ROUND / 2),
        ((179, 0), (-179, 0), HALF_ROUND / 90),
    ],
)
def test_known_distances(first: tuple[float, float], second: tuple[float, float], km: float) -> None:
    assert great_circle_km(*first, *second) == pytest.approx(km, rel=1e-15, abs=0)
    assert great_circle_km(*second, *first) == great_circle_km(*first, *second)


def test_cities_agree_with_another_implementation() -> None:
    new_york, london, sydney = (-74.006, 40.7128), (-0.1276, 51.5072), (151.2093, -33.8688)
    for a, b in [(new_york, london), (london, sydney), (sydney, new_york)]:
        assert great_circle_km(*a, *b) == pytest.approx(SPHERE.inv(*a, *b)[2] / 1000, rel=1e-12)


def test_a_nanometre_is_measured_to_the_last_digits() -> None:
    lat, step = 60.0, 2.0**-46  # degrees: 1.6 nm, and exact in the sum below
    assert great_circle_km(10, lat, 10 + step, lat) == pytest.approx(
        EARTH_RADIUS_KM * math.cos(math.radians(lat)) * math.radians(step), rel=1e-12
    )
    assert great_circle_km(1e-250, 0, 0, 0) > 0


def test_a_metre_from_the_antipode_is_measured_to_a_micrometre() -> None:
    metre = math.degrees(0.001 / EARTH_RADIUS_KM)
    assert HALF_ROUND - great_circle_km(0, 0, 180, metre) == pytest.approx(0.001, abs=1e-9)


BOX = np.array([[10.0, 20.0, 30.0, 40.0]])


@pytest.mark.parametrize(
    ("x", "y", "nearest"),
    [
        (20, 30, (20, 30)),  # inside
        (10, 40, (10, 40)),  # corner
        (15, 50, (15, 40)),  # due north
        (30, -80, (30, 20)),  # due south
        (0, -10, (10, 20)),  # beyond the corner
        (-150, -89, (10, 20)),  # over the south pole, roughly opposite
        (-165, 89, (30, 40)),  # over the north pole: 165 degrees to the one side, 175 to the other
    ],
)
def test_nearest_points_of_a_box(x: float, y: float, nearest: tuple[float, float]) -> None:
    assert point_box_km(x, y, BOX, 0) == pytest.approx(great_circle_km(x, y, *nearest), abs=1e-9)


def test_east_of_a_box_the_nearest_point_lies_polewards_of_the_parallel() -> None:
    wide = np.array([[10.0, 0.0, 20.0, 80.0]])
    lats = np.linspace(0, 80, 80_001)
    sampled = min(great_circle_km(50.0, 45.0, 20.0, lat) for lat in lats[45_000:55_000])
    assert point_box_km(50.0, 45.0, wide, 0) == pytest.approx(sampled, abs=1e-6)
    assert point_box_km(50.0, 45.0, wide, 0) < great_circle_km(50, 45, 20, 45)


def test_boxes_at_the_antimeridian_and_the_poles_are_reached_from_the_other_side() -> None:
    at = np.array([[170.0, -10.0, 180.0, 10.0], [-180.0, -10.0, -170.0, 10.0], [0.0, 80.0, 10.0, 90.0]])
    assert point_box_km(-180.0, 5.0, at, 0) == 0
    assert point_box_km(180.0, 5.0, at, 1) == 0
    assert point_box_km(-179.0, 0.0, at, 0) == pytest.approx(math.radians(1) * EARTH_RADIUS_KM, rel=1e-12)
    assert point_box_km(-100.0, 90.0, at, 2) == 0


def test_planar_and_spherical_distances_to_boxes() -> None:
    boxes = np.array([[0, 0, 2, 2], [3, 4, 3, 4], [-5, -5, -3, -4]], np.float64)
    assert [point_box_distance(0.0, 0.0, boxes, i, True) for i in range(3)] == [0, 5, 5]
    assert point_box_distance(0.0, 0.0, boxes, 1, False) == great_circle_km(0.0, 0.0, 3.0, 4.0)
