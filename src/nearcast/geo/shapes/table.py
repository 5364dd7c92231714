"""The exact shapes (circles and polygons) of live subscriptions, by number. Box regions need no shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.errors import CorruptFile
from nearcast.geo.shapes.arrays import FREE, ShapeArrays, empty_shapes, overlapping, put_circles
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.shapes.polygon_blocks import (
    compacted,
    first_damaged,
    geometries_of,
    room_of,
    stored_rings,
    with_polygons,
)
from nearcast.geo.space import Space

_SAVED = [name for name in ShapeArrays._fields if name != "planar"]


class ShapeTable:
    """The circles and polygons of one space. One thread may write at a time; any number read what `view` returned.

    A write only touches numbers that were free, and words and corners that no shape used. So the shapes of an older
    view stay as they are until their numbers are discarded.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self._arrays = empty_shapes(space.planar)  # with spare room
        self._size = 0  # numbers given so far
        self._free: list[int] = []
        self._ends = np.zeros(2, np.int64)  # words and corners in use, holes included
        self._holes = np.zeros(2, np.int64)  # words and corners of discarded polygons

    def __len__(self) -> int:
        return self._size - len(self._free)

    def view(self) -> ShapeArrays:
        """What kernels read. It is another tuple after a change that needed room, else the same one."""
        return self._arrays

    def add(self, shapes: ShapeColumns) -> np.ndarray:
        """Store shapes of this space; return their numbers (int32), which may be those of discarded shapes."""
        numbers = self._next_numbers(shapes.size)
        polygons = np.flatnonzero(shapes.geometries != None)  # noqa: E711  element by element
        put_circles(self._arrays.heads, self._arrays.blocks, numbers, shapes.circles, self.space.planar)
        if len(polygons):
            geometries = shapes.geometries[polygons]
            self._arrays = with_polygons(self._arrays, numbers[polygons], geometries, self._ends)
        return numbers

    def discard(self, numbers: np.ndarray) -> None:
        """Remove shapes, each named once, which no reader may test any more; their numbers will be used again."""
        self._check_live(numbers)
        self._holes += room_of(self._arrays, numbers)[:2]
        self._arrays.blocks[numbers] = FREE
        self._free.extend(numbers.tolist())
        if self._holes[0] > 1024 and 2 * self._holes[0] > self._ends[0]:
            self._arrays = compacted(self._arrays, self._size)
            self._ends, self._holes = self._ends - self._holes, np.zeros(2, np.int64)

    def columns(self, numbers: np.ndarray) -> ShapeColumns:
        """The shapes of these numbers, as they were added. Heights of corners are lost."""
        self._check_live(numbers)
        circles, geometries = self._arrays.heads[numbers, :3], np.full(len(numbers), None, object)
        polygons = np.flatnonzero(self._arrays.blocks[numbers] >= 0)
        if len(polygons):
            circles[polygons] = 0.0
            geometries[polygons] = geometries_of(stored_rings(self._arrays, numbers[polygons]))
        return ShapeColumns(circles, geometries)

    def overlaps(self, numbers: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """bool[k]: whether shape numbers[i] shares a point with boxes[i]. Discarded shapes overlap nothing."""
        return overlapping(self._arrays, numbers, boxes)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def header(self) -> dict[str, Any]:
        return {"space": self.space.header()}

    def arrays(self) -> dict[str, np.ndarray]:
        """The table as flat arrays; `from_arrays` restores it with the same numbers."""
        saved = compacted(self._arrays, self._size)
        return {name: getattr(saved, name) for name in _SAVED}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> ShapeTable:
        """The table of a result of `arrays` and `header`. It uses the arrays as they are, and may write to them."""
        table = cls(Space.from_header(header["space"]))
        if set(arrays) != set(_SAVED):
            raise CorruptFile(f"the stored shapes are damaged: found {sorted(arrays)}, not {_SAVED}; build them again")
        stored = table._arrays._replace(**arrays)
        for name, mine, theirs in zip(ShapeArrays._fields, table._arrays, stored, strict=True):
            if mine.dtype != theirs.dtype or mine.shape[1:] != theirs.shape[1:]:
                found, expected = f"{theirs.dtype}{theirs.shape}", f"{mine.dtype}{mine.shape}"
                raise CorruptFile(f"the stored shapes are damaged: {name} is {found}, not {expected}; build them again")
        n_heads, n_blocks = len(stored.heads), len(stored.blocks)
        if n_heads != n_blocks:
            raise CorruptFile(f"the stored shapes are damaged: {n_heads} heads, {n_blocks} blocks; build them again")
        damaged = int(first_damaged(stored))
        if damaged >= 0:
            raise CorruptFile(f"the stored shape {damaged} is damaged; restore the file or build it again")
        table._arrays, table._size = stored, len(stored.blocks)
        table._free = np.flatnonzero(stored.blocks == FREE)[::-1].tolist()
        table._ends[:] = len(stored.words), len(stored.corners) // 2
        return table

    def _next_numbers(self, count: int) -> np.ndarray:
        """Free numbers, those freed last first, and then new ones."""
        reused = min(count, len(self._free))
        numbers = self._free[len(self._free) - reused :][::-1]
        del self._free[len(self._free) - reused :]
        size = self._size + count - reused
        numbers.extend(range(self._size, size))
        if size > len(self._arrays.blocks):
            blocks, heads = grown(self._arrays.blocks, size, FREE), grown(self._arrays.heads, size)
            self._arrays = self._arrays._replace(blocks=blocks, heads=heads)
        self._size = size
        return np.array(numbers, np.int32)

    def _check_live(self, numbers: np.ndarray) -> None:
        wrong = _first_not_live(self._arrays.blocks, self._size, numbers)
        if wrong >= 0:
            raise LookupError(f"no shape has the number {numbers[wrong]}")


@kernel
def _first_not_live(blocks, size, numbers):
    """The first position of a number without a shape, or -1."""
    for i in range(len(numbers)):
        if numbers[i] < 0 or numbers[i] >= size or blocks[numbers[i]] == FREE:
            return i
    return -1
