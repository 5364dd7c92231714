from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import shapely

from nearcast.errors import CorruptFile
from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import WORLD, BoxRegion, Region
from nearcast.geo.shapes.arrays import BLOCK_HEAD, IS_MULTI
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import LONLAT, Space

TRIANGLE = PolygonRegion(shapely.Polygon([(0, 0), (10, 0), (0, 10)]))
WEDGE = PolygonRegion(shapely.Polygon([(170, -10), (180, 0), (170, 10)]))
CIRCLE = CircleRegion(0, 0, 500)


def places(*rows: tuple[float, float, float, float]) -> np.ndarray:
    return np.array(rows, np.float64).reshape(-1, 4)


def overlaps(table: ShapeTable, numbers: list[int], boxes: np.ndarray) -> list[bool]:
    return table.overlaps(np.array(numbers, np.int32), boxes).tolist()  # type: ignore[no-any-return]


def add(table: ShapeTable, region: Region) -> int:
    return int(table.add(ShapeColumns.of([region]))[0])


def discard(table: ShapeTable, *numbers: int) -> None:
    table.discard(np.array(numbers, np.int32))


def region_of(table: ShapeTable, number: int) -> Region:
    x, y, radius = (float(value) for value in table.columns(np.array([number], np.int32)).circles[0])
    geometry = table.columns(np.array([number], np.int32)).geometries[0]
    return CircleRegion(x, y, radius) if geometry is None else PolygonRegion(geometry)


def test_circles_and_polygons_are_tested_together() -> None:
    table = ShapeTable(LONLAT)
    triangle, circle, wedge = (add(table, region) for region in (TRIANGLE, CIRCLE, WEDGE))
    boxes = places((4, 4, 4, 4), (4, 4, 4, 4), (3, 3, 3, 3), (-180, 0, -180, 0), (6, 6, 9, 9), (5, 5, 9, 9))
    assert overlaps(table, [triangle, circle, circle, wedge, triangle, triangle], boxes) == [
        True,
        False,
        True,
        True,
        False,
        True,
    ]
    assert overlaps(table, [], places()) == []
    assert len(table) == 3


def test_numbers_are_dense_and_reused_after_a_discard() -> None:
    table = ShapeTable(LONLAT)
    assert [add(table, CIRCLE), add(table, TRIANGLE), add(table, CIRCLE)] == [0, 1, 2]
    discard(table, 1)
    assert overlaps(table, [1, 0], places((1, 1, 1, 1), (1, 1, 1, 1))) == [False, True]
    assert add(table, WEDGE) == 1
    assert region_of(table, 1) == WEDGE and region_of(table, 0) == CIRCLE
    assert overlaps(table, [1], places((1, 1, 1, 1))) == [False]
    for number in (3, -1):
        with pytest.raises(LookupError):
            discard(table, number)
    discard(table, 2)
    with pytest.raises(LookupError):
        region_of(table, 2)


def test_a_reused_number_has_the_new_polygon() -> None:
    table = ShapeTable(LONLAT)
    for size in (1, 3, 2):
        number = add(table, PolygonRegion(shapely.Point(0, 0).buffer(size)))
        at = [(size - 0.1) * 1.0, (size + 0.1) * 1.0]
        assert number == 0
        assert overlaps(table, [0, 0], places(*((x, 0, x, 0) for x in at))) == [True, False]
        discard(table, number)


def test_boxes_are_refused() -> None:
    for region in (WORLD, BoxRegion(0, 0, 1, 1)):
        with pytest.raises(ValueError, match="not a circle or polygon"):
            add(ShapeTable(LONLAT), region)


def test_planar_shapes_do_not_wrap() -> None:
    table = ShapeTable(Space.of((0, 0, 10, 10)))
    number = add(table, PolygonRegion(WEDGE.geometry, planar=True))
    circle = add(table, CircleRegion(0, 0, 5, planar=True))
    boxes = places((-180, 0, -180, 0), (180, 0, 180, 0), (3, 4, 3, 4), (3, 4.1, 9, 9))
    assert overlaps(table, [number, number, circle, circle], boxes) == [False, True, True, False]


def test_bytes_grow_with_polygons_and_shrink_again() -> None:
    table = ShapeTable(LONLAT)
    for _ in range(20):
        add(table, CIRCLE)
    before = table.nbytes
    discard(table, 7)
    add(table, PolygonRegion(shapely.Point(0, 0).buffer(5, quad_segs=100)))
    assert table.nbytes > before + 16 * 400
    discard(table, 7)
    assert table.nbytes <= before


def test_a_table_is_restored_from_its_arrays() -> None:
    table = ShapeTable(LONLAT)
    for region in (TRIANGLE, CIRCLE, WEDGE, CIRCLE, TRIANGLE):
        add(table, region)
    discard(table, 3)
    discard(table, 0)
    again = ShapeTable.from_arrays(table.arrays(), table.header())
    assert [region_of(again, number) for number in (1, 2, 4)] == [CIRCLE, WEDGE, TRIANGLE]
    assert overlaps(again, [2, 0, 4], places((-180, 0, -180, 0), (1, 1, 1, 1), (1, 1, 1, 1))) == [
        True,
        False,
        True,
    ]
    assert {add(again, CIRCLE), add(again, WEDGE)} == {0, 3}
    assert add(again, CIRCLE) == 5
    empty = ShapeTable.from_arrays(ShapeTable(LONLAT).arrays(), ShapeTable(LONLAT).header())
    assert len(empty) == 0 and add(empty, TRIANGLE) == 0


@pytest.mark.parametrize("name", ["blocks", "heads", "words", "corners"])
def test_damage_of_stored_shapes_is_reported(name: str) -> None:
    """Each number that leads a test to other numbers is checked."""
    table = ShapeTable(LONLAT)
    for region in (TRIANGLE, CIRCLE):
        add(table, region)
    sound = table.arrays()
    unchecked = {"heads": range(7, 16), "words": (IS_MULTI, *range(BLOCK_HEAD, BLOCK_HEAD + 4))}.get(name, ())
    for k in set(range(sound[name].size)) - set(unchecked):
        damaged = {key: array.copy() for key, array in sound.items()}
        damaged[name].reshape(-1)[k] = 1 << 31 if sound[name].dtype.kind in "iu" else np.nan
        with pytest.raises(CorruptFile):
            ShapeTable.from_arrays(damaged, table.header())


def test_stored_arrays_of_another_form_are_reported() -> None:
    table = ShapeTable(LONLAT)
    add(table, TRIANGLE)
    sound = table.arrays()
    for change in (
        {"heads": sound["heads"][:, :7].copy()},
        {"heads": sound["heads"][:0]},
        {"words": sound["words"][:-1]},
        {"words": sound["words"].astype(np.int64)},
        {"corners": sound["corners"][:-2]},
    ):
        with pytest.raises(CorruptFile):
            ShapeTable.from_arrays(sound | change, table.header())


def test_threads_that_use_a_polygon_first_agree() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        table = ShapeTable(LONLAT)
        stars = [shapely.Point(x, y).buffer(8, quad_segs=300) for x, y in rng.uniform(-60, 60, (6, 2))]
        for star in stars:
            add(table, PolygonRegion(star))
        numbers = rng.integers(0, 6, 3000).astype(np.int32)
        x, y = rng.uniform(-70, 70, (2, 3000))
        boxes = np.column_stack([x, y, x + rng.integers(0, 2, 3000), y])
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _, t=table, n=numbers, b=boxes: t.overlaps(n, b), range(8)))
        expected = [
            shapely.intersects(stars[n], shapely.LineString([box[:2], box[2:]]))
            for n, box in zip(numbers.tolist(), boxes, strict=True)
        ]
        assert all((answer == np.array(expected)).all() for answer in answers)
        assert 0 < sum(expected) < 3000
