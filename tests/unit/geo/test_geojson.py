from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.geojson import parse_region
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import LONLAT, Space

PLANE = Space.of((0, 0, 1000, 1000))
TRIANGLE = [[0, 0], [10, 0], [0, 10], [0, 0]]
HOLE = [[1, 1], [1, 2], [2, 1], [1, 1]]


def polygon(*rings: list[list[float]]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": list(rings)}


def area(region: Region) -> float:
    assert isinstance(region, PolygonRegion)
    return float(region.geometry.area)


def holds(region: Region, x: float, y: float) -> bool:
    inside = bool(region.overlaps(np.array([[x, y, x, y]], np.float64))[0])
    boxes = region.boxes(LONLAT)
    in_box = ((boxes[:, 0] <= x) & (x <= boxes[:, 2]) & (boxes[:, 1] <= y) & (y <= boxes[:, 3])).any()
    assert in_box or not inside
    assert (region.distance(x, y) == 0) == inside
    return inside


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("circle(-73.99, 40.73, 2.5km)", CircleRegion(-73.99, 40.73, 2.5)),
        ("  Circle ( -73.99,40.73 , 250 M ) ", CircleRegion(-73.99, 40.73, 0.25)),
        ("circle(+1.,.5,1e2km)", CircleRegion(1.0, 0.5, 100.0)),
        ("world", WORLD),
        (" WORLD\n", WORLD),
        ('{"type":"World"}', WORLD),
        ('{"type":"Circle","coordinates":[1,2],"radius":3}', CircleRegion(1.0, 2.0, 3.0)),
        ('{"type":"Point","coordinates":[1,2,99]}', BoxRegion(1.0, 2.0, 1.0, 2.0)),
        ('{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]}}', BoxRegion(1.0, 2.0, 1.0, 2.0)),
        (json.dumps(polygon(TRIANGLE)), PolygonRegion(shapely.Polygon(TRIANGLE))),
        (json.dumps(polygon(TRIANGLE, HOLE)), PolygonRegion(shapely.Polygon(TRIANGLE, [HOLE]))),
        (json.dumps(polygon(TRIANGLE[:3])), PolygonRegion(shapely.Polygon(TRIANGLE))),  # not closed
        (
            json.dumps(polygon([[*at, 7] for at in TRIANGLE])),
            PolygonRegion(shapely.Polygon(TRIANGLE)),
        ),  # with height
        (json.dumps(polygon([[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]])), BoxRegion(0.0, 0.0, 2.0, 1.0)),
        (json.dumps(polygon([[0, 0], [0, 1], [2, 1], [2, 0], [0, 0]])), BoxRegion(0.0, 0.0, 2.0, 1.0)),
        (json.dumps(polygon([[-180, -90], [180, -90], [180, 90], [-180, 90], [-180, -90]])), WORLD),
    ],
)
def test_accepted_forms(text: str, region: Region) -> None:
    assert parse_region(text, LONLAT) == region


def test_planar_forms() -> None:
    assert parse_region("circle(500, 400, 2.5)", PLANE) == CircleRegion(500, 400, 2.5, planar=True)
    assert parse_region('{"type":"Circle","coordinates":[500,400],"radius":2}', PLANE).describe() == "2 round 500, 400"
    assert parse_region({"type": "Point", "coordinates": [500, 400]}, PLANE) == BoxRegion(500, 400, 500, 400, True)
    far = parse_region(polygon([[170, 0], [-170, 0], [0, 900]]), PLANE)
    assert area(far) == 170 * 900
    square = parse_region(polygon([[0, 0], [500, 0], [500, 500], [0, 500]]), PLANE)
    assert square == BoxRegion(0, 0, 500, 500, planar=True)
    with pytest.raises(InvalidInput, match="plain number"):
        parse_region("circle(500, 400, 2.5km)", PLANE)


def test_collections_and_multipolygons_are_unions() -> None:
    two = {"type": "MultiPolygon", "coordinates": [[TRIANGLE], [[[5, 0], [15, 0], [5, 10]]]]}
    assert area(parse_region(two, LONLAT)) == pytest.approx(87.5)
    nested = {
        "type": "GeometryCollection",
        "geometries": [polygon(TRIANGLE), {"type": "GeometryCollection", "geometries": [two]}],
    }
    assert area(parse_region(nested, LONLAT)) == pytest.approx(87.5)
    assert area(parse_region({"type": "Feature", "properties": None, "geometry": nested}, LONLAT)) == pytest.approx(
        87.5
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "the region is empty"),
        ("paris", "cannot read the region 'paris'"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0)", "cannot read the WKT"),
        ("circle(1, 2)", "cannot read the circle"),
        ("circle(1, 2, 3)", "needs km, m or miles"),
        ("circle(1, 2, 3 acres)", "not 'acres'"),
        ("circle(1, 2, -3km)", "not negative"),
        ("circle(1, 95, 3km)", "are x and y swapped"),
        ("circle(1, 2, 1e999km)", "finite"),
        ('{"type": "Polygon"', "not valid JSON.*character 19"),
        ("{}", "no type"),
        ('{"type": ["Polygon"]}', "is not a region"),
        ('{"type": "LineString", "coordinates": [[0,0],[1,1]]}', "'LineString' is not a region"),
        ('{"type": "FeatureCollection", "features": []}', "'FeatureCollection' is not a region"),
        ('{"type": "Feature", "geometry": null}', "Feature has no geometry"),
        ('{"type": "Polygon"}', "Polygon has no coordinates"),
        ('{"type": "Polygon", "coordinates": []}', "Polygon has no coordinates"),
        ('{"type": "Polygon", "coordinates": [[]]}', "Polygon has no coordinates"),
        ('{"type": "MultiPolygon", "coordinates": []}', "MultiPolygon has no polygons"),
        ('{"type": "GeometryCollection", "geometries": []}', "has no geometries"),
        ('{"type": "GeometryCollection", "geometries": [1]}', "lists geometries"),
        (
            '{"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [0,0]}]}',
            "'Point' is not a region",
        ),
        ('{"type": "Polygon", "coordinates": [[[0,0],[1,1]]]}', "at least three corners"),
        ('{"type": "Polygon", "coordinates": [[0,0,1,1]]}', r"list of \[x, y\]"),
        ('{"type": "Polygon", "coordinates": [[["0","0"],["1","0"],["1","1"]]]}', r"list of \[x, y\]"),
        ('{"type": "Polygon", "coordinates": [[[0,0],[1],[1,1]]]}', r"list of \[x, y\]"),
        ('{"type": "Polygon", "coordinates": [[[0,0],[1,null],[1,1]]]}', r"list of \[x, y\]"),
        ('{"type": "Polygon", "coordinates": [[[0,0],[1,NaN],[1,1]]]}', "NaN or infinite"),
        ('{"type": "Polygon", "coordinates": [[[0,0],[1,0],[2,0]]]}', "no area"),
        ('{"type": "Polygon", "coordinates": [[[0,0],[10,0],[0,100]]]}', "latitude 100.0.*swapped"),
        ('{"type": "Polygon", "coordinates": [[[0,0],[1e6,0],[0,10]]]}', "longitude 1000000.0"),
        ('{"type": "Point", "coordinates": [0]}', r"are \[x, y\]"),
        ('{"type": "Point", "coordinates": [true, 1]}', "two numbers"),
        ('{"type": "Point", "coordinates": [190, 1]}', "add or subtract 360"),
        ('{"type": "Circle", "coordinates": [0, 1]}', "radius is a number of kilometres, not None"),
        ('{"type": "Circle", "coordinates": [0, 1], "radius": "2"}', "radius is a number"),
        ('{"type": "Circle", "coordinates": [0, 1], "radius": 1' + "0" * 400 + "}", "finite"),
        (7, "not int"),
        (None, "not NoneType"),
        ('{"a":' * 100_000, "nested|JSON"),
        ('{"type": "Point", "coordinates": [' + "1" * 5000 + ", 0]}", "too long a number"),
    ],
)
def test_errors_name_the_reason(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_region(given, LONLAT)
    assert caught.value.column == "region"
    assert len(caught.value.reason) < 400


def test_deeply_nested_collections_are_refused() -> None:
    nested: dict[str, Any] = polygon(TRIANGLE)
    for _ in range(40):
        nested = {"type": "GeometryCollection", "geometries": [nested]}
    with pytest.raises(InvalidInput, match="32 deep"):
        parse_region(nested, LONLAT)


def test_crossing_polygons_are_repaired_and_keep_their_area() -> None:
    bow_tie = parse_region(polygon([[0, 0], [10, 10], [10, 0], [0, 10]]), LONLAT)
    assert area(bow_tie) == 50
    with_spike = parse_region(polygon([[0, 0], [10, 0], [20, 0], [10, 0], [0, 10]]), LONLAT)
    assert area(with_spike) == 50
    assert area(parse_region(polygon([[0, 0], [10, 10], [10, 0], [0, 10]]), PLANE)) == 50


@pytest.mark.parametrize(
    "ring",
    [
        [[170, -10], [-170, -10], [-170, 10], [170, 10]],  # jumps
        [[170, -10], [190, -10], [190, 10], [170, 10]],  # runs on
        [[-190, -10], [-170, -10], [-170, 10], [-190, 10]],
        [[530, -10], [540, -10], [540, 10], [530, 10]],
    ],
)
def test_rings_over_the_antimeridian_are_split(ring: list[list[float]]) -> None:
    region = parse_region(polygon(ring), LONLAT)
    is_whole = ring[0][0] != 530
    assert area(region) == (400 if is_whole else 200)
    assert holds(region, 175, 0) and holds(region, 180, 5) and holds(region, -180, 5)
    assert holds(region, -175, 0) == is_whole
    assert not holds(region, 0, 0) and not holds(region, 169, 0)
    assert len(region.boxes(LONLAT)) == 2


def test_a_clockwise_ring_over_the_antimeridian_is_split_in_the_same_way() -> None:
    region = parse_region(polygon([[170, -10], [172, 12], [-170, 10], [-170, -10]]), LONLAT)
    assert holds(region, 175, 0) and holds(region, -175, 0) and not holds(region, 0, 0)


def test_the_winding_distinguishes_a_wide_box_from_a_box_over_the_antimeridian() -> None:
    wide = [[-170, -10], [170, -10], [170, 10], [-170, 10]]
    assert parse_region(polygon(wide), LONLAT) == BoxRegion(-170, -10, 170, 10)
    assert area(parse_region(polygon(wide[::-1]), LONLAT)) == 400


NORTH = [[0, 60], [90, 62], [170, 60], [-100, 61]]


@pytest.mark.parametrize("ring", [NORTH, NORTH[::-1], NORTH[2:] + NORTH[:2]])
@pytest.mark.parametrize("side", [1, -1])
def test_a_ring_round_a_pole_holds_the_pole(ring: list[list[float]], side: int) -> None:
    region = parse_region(polygon([[x, side * y] for x, y in ring]), LONLAT)
    for x in (-180, -100, 0, 77, 180):
        assert holds(region, x, side * 90) and holds(region, x, side * 63)
        assert not holds(region, x, side * 59) and not holds(region, x, -side * 90)


def test_a_ring_round_a_pole_may_have_a_hole_round_the_pole() -> None:
    region = parse_region(polygon(NORTH, [[0, 80], [-100, 80], [170, 80], [90, 80]]), LONLAT)
    assert holds(region, 180, 70) and holds(region, 20, 80) and holds(region, -180, 79)
    assert not holds(region, 0, 90) and not holds(region, -180, 81) and not holds(region, 20, 50)


def test_a_ring_on_the_equator_has_its_pole_to_the_left() -> None:
    equator = [[0, 0], [120, 0], [-120, 0]]
    assert holds(parse_region(polygon(equator), LONLAT), 5, 45)
    assert holds(parse_region(polygon(equator[::-1]), LONLAT), 5, -45)


def test_holes_over_the_antimeridian_are_cut_out_on_either_side() -> None:
    shell = [[160, -20], [-160, -20], [-160, 20], [160, 20]]
    for hole in (
        [[175, -5], [175, 5], [-175, 5], [-175, -5]],
        [[-185, -5], [-185, 5], [-175, 5], [-175, -5]],
    ):
        region = parse_region(polygon(shell, hole), LONLAT)
        assert area(region) == 1500
        assert not holds(region, 180, 0) and not holds(region, -178, 0)
        assert holds(region, 175, 0) and holds(region, -175, 5) and holds(region, 180, 6)


def test_a_hole_that_leaves_nothing_is_refused() -> None:
    shell = [[170, -10], [-170, -10], [-170, 10], [170, 10]]
    with pytest.raises(InvalidInput, match="empty"):
        parse_region(polygon(shell, [[165, -15], [-165, -15], [-165, 15], [165, 15]][::-1]), LONLAT)


def test_bands_and_polar_caps_within_the_bounds_are_not_changed() -> None:
    cap = [[-180, -70], [0, -65], [180, -70], [180, -90], [-180, -90]]
    region = parse_region(polygon(cap), LONLAT)
    assert holds(region, 0, -66) and holds(region, 123, -90) and not holds(region, -179, -69)
    assert parse_region(polygon([[-180, 10], [180, 10], [180, 20], [-180, 20]]), LONLAT) == BoxRegion(-180, 10, 180, 20)


def test_a_ring_that_runs_twice_round_the_pole_is_refused() -> None:
    twice = [[x, 60 + i] for i, x in enumerate([0, 120, -120, 0, 120, -120])]
    with pytest.raises(InvalidInput, match="more than once"):
        parse_region(polygon(twice), LONLAT)


@pytest.mark.parametrize(
    "region",
    [
        WORLD,
        CircleRegion(1.1, 2.2, 3.3),
        BoxRegion(1.5, 2.5, 1.5, 2.5),
        BoxRegion(1, 2, 1, 9),
        BoxRegion(-170, 2, 170, 9),
        BoxRegion(1, 2, 3, 4),
        PolygonRegion(shapely.Polygon(TRIANGLE, [HOLE])),
        PolygonRegion(shapely.MultiPolygon([shapely.box(170, 0, 180, 10), shapely.box(-180, 0, -170, 10)])),
    ],
)
def test_regions_survive_geojson(region: Region) -> None:
    assert parse_region(json.dumps(region.to_geojson()), LONLAT) == region


def test_the_examples_of_the_manual_are_accepted() -> None:
    manual = Path(__file__).parents[3].joinpath("docs", "reference", "regions.md").read_text()
    blocks = re.findall(r"^```(json|text)\n(.*?)^```", manual, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    for kind, block in blocks:
        for text in [block] if kind == "json" else block.splitlines():
            assert parse_region(text, LONLAT).boxes(LONLAT).size
