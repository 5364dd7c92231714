"""Stored shapes answer as rational arithmetic, as GEOS and as the plain distance do, also a float from the border."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.geo.antimeridian import with_aliases
from nearcast.geo.distance import EARTH_RADIUS_KM, point_box_distance
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import LONLAT, Space

BUDGET = settings(max_examples=30 if JIT_DISABLED else 200, deadline=None)
PLANE = Space.of((0, 0, 10, 10))
Box = tuple[float, float, float, float]
Edge = tuple[Fraction, Fraction, Fraction, Fraction]


def stored(geometries: list[shapely.Geometry], space: Space = PLANE) -> ShapeTable:
    table = ShapeTable(space)
    table.add(ShapeColumns(np.zeros((len(geometries), 3)), np.array(geometries, object)))
    return table


def answers(table: ShapeTable, boxes: list[Box], number: int = 0) -> list[bool]:
    found = table.overlaps(np.full(len(boxes), number, np.int32), np.array(boxes, np.float64).reshape(-1, 4))
    return found.tolist()  # type: ignore[no-any-return]


# -- the oracle: even-odd rule over all rings, in rational arithmetic


def edges_of(geometry: shapely.Geometry) -> list[Edge]:
    rings = [shapely.get_coordinates(ring).tolist() for ring in shapely.get_rings(shapely.get_parts(geometry))]
    return [
        (Fraction(a[0]), Fraction(a[1]), Fraction(b[0]), Fraction(b[1]))
        for ring in rings
        for a, b in zip(ring, ring[1:], strict=False)
    ]


def holds(edges: list[Edge], x: Fraction, y: Fraction) -> bool:
    inside = False
    for ax, ay, bx, by in edges:
        side = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if side == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            return True
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
    return inside


def clipped_is_empty(edge: Edge, box: tuple[Fraction, ...]) -> bool:
    """Whether no share of the edge is within the box: the shares within each of the four sides are intersected."""
    ax, ay, bx, by = edge
    low, high = Fraction(0), Fraction(1)
    for start, step, least, most in ((ax, bx - ax, box[0], box[2]), (ay, by - ay, box[1], box[3])):
        if step == 0:
            if not least <= start <= most:
                return True
            continue
        ends = sorted([(least - start) / step, (most - start) / step])
        low, high = max(low, ends[0]), min(high, ends[1])
    return low > high


def meets(geometry: shapely.Geometry, box: Box) -> bool:
    exact = tuple(Fraction(value) for value in box)
    edges = edges_of(geometry)
    return holds(edges, exact[0], exact[1]) or any(not clipped_is_empty(edge, exact) for edge in edges)


# -- geometries of tiny pools: corners meet, edges run through points, holes touch their shells

small = st.integers(0, 6)


@st.composite
def geometries(draw: st.DrawFn) -> shapely.Geometry:
    """The union or difference of a few triangles and boxes: holes, islands, parts and rings that touch at corners."""
    whole: shapely.Geometry = shapely.Polygon()
    for _ in range(draw(st.integers(1, 4))):
        corners = draw(st.lists(st.tuples(small, small), min_size=3, max_size=4, unique=True))
        piece = shapely.MultiPoint(corners).convex_hull
        whole = whole.difference(piece) if draw(st.booleans()) and not whole.is_empty else whole.union(piece)
    parts = [part for part in shapely.get_parts(whole) if part.geom_type == "Polygon" and part.area > 0]
    assume(parts)
    made = parts[0] if len(parts) == 1 and draw(st.booleans()) else shapely.MultiPolygon(parts)
    assume(made.is_valid)
    return made


small_boxes = st.tuples(*[st.integers(-1, 7)] * 4).map(
    lambda c: (float(min(c[0], c[2])), float(min(c[1], c[3])), float(max(c[0], c[2])), float(max(c[1], c[3])))
)
GRID: list[Box] = [(x / 2, y / 2, x / 2, y / 2) for x in range(-1, 14) for y in range(-1, 14)]


@BUDGET
@given(geometries(), st.lists(small_boxes, min_size=1, max_size=10))
def test_polygons_answer_as_rational_arithmetic_does(geometry: shapely.Geometry, ranges: list[Box]) -> None:
    boxes = GRID[:: 3 if JIT_DISABLED else 1] + ranges
    table = stored([geometry])
    assert answers(table, boxes) == [meets(geometry, box) for box in boxes]
    assert table.columns(np.zeros(1, np.int32)).geometries[0] == geometry


@BUDGET
@given(geometries(), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-5, 1e290]))
def test_polygons_are_exact_a_float_from_their_border(geometry: shapely.Geometry, seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    turn = np.array([[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]]) * scale
    moved = shapely.transform(geometry, lambda at: at @ turn + 3.7 * scale)
    corners = shapely.get_coordinates(moved)
    steps = np.array(edges_of(moved), float)
    at = steps[rng.integers(0, len(steps), 20)]
    share = rng.choice([0.5, rng.random()], 20)[:, None]
    places = np.vstack([at[:, :2] + share * (at[:, 2:] - at[:, :2]), corners[:5]])
    near = np.nextafter(places, rng.choice([-np.inf, np.inf], places.shape))
    points = np.vstack([places, near])
    boxes: list[Box] = [(x, y, x, y) for x, y in points.tolist()]
    beside = points + rng.choice([0.0, scale, scale / 64], points.shape)
    boxes += [(*low, *high) for low, high in zip(points.tolist(), beside.tolist(), strict=True)]
    assert answers(stored([moved]), boxes) == [meets(moved, box) for box in boxes]


@BUDGET
@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 5, 20, 200]), st.sampled_from([0.0, 0.4, 0.9]))
def test_polygons_answer_as_geos_does(seed: int, corners: int, roughness: float) -> None:
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * math.pi, corners))
    reach = 5 * (1 - roughness * rng.random(corners))
    outline = shapely.Polygon(np.column_stack([reach * np.cos(angles), reach * np.sin(angles)]))
    assume(outline.is_valid and outline.area > 0.1)
    hole = outline.buffer(-0.5)
    geometry = outline.difference(hole.boundary.buffer(0.1)) if rng.random() < 0.5 else outline
    low = rng.uniform(-6, 6, (40, 2))
    size = rng.choice([0.0, 0.3, 3.0], (40, 2))
    boxes = np.hstack([low, low + size])
    places = [
        shapely.MultiPoint([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]).convex_hull for x0, y0, x1, y1 in boxes.tolist()
    ]
    expected = shapely.intersects(geometry, places)
    assert answers(stored([geometry]), [tuple(box) for box in boxes.tolist()]) == expected.tolist()


@BUDGET
@given(geometries(), st.sampled_from([(174, 0), (-180, 0), (-3, 84), (174, 84), (-180, -90)]), st.data())
def test_polygons_at_the_antimeridian_and_the_poles_hold_all_names_of_their_points(
    geometry: shapely.Geometry, shift: tuple[int, int], data: st.DataObject
) -> None:
    moved = shapely.transform(geometry, lambda at: at + shift)
    assume(moved.is_valid)  # rounding may make edges cross
    lons, lats = st.sampled_from([-180, -177, 0, 177, 178.5, 180]), st.sampled_from([-90, -87, 0, 3, 4.5, 87, 90])
    pairs = data.draw(st.lists(st.tuples(lons, lats, lons, lats), min_size=1, max_size=20))
    ranges = np.array([(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in pairs], np.float64)
    points = np.array([(x, y, x, y) for x, y, _, _ in pairs], np.float64)
    boxes = np.vstack([ranges, points])
    places = [
        shapely.MultiPoint([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]).convex_hull for x0, y0, x1, y1 in boxes.tolist()
    ]
    expected = shapely.intersects(with_aliases(moved), places)
    assert answers(stored([moved], LONLAT), [tuple(box) for box in boxes.tolist()]) == expected.tolist()


# -- circles

lons = st.sampled_from([-180.0, -179.9999999, 0.0, 7.25, 180.0]) | st.floats(-180, 180)
lats = st.sampled_from([-90.0, -89.9999999, -60.0, 0.0, 60.0, 90.0]) | st.floats(-90, 90)


@BUDGET
@given(lons, lats, lons, lats, st.sampled_from([0.0, 1e-7, 1.0]), st.data())
def test_circles_on_the_globe_are_exact_at_their_border(
    x: float, y: float, lon: float, lat: float, nearness: float, data: st.DataObject
) -> None:
    """The radius is the distance to a place, or a few floats or 0.1 um more or less."""
    if nearness:
        lon, lat = max(-180.0, min(180.0, x + nearness * (lon - x))), y + nearness * (lat - y)
    width, height = data.draw(st.sampled_from([(0.0, 0.0), (0.5, 0.0), (3.0, 1.0), (0.0, 200.0), (400.0, 3.0)]))
    box = np.array([[lon, lat, min(lon + width, 180.0), min(lat + height, 90.0)]])
    gap = point_box_distance(x, y, box, 0, False)
    radii = {gap, math.nextafter(gap, math.inf), math.nextafter(gap, 0.0), gap * (1 + 1e-12), gap * (1 - 1e-12)}
    radii |= {gap + 1e-10, max(gap - 1e-10, 0.0), gap * (1 + 1e-8), gap * 0.5, 2 * gap, math.pi * EARTH_RADIUS_KM}
    circles_agree(LONLAT, x, y, sorted(radii), box)


coordinates = st.sampled_from([0.0, 3.0, -4.0, 0.1, 1e-200, 1e160, -1e300, 1.7e308]) | st.floats(-100, 100)


@BUDGET
@given(coordinates, coordinates, st.tuples(coordinates, coordinates, coordinates, coordinates))
def test_planar_circles_are_exact_at_their_border(x: float, y: float, sides: tuple[float, ...]) -> None:
    box = np.array([[min(sides[::2]), min(sides[1::2]), max(sides[::2]), max(sides[1::2])]])
    for place in (box, box[:, [0, 1, 0, 1]]):
        gap = min(point_box_distance(x, y, place, 0, True), 1.7e308)
        radii = {gap, math.nextafter(gap, math.inf), math.nextafter(gap, 0.0), gap * (1 - 1e-12), gap / 2, 0.0}
        circles_agree(PLANE, x, y, sorted(radii), place)


def circles_agree(space: Space, x: float, y: float, radii: list[float], box: np.ndarray) -> None:
    table = ShapeTable(space)
    circles = np.array([(x, y, radius) for radius in radii])
    numbers = table.add(ShapeColumns(circles, np.full(len(radii), None, object)))
    gap = point_box_distance(x, y, box, 0, space.planar)
    found = table.overlaps(numbers, np.repeat(box, len(radii), axis=0))
    assert found.tolist() == [gap <= radius for radius in radii]
