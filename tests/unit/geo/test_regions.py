from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import shapely

from nearcast.errors import InvalidInput
from nearcast.geo.circle import CircleRegion
from nearcast.geo.distance import EARTH_RADIUS_KM, great_circle_km
from nearcast.geo.polygon import MAX_BOXES, PolygonRegion
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.space import LONLAT, Space

PLANE = Space.of((0, 0, 100, 100))
DEGREE_KM = math.radians(1) * EARTH_RADIUS_KM


def points(*places: tuple[float, float]) -> np.ndarray:
    return np.array([(x, y, x, y) for x, y in places], np.float64).reshape(-1, 4)


def test_a_box_is_its_own_box() -> None:
    region = BoxRegion(1, 2, 3, 4)
    assert region.is_box
    assert region.boxes(LONLAT).tolist() == [[1, 2, 3, 4]]
    assert region.overlaps(points((3, 4), (1, 2), (3.1, 4))).tolist() == [True, True, False]
    assert region.distance(2, 3) == 0
    assert region.distance(2, 5) == pytest.approx(DEGREE_KM)
    assert BoxRegion(1, 2, 3, 4, planar=True).distance(6, 8) == 5


def test_the_world_holds_every_place_of_every_space() -> None:
    far = np.finfo(np.float64).max
    assert WORLD.is_box
    assert WORLD.boxes(LONLAT).tolist() == [[-180, -90, 180, 90]]
    assert WORLD.boxes(PLANE).tolist() == [[-far, -far, far, far]]
    assert WORLD.overlaps(points((180, 90), (far, -far))).all()
    assert WORLD.distance(12, 34) == 0


@pytest.mark.parametrize("box", [(0, 0, math.nan, 0), (0, 0, math.inf, 0), (0, 0, 181, 0), (2, 0, 1, 0)])
def test_bad_boxes_are_refused(box: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput) as caught:
        BoxRegion(*box)
    assert caught.value.column == "region"


@pytest.mark.parametrize("circle", [(0, 91, 1), (math.nan, 0, 1), (0, 0, -1), (0, 0, math.inf), (0, 0, math.nan)])
def test_bad_circles_are_refused(circle: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput):
        CircleRegion(*circle)


@pytest.mark.parametrize(
    ("circle", "boxes"),
    [
        ((0, 0, DEGREE_KM), [[-1, -1, 1, 1]]),
        ((179.5, 0, DEGREE_KM), [[-180, -1, -179.5, 1], [178.5, -1, 180, 1]]),
        ((-180, 0, DEGREE_KM), [[-180, -1, -179, 1], [179, -1, 180, 1]]),
        ((180, 0, DEGREE_KM), [[-180, -1, -179, 1], [179, -1, 180, 1]]),
        ((179, 0, DEGREE_KM), [[-180, -1, -180, 1], [178, -1, 180, 1]]),  # reaches 180 exactly
        ((-179, 0, DEGREE_KM), [[-180, -1, -178, 1], [180, -1, 180, 1]]),
        ((50, 89.5, DEGREE_KM), [[-180, 88.5, 180, 90]]),
        ((50, 89, DEGREE_KM), [[-180, 88, 180, 90]]),  # reaches the pole exactly
        ((50, -90, DEGREE_KM), [[-180, -90, 180, -89]]),
        ((0, 0, 20_015.2), [[-180, -90, 180, 90]]),
        ((0, 0, 1e9), [[-180, -90, 180, 90]]),
        ((7, 7, 0), [[7, 7, 7, 7]]),
        ((0, 60, DEGREE_KM), [[-2.0003047, 59, 2.0003047, 61]]),
    ],
)
def test_boxes_of_circles(circle: tuple[float, float, float], boxes: list[list[float]]) -> None:
    found = CircleRegion(*circle).boxes(LONLAT)
    assert found.shape == (len(boxes), 4)
    assert found == pytest.approx(np.array(boxes), abs=1e-6)
    assert found[:, 2].max() <= 180 and found[:, 0].min() >= -180 and np.abs(found[:, 1::2]).max() <= 90


def test_a_circle_is_closed_and_wraps() -> None:
    on_rim = great_circle_km(179.0, 10.0, -179.0, 10.5)
    circle = CircleRegion(179, 10, on_rim)
    assert circle.overlaps(points((-179, 10.5), (-178.99999, 10.5), (179, 10))).tolist() == [
        True,
        False,
        True,
    ]
    assert not circle.is_box
    assert circle.distance(179, 10) == 0
    assert circle.distance(179, 30) == pytest.approx(20 * DEGREE_KM - on_rim)


def test_a_circle_of_radius_0_is_its_centre_in_all_its_coordinates() -> None:
    assert CircleRegion(180, 5, 0).overlaps(points((180, 5), (-180, 5), (180, 5.0000001))).tolist() == [
        True,
        True,
        False,
    ]
    assert CircleRegion(33, 90, 0).overlaps(points((-50, 90), (33, 89.9999999))).tolist() == [True, False]


def test_a_circle_of_20_015_km_leaves_out_only_the_antipode() -> None:
    circle = CircleRegion(0, 0, 20_015)
    assert circle.overlaps(points((180, 0), (180, 0.01), (-90, 45), (0, -90))).tolist() == [
        False,
        True,
        True,
        True,
    ]
    assert CircleRegion(0, 0, 20_016).overlaps(points((180, 0))).all()


def test_circles_overlap_messages_with_a_range() -> None:
    circle = CircleRegion(0, 0, 2 * DEGREE_KM)
    boxes = np.array(
        [[1, 1, 5, 5], [1.5, 1.5, 5, 5], [-9, -9, 9, 9], [2, -1, 3, 1], [2.001, -1, 3, 1], [-5, 2, 5, 2]],
        np.float64,
    )
    assert circle.overlaps(boxes).tolist() == [True, False, True, True, False, True]


def test_planar_circles() -> None:
    circle = CircleRegion(0, 0, 5, planar=True)
    assert circle.overlaps(points((3, 4), (3.0000001, 4), (-5, 0))).tolist() == [True, False, True]
    assert circle.boxes(PLANE) == pytest.approx(np.array([[-5, -5, 5, 5]]))
    huge = CircleRegion(1e308, 0, 1.7e308, planar=True)
    assert np.isfinite(huge.boxes(PLANE)).all()
    assert huge.overlaps(points((-1.79e308, 0), (1.79e308, 0))).tolist() == [False, True]


def test_a_region_of_one_space_is_refused_in_another() -> None:
    for region in (BoxRegion(0, 0, 1, 1), CircleRegion(0, 0, 1), PolygonRegion(shapely.box(0, 0, 1, 1))):
        with pytest.raises(InvalidInput, match="lon/lat region in a planar space"):
            region.boxes(PLANE)


RING = shapely.Polygon([(0, 0), (10, 0), (10, 10), (0, 10)], [[(4, 4), (6, 4), (6, 6), (4, 6)]])


def test_polygon_borders_and_the_borders_of_holes_belong_to_it() -> None:
    region = PolygonRegion(RING)
    places = points((0, 0), (5, 0), (5, 5), (4, 5), (6, 6), (3.999, 5), (10.0001, 5))
    assert region.overlaps(places).tolist() == [True, True, False, True, True, True, False]


def test_polygons_overlap_messages_with_a_range_even_without_area() -> None:
    region = PolygonRegion(RING)
    boxes = np.array(
        [
            [4.5, 4.5, 5.5, 5.5],  # in the hole
            [4.5, 4.5, 6, 5.5],  # touches the hole's border
            [10, 10, 11, 11],  # touches a corner
            [-5, -5, 20, 20],  # around everything
            [10.1, 0, 11, 1],
            [5, 4.5, 5, 5.5],  # a line in the hole
            [5, 4.5, 5, 6],  # a line that touches the hole's border
            [10, 5, 12, 5],
            [10.1, 5, 12, 5],
        ]
    )
    assert region.overlaps(boxes).tolist() == [False, True, True, True, False, False, True, True, False]


def test_polygon_distances() -> None:
    region = PolygonRegion(RING)
    assert region.distance(1, 1) == 0
    assert region.distance(5, 0) == 0
    assert region.distance(5, 5) == pytest.approx(DEGREE_KM * math.cos(math.radians(5)), rel=1e-3)
    assert region.distance(5, -3) == pytest.approx(3 * DEGREE_KM)
    assert region.distance(-3, -4) == pytest.approx(great_circle_km(-3.0, -4.0, 0.0, 0.0))
    assert PolygonRegion(RING, planar=True).distance(-3, -4) == 5
    assert PolygonRegion(RING, planar=True).distance(5, 5) == 1


def test_points_at_180_degrees_or_a_pole_are_found_by_all_their_coordinates() -> None:
    wedge = PolygonRegion(shapely.Polygon([(170, -10), (180, 0), (170, 10)]))
    assert wedge.overlaps(points((-180, 0), (180, 0), (-180, 1))).tolist() == [True, True, False]
    assert wedge.distance(-180, 0) == 0
    cap = PolygonRegion(shapely.Polygon([(0, 80), (30, 80), (15, 90)]))
    assert cap.overlaps(points((-100, 90), (-100, 89))).tolist() == [True, False]
    assert cap.distance(-100, 90) == 0
    for region, place in ((wedge, (-180, 0)), (cap, (-100, 90))):
        assert any(BoxRegion(*box).overlaps(points(place))[0] for box in region.boxes(LONLAT))


def test_many_islands_share_a_few_disjoint_boxes() -> None:
    islands = shapely.MultiPolygon([shapely.box(3 * i, i % 5, 3 * i + 1, i % 5 + 1) for i in range(50)])
    boxes = PolygonRegion(islands).boxes(LONLAT)
    assert len(boxes) == MAX_BOXES
    assert (boxes[1:, 0] > boxes[:-1, 2]).all()
    for part in islands.geoms:
        assert any(shapely.box(*box).covers(part) for box in boxes)


def test_islands_above_each_other_share_a_box_so_that_no_place_is_in_two() -> None:
    islands = shapely.MultiPolygon([shapely.box(0, 0, 5, 1), shapely.box(1, 3, 3, 4), shapely.box(5, 6, 8, 7)])
    assert PolygonRegion(islands).boxes(LONLAT).tolist() == [[0, 0, 8, 7]]


@pytest.mark.parametrize(
    "geometry",
    [
        shapely.Point(0, 0),
        shapely.Polygon(),
        shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]),
        shapely.box(170, 0, 190, 10),
        shapely.box(0, 80, 10, 91),
    ],
)
def test_bad_geometries_are_refused(geometry: shapely.Geometry) -> None:
    with pytest.raises(InvalidInput):
        PolygonRegion(geometry)


@pytest.mark.parametrize(
    ("region", "phrase"),
    [
        (WORLD, "the whole world"),
        (BoxRegion(1, 2, 3.5, 4), "the box 1, 2 to 3.5, 4"),
        (BoxRegion(1, 2, 1, 2), "the point 1, 2"),
        (CircleRegion(-73.99, 40.73, 2.5), "2.5 km round -73.99, 40.73"),
        (CircleRegion(1, 2, 3, planar=True), "3 round 1, 2"),
        (PolygonRegion(RING), "a polygon with 8 corners"),
        (
            PolygonRegion(shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)])),
            "2 polygons with 8 corners",
        ),
    ],
)
def test_regions_describe_themselves_and_survive_pickling(region: Region, phrase: str) -> None:
    assert region.describe() == phrase
    assert pickle.loads(pickle.dumps(region)) == region


@pytest.mark.parametrize("region", [WORLD, BoxRegion(0, 0, 1, 1), CircleRegion(0, 0, 1), PolygonRegion(RING)])
def test_no_places_give_empty_results(region: Region) -> None:
    assert region.overlaps(np.empty((0, 4))).tolist() == []
