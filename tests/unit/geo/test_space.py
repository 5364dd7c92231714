from __future__ import annotations

import math
import re

import numpy as np
import pytest

from nearcast.errors import InvalidInput
from nearcast.geo.space import (
    FINE,
    INFINITE,
    LONLAT,
    MIN_ABOVE_MAX,
    MISSING,
    OUT_OF_RANGE,
    Space,
    coordinate_faults,
    fault_reason,
)

NAN, INF = math.nan, math.inf
PLANE = Space.of((0, 0, 30, 40))


def test_no_space_means_lon_lat_and_four_numbers_mean_a_plane() -> None:
    assert Space.of(None) is LONLAT
    assert PLANE == Space(True, (0.0, 0.0, 30.0, 40.0))


@pytest.mark.parametrize("space", [LONLAT, PLANE])
def test_a_space_is_restored_from_its_header(space: Space) -> None:
    assert Space.from_header(space.header()) == space


@pytest.mark.parametrize(
    "bounds",
    [
        (),
        (1, 2, 3),
        "abcd",
        (0, 0, 0, 1),
        (0, 1, 1, 0),
        (0, 0, NAN, 1),
        (0, 0, INF, 1),
        5,
        (-1.7e308, 0, 1.7e308, 1),
    ],
)
def test_bad_bounds_are_refused(bounds: object) -> None:
    with pytest.raises(InvalidInput, match="space"):
        Space.of(bounds)  # type: ignore[arg-type]


CASES = [
    ((0, 0, 0, 0), FINE, FINE),
    ((-180, -90, 180, 90), FINE, FINE),
    ((0, 0, NAN, 0), MISSING, MISSING),
    ((INF, NAN, 0, 0), MISSING, MISSING),
    ((0, -INF, 0, 0), INFINITE, INFINITE),
    ((0, 0, INF, 0), INFINITE, INFINITE),
    ((0, 0, np.nextafter(180, 200), 0), OUT_OF_RANGE, FINE),
    ((0, -91, 0, 0), OUT_OF_RANGE, FINE),
    ((1, 0, 0, 0), MIN_ABOVE_MAX, MIN_ABOVE_MAX),
    ((0, 1, 0, 0), MIN_ABOVE_MAX, MIN_ABOVE_MAX),
]


def test_every_fault_is_found_in_either_space() -> None:
    boxes = np.array([box for box, _, _ in CASES], np.float64)
    assert coordinate_faults(boxes, LONLAT).tolist() == [code for _, code, _ in CASES]
    assert coordinate_faults(boxes, PLANE).tolist() == [code for _, _, code in CASES]
    assert coordinate_faults(np.empty((0, 4)), LONLAT).tolist() == []


@pytest.mark.parametrize(("box", "in_lonlat", "in_plane"), CASES)
def test_a_box_is_valid_where_it_has_no_fault(box: tuple[float, ...], in_lonlat: int, in_plane: int) -> None:
    xmin, ymin, xmax, ymax = box
    assert LONLAT.has_box(xmin, ymin, xmax, ymax) == (in_lonlat == FINE)
    assert PLANE.has_box(xmin, ymin, xmax, ymax) == (in_plane == FINE)


@pytest.mark.parametrize(
    ("box", "column", "words"),
    [
        ((0, 0, NAN, 0), "xmax", "missing or NaN"),
        ((0, -INF, 0, 0), "ymin", "-inf; it must be finite"),
        ((20, 120, 20, 120), "ymin", "ymin is 120.0.*latitude.*-90 and 90: are x and y swapped"),
        ((190, 0, 190, 0), "xmin", "xmin is 190.0.*longitude.*add or subtract 360"),
        ((583_000, 4_507_000, 583_000, 4_507_000), "xmin", "space="),
        ((170, 95, 170, 95), "ymin", "between -90 and 90$"),
        ((10, 0, -10, 0), "xmin", "xmin is 10.0, above xmax = -10.0.*antimeridian"),
        ((0, 3, 0, 2), "ymin", "ymin is 3.0, above ymax = 2.0; swap them"),
    ],
)
def test_a_reason_names_the_column_the_value_and_the_remedy(box: tuple[float, ...], column: str, words: str) -> None:
    code = int(coordinate_faults(np.array([box], np.float64), LONLAT)[0])
    named, reason = fault_reason(code, box)
    assert named == column
    assert re.search(words, reason), reason


def test_a_reason_uses_the_columns_of_the_table() -> None:
    assert fault_reason(OUT_OF_RANGE, (0, 99, 0, 99), ("lon", "lat", "lon", "lat"))[0] == "lat"
    assert "antimeridian" not in fault_reason(MIN_ABOVE_MAX, (2, 0, 1, 0), planar=True)[1]
    with pytest.raises(ValueError, match="no fault"):
        fault_reason(FINE, (0, 0, 0, 0))
