"""Whatever the exact shape accepts lies in one of the region's boxes; shapes agree with independent tests."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.geo.circle import CircleRegion
from nearcast.geo.distance import EARTH_RADIUS_KM, great_circle_km
from nearcast.geo.geojson import parse_region
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import Region
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import LONLAT, Space

BUDGET = settings(max_examples=50 if JIT_DISABLED else 300, deadline=None)
PLANE = Space.of((0, 0, 10, 10))
QUARTER = math.pi / 2 * EARTH_RADIUS_KM
lons = st.sampled_from([-180.0, -179.0, 0.0, 7.25, 179.0, 180.0]) | st.floats(-180, 180)
lats = st.sampled_from([-90.0, -89.0, -60.0, 0.0, 60.0, 89.0, 89.9999999, 90.0]) | st.floats(-90, 90)
radii = st.sampled_from(
    [0.0, 1e-12, 1e-6, 1.0, math.radians(1) * EARTH_RADIUS_KM, QUARTER, 2 * QUARTER, 20_015.0, 20_015.2, 1e6]
) | st.floats(0, 21_000)


def in_some_box(region: Region, places: np.ndarray, space: Space = LONLAT) -> np.ndarray:
    boxes = region.boxes(space)[None, :, :]
    at = places[:, None, :]
    meets = (boxes[..., 0] <= at[..., 2]) & (at[..., 0] <= boxes[..., 2])
    meets &= (boxes[..., 1] <= at[..., 3]) & (at[..., 1] <= boxes[..., 3])
    return np.asarray(meets.any(axis=1))


def with_neighbours(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The points and those a few floats away, as places on the globe."""
    steps = [-4, -1, 0, 1, 4]
    shifted = [(x + i * np.spacing(x), y + j * np.spacing(y)) for i in steps for j in steps]
    x, y = np.concatenate([p for p, _ in shifted]), np.concatenate([q for _, q in shifted])
    x = np.where(x > 180, x - 360, np.where(x < -180, x + 360, x))
    return np.column_stack([x, np.clip(y, -90, 90), x, np.clip(y, -90, 90)])


def rim(circle: CircleRegion, bearings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points at exactly the radius, by the direct formula of spherical trigonometry."""
    angle, lat = circle.radius / EARTH_RADIUS_KM, math.radians(circle.y)
    sin_lat = math.sin(lat) * math.cos(angle) + math.cos(lat) * math.sin(angle) * np.cos(bearings)
    east = np.sin(bearings) * math.sin(angle) * math.cos(lat)
    dlon = np.arctan2(east, math.cos(angle) - math.sin(lat) * sin_lat)
    return circle.x + np.degrees(dlon), np.degrees(np.arcsin(np.clip(sin_lat, -1, 1)))


@BUDGET
@given(lons, lats, radii)
def test_no_point_on_the_rim_of_a_circle_escapes_its_boxes(x: float, y: float, radius: float) -> None:
    circle = CircleRegion(x, y, radius)
    angle = radius / EARTH_RADIUS_KM
    bearings = [np.radians(np.arange(0, 360, 15.0))]
    if 0 < angle < math.pi / 2 and abs(math.tan(math.radians(y)) * math.tan(angle)) <= 1:
        # Where meridians touch the circle: its easternmost and westernmost points.
        touch = math.acos(-math.tan(math.radians(y)) * math.tan(angle))
        bearings.append(np.array([touch, -touch]))
    places = with_neighbours(*rim(circle, np.concatenate(bearings)))
    inside = circle.overlaps(places)
    assert in_some_box(circle, places[inside]).all()


CORNERS = np.array(
    [(x, y, x, y) for x in (-180, -179, -90, 0, 90, 179, 180) for y in (-90, -89, 0, 60, 89, 90)], np.float64
)


@BUDGET
@given(lons, lats, radii, st.lists(st.tuples(lons, lats), max_size=5))
def test_a_circle_holds_what_is_near_and_its_boxes_hold_the_circle(
    x: float, y: float, radius: float, more: list[tuple[float, float]]
) -> None:
    circle = CircleRegion(x, y, radius)
    places = np.vstack([CORNERS, np.array([at * 2 for at in more]).reshape(-1, 4)])
    inside = circle.overlaps(places)
    assert inside.tolist() == [great_circle_km(x, y, p[0], p[1]) <= radius for p in places]
    assert in_some_box(circle, places[inside]).all()
    assert bool(circle.overlaps(np.array([[x, y, x, y]]))[0])


@BUDGET
@given(lons, lats, radii, st.lists(st.tuples(lons, lats, lons, lats), min_size=1, max_size=5))
def test_range_messages_that_meet_a_circle_meet_its_boxes(
    x: float, y: float, radius: float, corners: list[tuple[float, float, float, float]]
) -> None:
    circle = CircleRegion(x, y, radius)
    places = np.array([[min(a, c), min(b, d), max(a, c), max(b, d)] for a, b, c, d in corners])
    inside = circle.overlaps(places)
    assert in_some_box(circle, places[inside]).all()
    for place, is_in in zip(places, inside, strict=True):
        xs, ys = np.meshgrid(np.linspace(place[0], place[2], 9), np.linspace(place[1], place[3], 9))
        points = np.column_stack([xs.ravel(), ys.ravel(), xs.ravel(), ys.ravel()])
        # A point a hair from the rim may round to the other side of it, so points count from 1 mm inside.
        if radius > 1e-6 and CircleRegion(x, y, radius - 1e-6).overlaps(points).any():
            assert is_in


@BUDGET
@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(0, 2 * math.pi))
def test_no_point_of_a_planar_circle_escapes_its_box(x: float, y: float, radius: float, bearing: float) -> None:
    circle = CircleRegion(x, y, radius, planar=True)
    bearings = np.array([0, math.pi / 2, math.pi, 3 * math.pi / 2, bearing])
    px, py = x + radius * np.cos(bearings), y + radius * np.sin(bearings)
    px, py = np.concatenate([px, np.nextafter(px, -1e9), np.nextafter(px, 1e9)]), np.tile(py, 3)
    places = np.column_stack([px, py, px, py])
    assert in_some_box(circle, places[circle.overlaps(places)], PLANE).all()


# ---- polygons, on a small grid of whole numbers so that borders and corners are hit ----
Ring = list[tuple[int, int]]


@st.composite
def stars(draw: st.DrawFn) -> Ring:
    """A simple polygon: corners sorted by angle round a centre that is no corner."""
    corners = draw(st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=3, max_size=8, unique=True))
    by_angle = {math.atan2(y - 0.3, x - 0.4): (x, y) for x, y in corners}
    return [by_angle[angle] for angle in sorted(by_angle)]


def turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    value = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return (value > 0) - (value < 0)


def on_edge(p: tuple[int, int], a: tuple[int, int], b: tuple[int, int]) -> bool:
    return turn(a, b, p) == 0 and all(min(a[i], b[i]) <= p[i] <= max(a[i], b[i]) for i in (0, 1))


def edges(ring: Ring) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return list(zip(ring, ring[1:] + ring[:1], strict=True))


def holds_point(ring: Ring, p: tuple[int, int]) -> bool:
    """Even-odd rule in exact arithmetic; the border is inside."""
    if any(on_edge(p, a, b) for a, b in edges(ring)):
        return True
    inside = False
    for (ax, ay), (bx, by) in edges(ring):
        if (ay > p[1]) != (by > p[1]) and p[0] < ax + Fraction((p[1] - ay) * (bx - ax), by - ay):
            inside = not inside
    return inside


def edges_meet(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], d: tuple[int, int]) -> bool:
    if turn(a, b, c) != turn(a, b, d) and turn(c, d, a) != turn(c, d, b):
        return True
    return on_edge(a, c, d) or on_edge(b, c, d) or on_edge(c, a, b) or on_edge(d, a, b)


def meets_box(ring: Ring, box: tuple[int, int, int, int]) -> bool:
    x0, y0, x1, y1 = box
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    if any(x0 <= x <= x1 and y0 <= y <= y1 for x, y in ring) or any(holds_point(ring, corner) for corner in corners):
        return True
    return any(edges_meet(a, b, c, d) for a, b in edges(ring) for c, d in edges(corners))


def has_area(ring: Ring) -> bool:
    return any(turn(ring[0], b, c) for b, c in edges(ring))


def region_of(ring: Ring, space: Space = LONLAT) -> Region:
    return parse_region({"type": "Polygon", "coordinates": [[list(at) for at in ring]]}, space)


GRID = [(x, y) for x in range(-7, 8) for y in range(-7, 8)]
small_boxes = st.tuples(*[st.integers(-8, 8)] * 4).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
)


@BUDGET
@given(stars().filter(has_area), st.booleans(), st.lists(small_boxes, max_size=8))
def test_polygons_agree_with_exact_arithmetic(
    ring: Ring, planar: bool, ranges: list[tuple[int, int, int, int]]
) -> None:
    assume(shapely.Polygon(ring).is_valid)  # an outline that meets itself is repaired, and then another ring
    region = region_of(ring, PLANE if planar else LONLAT)
    boxes = [(x, y, x, y) for x, y in GRID] + ranges
    expected = [holds_point(ring, at) for at in GRID] + [meets_box(ring, box) for box in ranges]
    places = np.array(boxes, np.float64)
    found = region.overlaps(places)
    assert found.tolist() == expected
    assert in_some_box(region, places[found], PLANE if planar else LONLAT).all()


@BUDGET
@given(stars().filter(has_area), lons, lats)
def test_the_distance_to_a_polygon_is_the_least_to_its_border(ring: Ring, x: float, y: float) -> None:
    scale = 9
    region = region_of([(scale * a, scale * b) for a, b in ring])
    assume(shapely.Polygon(ring).is_valid and isinstance(region, PolygonRegion))
    km = region.distance(x, y)
    if region.overlaps(np.array([[x, y, x, y]]))[0]:
        assert km == 0
        return
    n = 200 if JIT_DISABLED else 2000
    sampled = min(
        great_circle_km(x, y, scale * (a[0] + t * (b[0] - a[0])), scale * (a[1] + t * (b[1] - a[1])))
        for a, b in edges(ring)
        for t in np.linspace(0, 1, n // 10)
    )
    longest = max(math.dist(a, b) for a, b in edges(ring)) * scale
    assert sampled - math.radians(longest / (n // 10 - 1)) * EARTH_RADIUS_KM <= km <= sampled + 1e-6


@pytest.mark.parametrize("x, y", [(40.0, 10.0), (3.0, -1.0), (-179.0, 89.0), (12.0, 70.0), (-160.0, -70.0)])
def test_the_distance_to_a_polygon_is_good_to_a_millimetre(x: float, y: float) -> None:
    ring = [(0, 0), (25, 60), (90, 85), (5, 61)]
    region = region_of(ring)
    best = math.inf
    for a, b in edges(ring):
        t = np.linspace(0, 1, 2001)
        for _ in range(3):  # each time round the best of 2001 samples: from 90 degrees down to 0.01 mm
            km = [great_circle_km(x, y, a[0] + s * (b[0] - a[0]), a[1] + s * (b[1] - a[1])) for s in t]
            at, step = t[int(np.argmin(km))], t[1] - t[0]
            best = min(best, *km)
            t = np.linspace(max(0, at - step), min(1, at + step), 2001)
    assert region.distance(x, y) == pytest.approx(best, abs=1e-6)


@BUDGET
@given(st.data())
def test_a_shape_table_answers_as_its_regions_do(data: st.DataObject) -> None:
    circles = st.builds(CircleRegion, st.integers(-6, 6), st.integers(-6, 6), st.integers(0, 900))
    polygons = stars().filter(has_area).map(region_of).filter(lambda region: isinstance(region, PolygonRegion))
    table, live = ShapeTable(LONLAT), dict[int, Region]()
    for region in data.draw(st.lists(circles | polygons | st.none(), min_size=1, max_size=12)):
        if region is not None:
            number = int(table.add(ShapeColumns.of([region]))[0])
            assert number not in live
            live[number] = region
        elif live:
            number = data.draw(st.sampled_from(sorted(live)))
            table.discard(np.array([number], np.int32))
            del live[number]
    if data.draw(st.booleans()):
        table = ShapeTable.from_arrays(table.arrays(), table.header())
    assert len(table) == len(live)
    numbers = data.draw(st.lists(st.sampled_from(sorted(live)), max_size=12)) if live else []
    places = np.array([data.draw(small_boxes) for _ in numbers], np.float64).reshape(-1, 4)
    expected = [bool(live[number].overlaps(place[None])[0]) for number, place in zip(numbers, places, strict=True)]
    assert table.overlaps(np.array(numbers, np.int32), places).tolist() == expected
    again = table.columns(np.array(list(live), np.int32))
    expected_columns = ShapeColumns.of(list(live.values()))
    assert all((mine == theirs).all() for mine, theirs in zip(again, expected_columns, strict=True))
