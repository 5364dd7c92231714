from __future__ import annotations

import math
import threading

import numpy as np
import pytest
import shapely

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.pointers import pointers_to
from nearcast.geo.shapes.arrays import BORDER, cell_state, locate, overlapping, shape_overlaps, unsafe_shapes
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import LONLAT, Space

PLANE = Space.of((0, 0, 10, 10))


def circles(*rows: tuple[float, float, float]) -> ShapeColumns:
    return ShapeColumns(np.array(rows, np.float64).reshape(-1, 3), np.full(len(rows), None, object))


def polygons(*geometries: shapely.Geometry) -> ShapeColumns:
    return ShapeColumns(np.zeros((len(geometries), 3)), np.array(geometries, object))


def points(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.column_stack([x, y, x, y])


def table_of(columns: ShapeColumns, space: Space = LONLAT) -> ShapeTable:
    table = ShapeTable(space)
    table.add(columns)
    return table


def wavy(corners: int) -> shapely.Geometry:
    angles = np.linspace(0, 2 * math.pi, corners, endpoint=False)
    reach = 5 + np.sin(7 * angles)
    return shapely.Polygon(np.column_stack([reach * np.cos(angles), reach * np.sin(angles)]))


@pytest.mark.parametrize(("corners", "most"), [(10, 0.30), (100, 0.20), (1000, 0.06), (10_000, 0.06)])
def test_the_grid_decides_most_points(corners: int, most: float) -> None:
    shapes = table_of(polygons(wavy(corners if not JIT_DISABLED else min(corners, 1000)))).view()
    rng = np.random.default_rng(1)
    xmin, ymin, xmax, ymax = shapes.heads[0, :4].tolist()
    states = [
        cell_state(shapes, 0, x, y)
        for x, y in zip(rng.uniform(xmin, xmax, 1000).tolist(), rng.uniform(ymin, ymax, 1000).tolist(), strict=True)
    ]
    assert states.count(BORDER) < most * 1000


@pytest.mark.parametrize("corners", [10, 100, 1000])
def test_a_slab_lists_few_edges_and_lists_are_short(corners: int) -> None:
    shapes = table_of(polygons(wavy(corners))).view()
    n_slabs, n_entries = int(shapes.words[5]), int(shapes.words[6])
    assert n_entries <= 4 * (corners + 1)
    assert n_entries / n_slabs < 12
    assert 4 * len(shapes.words) + shapes.corners.nbytes < 45 * corners + 256


def test_edges_that_each_reach_into_every_slab_do_not_multiply() -> None:
    """A comb: every edge is as high as the polygon, so there may only be a few slabs."""
    n = 300
    x = np.arange(2 * n) / 10
    teeth = np.column_stack([x, np.where(np.arange(2 * n) % 2, 0.0, 50.0)])
    shapes = table_of(polygons(shapely.Polygon([*teeth, (x[-1], -1), (0, -1)])), PLANE).view()
    assert int(shapes.words[6]) < 4 * 2 * n


def test_what_a_grid_decides_is_right_next_to_cell_borders() -> None:
    shapes = table_of(polygons(wavy(60))).view()
    side = int(shapes.words[4])
    xmin, ymin, xmax, ymax = shapes.heads[0, :4].tolist()
    lines = np.linspace(0, 1, side + 1)
    x, y = (axis.ravel() for axis in np.meshgrid(xmin + lines * (xmax - xmin), ymin + lines * (ymax - ymin)))
    if JIT_DISABLED:
        x, y = x[::7], y[::7]
    for near_x, near_y in ((x, y), (np.nextafter(x, -9), y), (np.nextafter(x, 9), np.nextafter(y, 9))):
        found = overlapping(shapes, np.zeros(len(x), np.int32), points(near_x, near_y))
        assert (found == shapely.intersects_xy(wavy(60), near_x, near_y)).all()


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e150, 1e307])
def test_planar_polygons_of_any_size(scale: float) -> None:
    ring = np.array([(-9, -9), (9, -9), (9, 9), (0, 2), (-9, 9)]) * scale
    shapes = table_of(polygons(shapely.Polygon(ring)), PLANE).view()
    at = np.array([(0, 1), (0, 2), (0, 3), (9, 9), (-9, 9), (-8, 8.2), (-8, 8.3), (17, 0), (9, 0)]) * scale
    expected = [True, True, False, True, True, True, False, False, True]
    found = overlapping(shapes, np.zeros(len(at), np.int32), points(at[:, 0], at[:, 1]))
    assert found.tolist() == expected
    boxes = np.array([(-1, 3, 1, 4), (-1, 2, 1, 4), (-9, 9, -9, 17), (-17, -17, 17, 17), (-5, 0, 5, 0)]) * scale
    found = overlapping(shapes, np.zeros(5, np.int32), boxes)
    assert found.tolist() == [False, True, True, True, True]


def test_a_polygon_much_smaller_than_its_coordinates_has_no_grid_and_is_exact() -> None:
    step = math.ulp(100.0)
    shapes = table_of(polygons(shapely.Polygon([(100, 50), (100 + 4 * step, 50), (100, 50 + 4 * step)]))).view()
    at = np.array([(0, 0), (1, 1), (2, 2), (3, 2), (4, 0), (5, 0)]) * step + (100, 50)
    found = overlapping(shapes, np.zeros(len(at), np.int32), points(at[:, 0], at[:, 1]))
    assert found.tolist() == [True, True, True, False, True, False]
    assert shapes.words[4] == 0


@kernel
def count_through_pointers(pointers, boxes, place):
    shapes = unsafe_shapes(pointers, 1)
    n = 0
    for message in range(len(boxes)):
        locate(shapes, boxes, message, place)
        for number in range(len(shapes.blocks)):
            n += shape_overlaps(shapes, number, boxes, message, place)
    return n


@pytest.mark.parametrize("space", [LONLAT, PLANE], ids=["lon/lat", "plane"])
def test_shapes_are_read_through_pointers(space: Space) -> None:
    table = table_of(circles((0, 0, 3), (1, 1, 500)), space)
    table.add(polygons(wavy(12), shapely.box(2, 2, 9, 3)))
    table.discard(np.array([1], np.int32))
    boxes = np.array([(0.0, 0, 0, 0), (3, 2, 3, 2), (8, 1, 8, 2), (20, 20, 20, 20)])
    pairs = [(number, m) for number in range(4) for m in range(4)]
    numbers, messages = np.array(pairs, np.int32).T
    expected = int(table.overlaps(np.ascontiguousarray(numbers), boxes[messages]).sum())
    arrays = (np.zeros(1), *table.view())
    assert count_through_pointers(pointers_to(arrays), boxes, np.zeros(4)) == expected == 5


def test_an_older_view_stays_right_while_shapes_are_added_and_discarded() -> None:
    table = table_of(polygons(*(wavy(n) for n in range(5, 25))))
    table.add(circles((0, 0, 400), (3, 3, 100)))
    rng = np.random.default_rng(2)
    numbers = np.tile(np.arange(22, dtype=np.int32), 20)
    boxes = points(rng.uniform(-6, 6, 440), rng.uniform(-6, 6, 440))
    view, expected = table.view(), table.overlaps(numbers, boxes)
    wrong, done = [], threading.Event()

    def read() -> None:
        while not done.is_set():
            if (overlapping(view, numbers, boxes) != expected).any():
                wrong.append(1)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(5 if JIT_DISABLED else 100):
        more = table.add(polygons(*(wavy(n) for n in range(30, 40))))
        again = table.add(circles((1, 1, 5)))
        assert table.overlaps(more, np.zeros((10, 4))).all()
        table.discard(np.concatenate([more, again]))  # compacts now and then
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert (table.overlaps(numbers, boxes) == expected).all()


def test_a_view_is_the_same_tuple_until_a_change_needs_room() -> None:
    table = table_of(circles((0, 0, 1)))
    views = {id(table.view()): table.view()}
    for k in range(200):
        table.add(circles((k, 0, 1)))
        views[id(table.view())] = table.view()
    assert len(views) < 12


def test_a_circle_around_the_globe_holds_every_place() -> None:
    shapes = table_of(circles((0, 0, 20_015.2), (0, 0, 1e9), (10, 90, 20_015.0))).view()
    far = np.array([[180.0, 0, 180, 0]] * 2 + [[0.0, -90, 0, -90]])
    assert overlapping(shapes, np.arange(3, dtype=np.int32), far).tolist() == [True, True, False]
