"""A polygon moved over the antimeridian holds the same places, moved."""

from __future__ import annotations

import math

import antimeridian
import numpy as np
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.geo.geojson import parse_region
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.space import LONLAT, Space

BUDGET = settings(max_examples=50 if JIT_DISABLED else 200, deadline=None)
PLANE = Space.of((0, 0, 1, 1))
Ring = list[tuple[int, int]]


@st.composite
def stars(draw: st.DrawFn) -> Ring:
    corners = draw(st.lists(st.tuples(st.integers(-40, 40), st.integers(-60, 60)), min_size=3, max_size=8, unique=True))
    by_angle = {math.atan2(y - 0.3, x - 0.4): (x, y) for x, y in corners}
    ring = [by_angle[angle] for angle in sorted(by_angle)]
    return ring if draw(st.booleans()) else ring[::-1]


def wrapped(x: float) -> float:
    return (x + 180) % 360 - 180


def parsed(ring: list[tuple[float, float]], space: Space = LONLAT) -> PolygonRegion:
    region = parse_region({"type": "Polygon", "coordinates": [ring]}, space)
    assume(isinstance(region, PolygonRegion))
    assert isinstance(region, PolygonRegion)
    return region


X, Y = (axis.ravel() for axis in np.meshgrid(np.arange(-42.5, 43, 3.0), np.arange(-62.5, 63, 5.0)))


@BUDGET
@given(stars(), st.integers(-9, 9).map(lambda tens: 180 + 10 * tens), st.sampled_from([-360, 0]), st.booleans())
def test_moving_a_polygon_over_the_antimeridian_moves_the_places_in_it(
    ring: Ring, shift: int, turn: int, jumps: bool
) -> None:
    flat = shapely.Polygon(ring) if len(ring) >= 3 else shapely.Polygon()
    assume(flat.is_valid and flat.area > 0)
    moved = [(x + shift + turn, y) for x, y in ring]
    region = parsed([(wrapped(x), y) for x, y in moved] if jumps else moved)
    x = np.array([wrapped(value + shift) for value in X])
    # Cutting at the antimeridian rounds, so places within a micrometre of the border prove nothing.
    clear = shapely.distance(flat.boundary, shapely.points(X, Y)) > 1e-9
    found = region.overlaps(np.column_stack([x, Y, x, Y]))
    assert (found == shapely.intersects_xy(flat, X, Y))[clear].all()
    assert region.geometry.is_valid
    assert abs(region.geometry.area - flat.area) < 1e-9 * max(1, flat.area)
    boxes = region.boxes(LONLAT)
    for at, lat in zip(x[found], Y[found], strict=True):
        assert ((boxes[:, 0] <= at) & (at <= boxes[:, 2]) & (boxes[:, 1] <= lat) & (lat <= boxes[:, 3])).any()


@BUDGET
@given(stars())
def test_jumping_rings_are_split_as_the_antimeridian_package_splits_them(ring: Ring) -> None:
    flat = shapely.Polygon(ring) if len(ring) >= 3 else shapely.Polygon()
    assume(flat.is_valid and flat.area > 0 and flat.bounds[0] < 0 < flat.bounds[2] and all(x != 0 for x, _ in ring))
    jumping = [(wrapped(x + 180), y) for x, y in ring]
    theirs = antimeridian.fix_polygon(shapely.Polygon(jumping), fix_winding=True, great_circle=False)
    assume(theirs.is_valid)
    ours = parsed(jumping).geometry
    assert shapely.symmetric_difference(ours, theirs).area < 1e-5  # theirs rounds the cut to 1e-7 degrees


@BUDGET
@given(
    st.lists(st.integers(30, 80), min_size=4, max_size=9),
    st.integers(-180, 180),
    st.booleans(),
    st.sampled_from([1, -1]),
)
def test_rings_round_a_pole_hold_all_that_is_polewards(
    heights: list[int], start: int, eastward: bool, side: int
) -> None:
    n = len(heights)
    lons = [wrapped(start + 360 * i / n) for i in range(n)]
    corners = [(x, side * y) for x, y in zip(lons, heights, strict=True)]
    region = parsed(corners if eastward else corners[::-1])
    for offset in np.linspace(0.05, 0.95, 5):
        for i in range(n):
            border = heights[i] + offset * (heights[(i + 1) % n] - heights[i])
            x = wrapped(start + 360 * (i + offset) / n)
            for lat, expected in ((border + 1e-6, True), (90, True), (border - 1e-6, False), (-80, False)):
                place = np.array([[x, side * lat, x, side * lat]])
                assert region.overlaps(place)[0] == expected
    assert len(region.boxes(LONLAT)) == 1
    assert region.distance(start, side * 90) == 0


@BUDGET
@given(stars())
def test_a_plane_has_no_antimeridian(ring: Ring) -> None:
    flat = shapely.Polygon(ring) if len(ring) >= 3 else shapely.Polygon()
    assume(flat.is_valid and flat.area > 0)
    stretched = [(x * 10.0, y * 10.0) for x, y in ring]
    assert math.isclose(parsed(stretched, PLANE).geometry.area, flat.area * 100)
