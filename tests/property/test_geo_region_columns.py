"""The regions of many texts at once are those of `parse_region`, text by text, and so are the mistakes."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.geo import region_columns
from nearcast.geo.circle import CircleRegion
from nearcast.geo.geojson import parse_region
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import NO_REGION, Region
from nearcast.geo.region_columns import read_regions
from nearcast.geo.space import LONLAT, Space

EXAMPLES = settings(max_examples=200, deadline=None)
PLANE = Space.of((0, 0, 10, 10))

SOUND = ["0", "1", "2", "3", "0.5", "-1.25", "2.0"]
BORDERS = ["-180", "180", "179.5", "-179.5", "90", "-90", "89.5", "180.5", "-0", "-0.0", "541"]
ODD = ["1e1", "01", "5.", ".5", "+2", "1.7976931348623157e308", "12345678901234567890", "1.234567890123456789012345"]
ODD += ["0.1000000000000000055511151231257827", "NaN", "true", '"1"', "null", "-", "- 1", "1 2", ""]
number = st.sampled_from(SOUND) | st.sampled_from(SOUND + BORDERS) | st.sampled_from(SOUND + BORDERS + ODD)
space_ = st.sampled_from(["", "", " ", "\n", "\t "])


@st.composite
def circles(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["circle", "circle", "Circle", "circles", "circ"]))
    x, y, radius = draw(number), draw(number), draw(number)
    unit = draw(st.sampled_from(["km", "km", "m", "KM", "", "mm", "k", "e3km", "cm"]))
    gaps = [draw(space_) for _ in range(4)]
    end = draw(st.sampled_from([")", ")", ")", "", "))", ") ", ")x"]))
    return f"{name}{gaps[0]}({gaps[1]}{x},{gaps[2]}{y} , {radius}{gaps[3]}{unit}{end}"


@st.composite
def rings(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        x0, y0, x1, y1 = draw(number), draw(number), draw(number), draw(number)
        corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)][:: draw(st.sampled_from([1, -1]))]
        if draw(st.integers(0, 5)) == 0:
            corners[draw(st.integers(0, 3))] = draw(number), draw(number)
    else:
        corners = draw(st.lists(st.tuples(number, number), min_size=0, max_size=6))
    if corners and draw(st.booleans()):
        corners = [*corners, corners[0]]
    height = draw(st.sampled_from(["", "", "", "", ",7"]))
    return "[" + ",".join(f"[{x}, {y}{height}]" for x, y in corners) + "]"


@st.composite
def polygons(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["Polygon"] * 6 + ["polygon", "MultiPolygon", "Point"]))
    of_kind, coordinates = f'"type": "{kind}"', f'"coordinates": [{", ".join(draw(st.lists(rings(), max_size=3)))}]'
    more = draw(st.sampled_from([[], [], [], [], [], ['"bbox": [1, 2, 3, 4]'], [of_kind], [coordinates]]))
    members = draw(st.permutations([of_kind, coordinates, *more]))[: draw(st.sampled_from([3, 3, 3, 1]))]
    gaps = [draw(space_) for _ in range(4)]
    end = draw(st.sampled_from(["}", "}", "}", "}}", "", "} x"]))
    return f"{gaps[0]}{{{gaps[1]}{f'{gaps[2]},'.join(members)}{gaps[3]}{end}"


others = st.sampled_from(
    [
        *("world", " World", "nowhere", "", " ", "{", "{}", "[]", "circle", "\u00a0world"),
        '{"type": "Point", "coordinates": [1, 2]}',
        '{"type": "Circle", "coordinates": [1, 2], "radius": 3}',
        '{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1]]]}}',
        '{"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [0, 1]]], [[[5, 5], [6, 5], [5, 6]]]]}',
    ]
)


def agrees_with_parse_region(texts: list[str], space: Space, few: int = 0) -> None:
    read = read_regions(pa.array(texts, pa.string()), space, few)
    for i, text in enumerate(texts):
        try:
            region = parse_region(text, space)
        except InvalidInput as error:
            assert read.numbers[i] == NO_REGION and read.errors[i].reason == error.reason
            continue
        number = int(read.numbers[i])
        assert i not in read.errors
        own = read.boxes[read.box_starts[number] : read.box_starts[number + 1]]
        assert np.array_equal(own, region.boxes(space)), text
        assert read.is_box[number] == region.is_box
        is_same_shape(read.circles[number], read.geometries[number], region)


def is_same_shape(circle: np.ndarray, geometry: object, region: Region) -> None:
    polygon = region.geometry if isinstance(region, PolygonRegion) else None
    assert shapely.to_wkb(geometry) == shapely.to_wkb(polygon)
    if isinstance(region, CircleRegion):
        assert circle.tolist() == [region.x, region.y, region.radius]


@EXAMPLES
@given(st.lists(circles() | others, max_size=6), st.sampled_from([LONLAT, PLANE]))
def test_circles_are_those_of_parse_region(texts: list[str], space: Space) -> None:
    agrees_with_parse_region(texts, space)


@EXAMPLES
@given(st.lists(polygons() | others, max_size=6), st.sampled_from([LONLAT, PLANE]))
def test_polygons_are_those_of_parse_region(texts: list[str], space: Space) -> None:
    agrees_with_parse_region(texts, space)


SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
RINGS = {
    "a box": [SQUARE],
    "a box wound the other way": [SQUARE[::-1]],
    "a box that is not closed": [SQUARE[:-1]],
    "a line": [[[0, 0], [1, 0], [1, 0], [0, 0], [0, 0]]],
    "a point": [[[1, 1]] * 5],
    "a box drawn from corner to corner": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]],
    "a box with a corner twice": [[[0, 0], [1, 0], [1, 0], [0, 1], [0, 0]]],
    "a box with a corner repeated": [[*SQUARE[:2], *SQUARE[1:]]],
    "a way along three corners and back": [[[0, 0], [1, 0], [1, 1], [1, 0], [0, 0]]],
    "two corners": [[[0, 0], [1, 1]]],
    "a box with a hole": [[[x * 9, y * 9] for x, y in SQUARE], [[x + 1, y + 1] for x, y in SQUARE]],
    "a hole outside": [SQUARE, [[5, 5], [6, 5], [5, 6]]],
    "a bow tie with a hole": [[[0, 0], [9, 9], [9, 0], [0, 9]], [[1, 2], [1, 3], [2, 3]]],
    "a box over the antimeridian": [[[170, 0], [-170, 0], [-170, 5], [170, 5]]],
    "a box wider than 180 degrees": [[[-170, 0], [170, 0], [170, 5], [-170, 5]]],
    "a box of exactly 180 degrees": [[[-90, 0], [90, 0], [90, 5], [-90, 5]]],
    "a box at the pole": [[[0, 80], [10, 80], [10, 90], [0, 90]]],
    "a box at the antimeridian": [[[170, 0], [180, 0], [180, 5], [170, 5]]],
    "the world": [[[-180, -90], [180, -90], [180, 90], [-180, 90]]],
    "a triangle at the antimeridian": [[[170, 0], [180, 2], [170, 5]]],
    "a triangle past the antimeridian": [[[170, 0], [190, 2], [170, 5]]],
    "a cap": [[[0, 80], [90, 80], [180, 80], [-90, 80]]],
    "too far": [[[0, 0], [600, 0], [0, 1]]],
    "negative zeros": [[[-0.0, -0.0], [1, -0.0], [1, 1], [-0.0, 1]]],
}


@pytest.mark.parametrize("space", [LONLAT, PLANE], ids=["lon/lat", "plane"])
def test_every_special_polygon_is_that_of_parse_region(space: Space) -> None:
    texts = [json.dumps({"type": "Polygon", "coordinates": rings}) for rings in RINGS.values()]
    agrees_with_parse_region(texts + texts[::-1], space)
    agrees_with_parse_region(texts, space, few=len(texts))


NUMBERS = ["-0", "-0.0", "01", "-01", "00", "5.", ".5", "+5", "1e0", "1E0", "0.1", "9007199254740993", "1" * 24, "-"]


@pytest.mark.parametrize("space", [LONLAT, PLANE], ids=["lon/lat", "plane"])
def test_every_form_of_a_number_is_read_or_refused_as_by_parse_region(space: Space) -> None:
    texts = [f'{{"type": "Polygon", "coordinates": [[[{number}, 0], [9, {number}], [3, 7]]]}}' for number in NUMBERS]
    texts += [f"circle({number}, 5, {number}{unit})" for number in NUMBERS for unit in ("", "m", "km", " Km")]
    agrees_with_parse_region(texts, space)


def test_members_that_repeat_are_left_to_parse_region() -> None:
    kind, one, other = ('"type": "Polygon"', *(f'"coordinates": [[[0, 0], [9, 0], [3, {y}]]]' for y in (7, 8)))
    members = [(one, other, kind), (kind, one, other), (one, kind, other), (kind, kind, one), (one,), (kind,)]
    agrees_with_parse_region([f"{{{', '.join(texts)}}}" for texts in members], LONLAT)


def test_numbers_have_all_their_digits() -> None:
    rng = np.random.default_rng(1)
    corners = rng.random((300, 3, 2)) * [360, 180] - [180, 90]
    texts = [json.dumps({"type": "Polygon", "coordinates": [ring]}) for ring in corners.tolist()]
    texts += [f"circle({x!r}, {y!r}, {abs(x)!r}m)" for x, y in corners[:, 0].tolist()]
    agrees_with_parse_region(texts, LONLAT)


def test_no_texts_and_slices_of_a_column_are_read() -> None:
    assert read_regions(pa.array([], pa.string()), LONLAT, few=-1).numbers.tolist() == []
    texts = pa.array(["x", "circle(1, 2, 3km)", "world", "circle(1, 2, 3km)"], pa.large_string()).slice(1)
    read = read_regions(texts, LONLAT, few=0)
    assert read.circles[read.numbers].tolist() == [[1, 2, 3], [0, 0, 0], [1, 2, 3]]


def test_parse_region_reads_only_what_needs_it_and_equal_texts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    def counted(text: str, space: Space) -> Region:
        parsed.append(text)
        return parse_region(text, space)

    monkeypatch.setattr(region_columns, "parse_region", counted)
    ring = [[x * 9, y * 9] for x, y in SQUARE]
    triangle = json.dumps({"type": "Polygon", "coordinates": [ring[:3]]})
    holed = json.dumps({"type": "Polygon", "coordinates": [ring, [[1, 1], [2, 1], [1, 2]]]}, indent=1)
    texts = [f"circle({i}, {i / 7}, {i}km)" for i in range(50)] + [triangle, holed, "world", "nowhere"] * 50
    read = read_regions(pa.array(texts), LONLAT, few=0)
    assert sorted(parsed) == ["nowhere", "world"]
    assert len({id(read.geometries[number]) for number in read.numbers[texts.index(triangle) :: 4]}) == 1
    assert len(read.errors) == 50
