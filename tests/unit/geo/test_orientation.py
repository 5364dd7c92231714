from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import shapely

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.geo.shapes.orientation import segment_meets_box, side_of_line

LARGEST = float(np.finfo(np.float64).max)
POOL = [0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, math.pi, 180.0, 2.0**53, 2.0**53 + 2]
EXTREMES = [1e300, -1e300, LARGEST, -LARGEST, 5e-324, -5e-324, 2.3e-308, 1e-160, -1e-160]


def exact_side(ax: float, ay: float, bx: float, by: float, x: float, y: float) -> int:
    left = (Fraction(ax) - Fraction(x)) * (Fraction(by) - Fraction(y))
    right = (Fraction(ay) - Fraction(y)) * (Fraction(bx) - Fraction(x))
    return (left > right) - (left < right)


@pytest.mark.parametrize("pool", [POOL, EXTREMES, POOL[:5] + EXTREMES[:6]], ids=["plain", "extreme", "mixed"])
def test_the_side_is_exact_for_coordinates_of_any_size(pool: list[float]) -> None:
    rng = np.random.default_rng(3)
    signs = set()
    for _ in range(300 if JIT_DISABLED else 5000):
        numbers = [float(value) for value in rng.choice(pool, 6)]
        expected = exact_side(*numbers)
        assert side_of_line(*numbers) == expected, numbers
        signs.add(expected)
    assert signs == {-1, 0, 1}


def test_the_side_is_exact_next_to_the_line() -> None:
    rng = np.random.default_rng(4)
    signs = []
    for _ in range(200 if JIT_DISABLED else 3000):
        ax, ay, bx, by = rng.uniform(-180, 180, 4).tolist()
        share = float(rng.choice([0.25, 0.5, rng.random()]))
        x, y = ax + share * (bx - ax), ay + share * (by - ay)
        for near in (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf)):
            signs.append(exact_side(ax, ay, bx, by, near, y))
            assert side_of_line(ax, ay, bx, by, near, y) == signs[-1]
    assert {-1, 0, 1} == set(signs)


def test_points_one_bit_apart_are_separated_where_plain_arithmetic_fails() -> None:
    wrong = 0
    for i, j in product(range(32), range(32)):
        x, y = 0.5 + i * 2.0**-53, 0.5 + j * 2.0**-53
        expected = exact_side(12.0, 12.0, 24.0, 24.0, x, y)
        assert side_of_line(12.0, 12.0, 24.0, 24.0, x, y) == expected
        plain = (12.0 - x) * (24.0 - y) - (12.0 - y) * (24.0 - x)
        wrong += (plain > 0) - (plain < 0) != expected
    assert wrong > 100


def test_segments_meet_closed_boxes() -> None:
    grid = [(float(x), float(y)) for x in range(4) for y in range(4)]
    boxes = [(x0, y0, x1, y1) for x0, y0 in grid[::3] for x1, y1 in grid if x0 <= x1 and y0 <= y1]
    for (ax, ay), (bx, by) in product(grid[::2] if JIT_DISABLED else grid, grid):
        segment = np.array([ax, ay, bx, by])
        line = shapely.LineString([(ax, ay), (bx, by)]) if (ax, ay) != (bx, by) else shapely.Point(ax, ay)
        for x0, y0, x1, y1 in boxes:
            corners = shapely.MultiPoint([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]).convex_hull
            assert segment_meets_box(segment, 0, x0, y0, x1, y1) == shapely.intersects(line, corners)
