"""The exact shapes (circles and polygons) of live subscriptions, by number. Box regions need no shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely

from nearcast.arrays.growable import grown
from nearcast.arrays.ragged import starts_of
from nearcast.errors import CorruptFile
from nearcast.geo.antimeridian import with_aliases
from nearcast.geo.circle import circles_overlap
from nearcast.geo.polygon import polygons_overlap
from nearcast.geo.shape_columns import ShapeColumns
from nearcast.geo.space import Space

FREE, CIRCLE, POLYGON = range(3)
GEOMETRY_BYTES = 400
"""The size of a shapely polygon without its coordinates: 360 to 500 bytes measured."""


class ShapeTable:
    """The circles and polygons of one space. One thread may write at a time, any number may read."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._kinds = np.zeros(0, np.uint8)  # uint8[n]      FREE, CIRCLE or POLYGON
        self._circles = np.zeros((0, 3), np.float64)  # float64[n,3]  x, y, radius of circles
        self._polygons = np.zeros(0, object)  # object[n]     shapely geometry of polygons
        self._tested_geometries = np.zeros(0, object)  # object[n]     polygons with aliases (geo/antimeridian.py)
        self._size = 0
        self._free: list[int] = []
        self._geometry_bytes = 0

    def __len__(self) -> int:
        return self._size - len(self._free)

    def add(self, shapes: ShapeColumns) -> np.ndarray:
        """Store shapes of this space; return their numbers (int32), which may be those of discarded shapes."""
        numbers = np.array([self._next_number() for _ in range(shapes.size)], np.int32)
        self._circles[numbers] = shapes.circles
        self._kinds[numbers] = CIRCLE
        for k in np.flatnonzero(shapes.geometries != None).tolist():  # noqa: E711  element by element
            self._put_polygon(int(numbers[k]), shapes.geometries[k])
        return numbers

    def discard(self, numbers: np.ndarray) -> None:
        """Remove shapes; their numbers will be used again."""
        for number in numbers.tolist():
            self._check_live(number)
            if self._kinds[number] == POLYGON:
                self._geometry_bytes -= _geometry_bytes(self._polygons[number])
            self._kinds[number] = FREE
            self._polygons[number] = self._tested_geometries[number] = None
            self._free.append(number)

    def columns(self, numbers: np.ndarray) -> ShapeColumns:
        """The shapes of these numbers, as they were added."""
        for number in numbers.tolist():
            self._check_live(number)
        return ShapeColumns(self._circles[numbers], self._polygons[numbers])

    def overlaps(self, numbers: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """bool[k]: whether shape numbers[i] shares a point with boxes[i]. Discarded shapes overlap nothing."""
        kinds = self._kinds[numbers]
        out = np.zeros(len(numbers), np.bool_)
        circles = np.flatnonzero(kinds == CIRCLE)
        if len(circles):
            is_in = np.zeros(len(circles), np.bool_)
            circles_overlap(self._circles, numbers[circles], boxes[circles], self.space.planar, is_in)
            out[circles] = is_in
        polygons = np.flatnonzero(kinds == POLYGON)
        if len(polygons):
            out[polygons] = polygons_overlap(self._tested_geometries[numbers[polygons]], boxes[polygons])
        return out

    @property
    def nbytes(self) -> int:
        columns = (self._kinds, self._circles, self._polygons, self._tested_geometries)
        return sum(column.nbytes for column in columns) + self._geometry_bytes

    def header(self) -> dict[str, Any]:
        return {"space": self.space.header()}

    def arrays(self) -> dict[str, np.ndarray]:
        """The table as flat arrays; `from_arrays` restores it with the same numbers."""
        n = self._size
        wkb = [b"" if shape is None else shape for shape in shapely.to_wkb(self._polygons[:n])]
        return {
            "kinds": self._kinds[:n].copy(),
            "circles": self._circles[:n].copy(),
            "wkb": np.frombuffer(b"".join(wkb), np.uint8),
            "wkb_starts": starts_of(np.array([len(shape) for shape in wkb], np.int64)),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> ShapeTable:
        """The table of a result of `arrays` and `header`."""
        table = cls(Space.from_header(header["space"]))
        n, starts, wkb = len(arrays["kinds"]), arrays["wkb_starts"], arrays["wkb"].tobytes()
        table._grow(n)
        table._circles[:n] = arrays["circles"]
        table._kinds[:n] = arrays["kinds"]
        table._free = np.flatnonzero(arrays["kinds"] == FREE)[::-1].tolist()
        for number in np.flatnonzero(arrays["kinds"] == POLYGON).tolist():
            table._put_polygon(number, _from_wkb(wkb[starts[number] : starts[number + 1]]))
        return table

    def _next_number(self) -> int:
        if self._free:
            return self._free.pop()
        self._grow(self._size + 1)
        return self._size - 1

    def _grow(self, size: int) -> None:
        self._kinds = grown(self._kinds, size, FREE)
        self._circles = grown(self._circles, size)
        self._polygons = grown(self._polygons, size)  # NumPy fills new object arrays with None
        self._tested_geometries = grown(self._tested_geometries, size)
        self._size = size

    def _put_polygon(self, number: int, geometry: shapely.Geometry) -> None:
        self._polygons[number] = geometry
        self._tested_geometries[number] = geometry if self.space.planar else with_aliases(geometry)
        self._geometry_bytes += _geometry_bytes(geometry)
        self._kinds[number] = POLYGON

    def _check_live(self, number: int) -> None:
        if not 0 <= number < self._size or self._kinds[number] == FREE:
            raise LookupError(f"no shape has the number {number}")


def _geometry_bytes(geometry: shapely.Geometry) -> int:
    return GEOMETRY_BYTES + 16 * int(shapely.get_num_coordinates(geometry))


def _from_wkb(wkb: bytes) -> shapely.Geometry:
    try:
        return shapely.from_wkb(wkb)
    except shapely.errors.ShapelyError as error:
        raise CorruptFile(f"a stored polygon cannot be read: {error}") from error
