"""A hierarchy of loose grids: assigns each box to one cell, and lists the few cells whose boxes may overlap a place.

Level l divides the space into 2^l x 2^l cells. A box belongs to the finest level whose cells are at least as large as
the box, and there to the cell of its lower left corner. If the box overlaps a place, this cell is one of the place's
cells or one directly left of or below them: 4 cells per level for a point. Each box is in one cell only, so a search
finds no pair twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.intmap import ABSENT, IntMap, IntMapArrays, find, put_one
from nearcast.arrays.jit import kernel

FINEST = 16  # cells of 1/65,536 of the space: 600 m on the equator
_MARGIN = 1.0 - 1e-6  # boxes are this much smaller than their cell, so that rounding cannot move them to the next


class GridArrays(NamedTuple):
    """The grid as kernels read it. `keys` and `values` are the hash table from the key of a cell to its number."""

    keys: np.ndarray  # int64[capacity]
    values: np.ndarray  # int32[capacity]
    level_cells: np.ndarray  # int64[FINEST+1]  how many cells of each level have a number
    cell_levels: np.ndarray  # uint8[n_cells]
    bounds: np.ndarray  # float64[4]  the space; boxes outside belong to the border cells


class LooseGrid:
    """Numbers the cells in order of first use. A cell keeps its number when its last box is removed."""

    def __init__(self, bounds: tuple[float, float, float, float]) -> None:
        self._table = IntMap()
        self._level_cells = np.zeros(FINEST + 1, np.int64)
        self._cell_levels = np.empty(0, np.uint8)
        self._bounds = np.array(bounds, np.float64)

    @property
    def n_cells(self) -> int:
        return self._table.size

    @property
    def arrays(self) -> GridArrays:
        levels = self._cell_levels[: self.n_cells]
        return GridArrays(*self._table.arrays, self._level_cells, levels, self._bounds)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + int(self._level_cells.nbytes + self._cell_levels.nbytes)

    def cells(self, boxes: np.ndarray) -> np.ndarray:
        """int32[n]: the cell number of each box; a new cell gets the next number."""
        keys = np.empty(len(boxes), np.int64)
        _keys(self._bounds, boxes, keys)
        self._table.reserve(self.n_cells + len(boxes))
        self._cell_levels = grown(self._cell_levels, self.n_cells + len(boxes))
        out = np.empty(len(boxes), np.int32)
        self._table.size = _number(self._table.arrays, self._level_cells, self._cell_levels, self.n_cells, keys, out)
        return out

    def state(self) -> dict[str, np.ndarray]:
        return {f"grid_{name}": array for name, array in self.arrays._asdict().items()}

    @classmethod
    def restored(cls, arrays: dict[str, Any]) -> LooseGrid:
        made = cls((0.0, 0.0, 1.0, 1.0))
        made._table = IntMap.from_arrays(IntMapArrays(arrays["grid_keys"], arrays["grid_values"]))
        made._level_cells, made._cell_levels = arrays["grid_level_cells"], arrays["grid_cell_levels"]
        made._bounds = arrays["grid_bounds"]
        return made


@kernel
def _keys(bounds, boxes, out):
    for i in range(len(boxes)):
        box = boxes[i]
        level = level_of(bounds, box)
        column = position(box[0], bounds[0], bounds[2], level)
        row = position(box[1], bounds[1], bounds[3], level)
        out[i] = cell_key(level, column, row)


@kernel
def level_of(bounds, box):
    """The finest level whose cells are larger than the box, or 0 for a box larger than all cells."""
    share = max((box[2] - box[0]) / (bounds[2] - bounds[0]), (box[3] - box[1]) / (bounds[3] - bounds[1]))
    level = 0
    side = 0.5
    while level < FINEST and share <= side * _MARGIN:
        level += 1
        side *= 0.5
    return level


@kernel
def position(x, low, high, level):
    """The column (or row) of a coordinate, clamped to the space. Monotone in x, even after rounding."""
    n = 1 << level
    scaled = (x - low) / (high - low) * n
    return np.int64(min(max(scaled, 0.0), n - 1.0))


@kernel
def cell_key(level, column, row):
    return (np.int64(level) << 48) | (column << 24) | row


@kernel
def _number(table, level_cells, cell_levels, n_cells, keys, out):
    """Write the cell number of each key, with new numbers for new cells; return the number of cells."""
    for i in range(len(keys)):
        found = find(table, keys[i])
        if found == ABSENT:
            found = n_cells
            put_one(table, keys[i], n_cells)
            level = keys[i] >> 48
            level_cells[level] += 1
            cell_levels[n_cells] = level
            n_cells += 1
        out[i] = found
    return n_cells


@kernel
def cells_near(grid, box, out):
    """Write the numbers of all cells whose boxes may overlap `box`; return (out, their number)."""
    n = 0
    for level in range(FINEST + 1):
        if grid.level_cells[level] == 0:
            continue
        left = max(position(box[0], grid.bounds[0], grid.bounds[2], level) - 1, 0)
        right = position(box[2], grid.bounds[0], grid.bounds[2], level)
        low = max(position(box[1], grid.bounds[1], grid.bounds[3], level) - 1, 0)
        high = position(box[3], grid.bounds[1], grid.bounds[3], level)
        wanted = (right - left + 1) * (high - low + 1)
        if wanted > len(grid.cell_levels):
            # A large place over small cells: reading the levels of all cells is cheaper than a lookup per position.
            out = with_room(out, n, grid.level_cells[level])
            n = _cells_of_level(grid, level, out, n)
        else:
            out = with_room(out, n, wanted)
            n = _cells_within(grid, cell_key(level, left, low), cell_key(level, right, high), out, n)
    return out, n


@kernel
def _cells_of_level(grid, level, out, n):
    for cell in range(len(grid.cell_levels)):
        if grid.cell_levels[cell] == level:
            out[n] = cell
            n += 1
    return n


@kernel
def _cells_within(grid, first, last, out, n):
    """The numbered cells between the corner cells with keys `first` and `last`."""
    mask = (1 << 24) - 1
    level = first >> 48
    for column in range((first >> 24) & mask, ((last >> 24) & mask) + 1):
        for row in range(first & mask, (last & mask) + 1):
            cell = find(grid, cell_key(level, column, row))
            if cell != ABSENT:
                out[n] = cell
                n += 1
    return n
