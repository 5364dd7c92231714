"""The cells of a fixed quadtree that cover the space for one row: small ones near the row, large ones far from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.geo.distance import point_box_distance
from nearcast.geo.space import Space
from nearcast.topk.rows import RowArrays
from nearcast.topk.score import X, Y

LEVELS = 5
"""More levels bound the place of near messages better, and take 3 more cells for each row."""

CELLS_PER_ROW = 3 * LEVELS + 1


class Grid(NamedTuple):
    """The bounds of the quadtree: those of the space, or wider if rows lie outside."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float


def make_grid(space: Space, rows: RowArrays, numbers: np.ndarray) -> Grid:
    xmin, ymin, xmax, ymax = space.bounds
    if len(numbers):
        xs, ys = rows.numbers[numbers, X], rows.numbers[numbers, Y]
        xmin, xmax = min(xmin, float(xs.min())), max(xmax, float(xs.max()))
        ymin, ymax = min(ymin, float(ys.min())), max(ymax, float(ys.max()))
    return Grid(xmin, ymin, xmax, ymax)


@kernel
def column_of(low, high, value, level):
    """The column, or line, of a cell at a level; values outside belong to the outermost ones."""
    n = 1 << level
    return max(0, min(n - 1, int((value - low) / (high - low) * n)))


@kernel
def cell_number(level, column, line):
    """A number that no other cell of any level has."""
    return ((1 << (2 * level)) - 1) // 3 + (line << level) + column


@kernel
def set_box(grid, level, column, line, out_box):
    """The box of a cell, and a little more: a place on its border may belong to it by rounding."""
    width, height = (grid.xmax - grid.xmin) / (1 << level), (grid.ymax - grid.ymin) / (1 << level)
    out_box[0, 0] = grid.xmin + (column - 1e-9) * width
    out_box[0, 1] = grid.ymin + (line - 1e-9) * height
    out_box[0, 2] = grid.xmin + (column + 1 + 1e-9) * width
    out_box[0, 3] = grid.ymin + (line + 1 + 1e-9) * height


@kernel
def cover_rows(grid, rows, numbers, metric, out_cells, out_nearest):
    """Write the cells of each row, and the largest spatial similarity of a place in them."""
    box = np.empty((1, 4))
    for i in range(len(numbers)):
        x, y = rows.numbers[numbers[i], X], rows.numbers[numbers[i], Y]
        n = 0
        for level in range(1, LEVELS + 1):
            column, line = column_of(grid.xmin, grid.xmax, x, level), column_of(grid.ymin, grid.ymax, y, level)
            for k in range(4):
                other_column, other_line = (column & ~1) + (k & 1), (line & ~1) + (k >> 1)
                is_own = other_column == column and other_line == line
                if is_own and level < LEVELS:
                    continue
                set_box(grid, level, other_column, other_line, box)
                if metric.planar:
                    widen_at_border(level, other_column, other_line, box)
                distance = 0.0 if is_own else point_box_distance(x, y, box, 0, metric.planar)
                out_cells[i, n] = cell_number(level, other_column, other_line)
                out_nearest[i, n] = max(0.0, 1.0 - distance / metric.max_dist)
                n += 1


@kernel
def widen_at_border(level, column, line, box):
    """Extend the box of a cell at the border of the grid outwards: in a plane it also has the places outside."""
    last = (1 << level) - 1
    if column == 0:
        box[0, 0] = -np.inf
    if line == 0:
        box[0, 1] = -np.inf
    if column == last:
        box[0, 2] = np.inf
    if line == last:
        box[0, 3] = np.inf
