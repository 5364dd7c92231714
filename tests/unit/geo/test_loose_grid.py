from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nearcast.geo.loose_grid import FINEST, LooseGrid, cells_near, level_of

EDGES = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.5, 1.5, 2.0**-16, 1 - 2.0**-16, 1e300, -1e300, 0.1, 0.30000000000000004]),
    st.floats(-2, 3, allow_nan=False),
)


@st.composite
def boxes(draw: st.DrawFn) -> tuple[float, float, float, float]:
    x, y = sorted((draw(EDGES), draw(EDGES))), sorted((draw(EDGES), draw(EDGES)))
    return (x[0], y[0], x[1], y[1])


def near(grid: LooseGrid, box: tuple[float, float, float, float]) -> list[int]:
    out, n = cells_near(grid.arrays, np.array(box), np.empty(1, np.int32))
    return out[:n].tolist()


@given(st.lists(boxes(), max_size=12), boxes())
def test_every_box_that_overlaps_a_place_lies_in_a_cell_near_it(
    held: list[tuple[float, float, float, float]], place: tuple[float, float, float, float]
) -> None:
    grid = LooseGrid((0.0, 0.0, 1.0, 1.0))
    cells = grid.cells(np.array(held, np.float64).reshape(-1, 4))
    found = near(grid, place)
    assert len(found) == len(set(found)), "a cell came twice"
    for box, cell in zip(held, cells.tolist(), strict=True):
        if box[0] <= place[2] and place[0] <= box[2] and box[1] <= place[3] and place[1] <= box[3]:
            assert cell in found


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 0.4))
def test_boxes_as_large_as_their_cell_are_found_from_their_far_corner(x: float, y: float, size: float) -> None:
    grid = LooseGrid((0.0, 0.0, 1.0, 1.0))
    cell = grid.cells(np.array([[x, y, x + size, y + size]]))[0]
    assert cell in near(grid, (x + size, y + size, x + size, y + size))


def test_a_point_looks_at_four_cells_a_level_at_most() -> None:
    rng = np.random.default_rng(1)
    low = rng.random((5000, 2))
    grid = LooseGrid((0.0, 0.0, 1.0, 1.0))
    grid.cells(np.hstack([low, low + 0.01]))
    assert grid.n_cells > 1000
    assert max(len(near(grid, (x, y, x, y))) for x, y in rng.random((50, 2))) <= 4


def test_levels_follow_the_size_of_the_box() -> None:
    bounds = np.array([0.0, 0.0, 1.0, 1.0])
    assert level_of(bounds, np.array([0.0, 0.0, 1.0, 1.0])) == 0
    assert level_of(bounds, np.array([0.0, 0.0, 0.49, 0.1])) == 1
    assert level_of(bounds, np.array([0.3, 0.3, 0.3, 0.3])) == FINEST
    assert level_of(bounds, np.array([-1e308, 0.0, 1e308, 0.0])) == 0


def test_the_same_cell_keeps_its_number() -> None:
    grid = LooseGrid((0.0, 0.0, 1.0, 1.0))
    first = grid.cells(np.array([[0.1, 0.1, 0.2, 0.2], [0.8, 0.8, 0.9, 0.9]]))
    again = grid.cells(np.array([[0.8, 0.8, 0.9, 0.9], [0.1, 0.1, 0.2, 0.2]]))
    assert again.tolist() == first[::-1].tolist()
