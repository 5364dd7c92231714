"""The base class of regions, the regions that boxes describe exactly (boxes, the whole world), and many regions as
columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.geo.boxes import overlap_pairs
from nearcast.geo.distance import point_box_distance
from nearcast.geo.space import LONLAT, Space, coordinate_faults, fault_reason

HUGE = float(np.finfo(np.float64).max)
PLANE = Space(True, (0.0, 0.0, 1.0, 1.0))  # for checks that depend only on whether the space is planar


class Region(ABC):
    """The area of a subscription, border included.

    Indexes store `boxes`: every place that overlaps the region overlaps one of them. `overlaps` is the exact test.
    If `is_box`, the boxes are exact.
    """

    is_box = False

    @abstractmethod
    def boxes(self, space: Space) -> np.ndarray:
        """float64[k,4]: boxes that together cover the region."""

    @abstractmethod
    def overlaps(self, boxes: np.ndarray) -> np.ndarray:
        """bool[n]: whether the region shares a point with each of the boxes."""

    @abstractmethod
    def distance(self, x: float, y: float) -> float:
        """The distance from the point to the region, 0 inside: kilometres in lon/lat, units in a plane."""

    @abstractmethod
    def to_geojson(self) -> dict[str, Any]:
        """The region as a dict for `parse_region`. The types Circle and World are not in the GeoJSON standard."""

    @abstractmethod
    def describe(self) -> str:
        """A short phrase for messages, e.g. "2.5 km round 1, 2"."""


def check_space(region_is_planar: bool, space: Space) -> None:
    if region_is_planar != space.planar:
        names = {True: "planar", False: "lon/lat"}
        raise InvalidInput(f"a {names[region_is_planar]} region in a {names[space.planar]} space", column="region")


@dataclass(frozen=True)
class BoxRegion(Region):
    xmin: float
    ymin: float
    xmax: float
    ymax: float
    planar: bool = False

    is_box = True

    def __post_init__(self) -> None:
        space = PLANE if self.planar else LONLAT
        if not space.has_box(self.xmin, self.ymin, self.xmax, self.ymax):
            code = int(coordinate_faults(self._as_row(), space)[0])
            raise InvalidInput(fault_reason(code, self._as_row()[0], planar=self.planar)[1], column="region")

    def _as_row(self) -> np.ndarray:
        return np.array([[self.xmin, self.ymin, self.xmax, self.ymax]], np.float64)

    def boxes(self, space: Space) -> np.ndarray:
        check_space(self.planar, space)
        return self._as_row()

    def overlaps(self, boxes: np.ndarray) -> np.ndarray:
        return overlap_pairs(self._as_row(), boxes)

    def distance(self, x: float, y: float) -> float:
        return float(point_box_distance(float(x), float(y), self._as_row(), 0, self.planar))

    def to_geojson(self) -> dict[str, Any]:
        x0, y0, x1, y1 = self._as_row()[0].tolist()
        if x0 == x1 and y0 == y1:
            return {"type": "Point", "coordinates": [x0, y0]}
        return {"type": "Polygon", "coordinates": [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]]}

    def describe(self) -> str:
        if self.xmin == self.xmax and self.ymin == self.ymax:
            return f"the point {self.xmin:g}, {self.ymin:g}"
        return f"the box {self.xmin:g}, {self.ymin:g} to {self.xmax:g}, {self.ymax:g}"


@dataclass(frozen=True)
class SplitBoxRegion(Region):
    """A box over the antimeridian: east from xmin to 180, and from -180 to xmax."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    is_box = True
    planar = False

    def __post_init__(self) -> None:
        for half in self._halves():
            code = int(coordinate_faults(half.reshape(1, 4), LONLAT)[0])
            if code:
                raise InvalidInput(fault_reason(code, half)[1], column="region")

    def _halves(self) -> np.ndarray:
        return np.array([(self.xmin, self.ymin, 180.0, self.ymax), (-180.0, self.ymin, self.xmax, self.ymax)])

    def boxes(self, space: Space) -> np.ndarray:
        check_space(False, space)
        return self._halves()

    def overlaps(self, boxes: np.ndarray) -> np.ndarray:
        east, west = (overlap_pairs(half.reshape(1, 4), boxes) for half in self._halves())
        return np.asarray(east | west)

    def distance(self, x: float, y: float) -> float:
        halves = self._halves()
        return float(min(point_box_distance(float(x), float(y), halves, k, False) for k in range(2)))

    def to_geojson(self) -> dict[str, Any]:
        return {"type": "Box", "coordinates": [self.xmin, self.ymin, self.xmax, self.ymax]}

    def describe(self) -> str:
        return f"the box {self.xmin:g}, {self.ymin:g} to {self.xmax:g}, {self.ymax:g} over the antimeridian"


def box_region(bounds: list[float], space: Space) -> Region:
    """The box of these bounds. On the globe it goes east from xmin to xmax, so xmin > xmax is over the antimeridian."""
    xmin, ymin, xmax, ymax = bounds
    if space.planar or not xmin > xmax:
        return BoxRegion(xmin, ymin, xmax, ymax, space.planar)
    width = 360.0 - (xmin - xmax)
    if width > 180.0:
        raise InvalidInput(
            f"the box from {xmin:g} east to {xmax:g} goes {width:g} degrees around the globe; swap xmin and xmax, or "
            f"give two boxes: {xmin:g} to 180 and -180 to {xmax:g}",
            column="region",
        )
    return SplitBoxRegion(xmin, ymin, xmax, ymax)


@dataclass(frozen=True)
class WorldRegion(Region):
    """Everywhere, in any space."""

    is_box = True

    def boxes(self, space: Space) -> np.ndarray:
        # In a plane any finite coordinate is valid, also outside the bounds. The width of this box overflows to inf.
        everywhere = (-HUGE, -HUGE, HUGE, HUGE) if space.planar else LONLAT.bounds
        return np.array([everywhere], np.float64)

    def overlaps(self, boxes: np.ndarray) -> np.ndarray:
        return np.ones(len(boxes), np.bool_)

    def distance(self, x: float, y: float) -> float:
        return 0.0

    def to_geojson(self) -> dict[str, Any]:
        return {"type": "World"}

    def describe(self) -> str:
        return "the whole world"


WORLD = WorldRegion()

NO_REGION = -1
"""The region of a text with a mistake."""


class RegionColumns(NamedTuple):
    """The regions of many texts. Equal texts may share a region."""

    numbers: np.ndarray  # int64[n]        the region of each text, or NO_REGION
    boxes: np.ndarray  # float64[...,4]  the boxes of region r are boxes[box_starts[r]:box_starts[r+1]]
    box_starts: np.ndarray  # int64[m+1]
    is_box: np.ndarray  # bool[m]         the box is exact, so there is no circle or polygon
    circles: np.ndarray  # float64[m,3]    x, y, radius of circles, else 0
    geometries: np.ndarray  # object[m]       shapely geometry of polygons, else None
    errors: dict[int, InvalidInput]  # by text


NO_REGIONS = RegionColumns(
    np.empty(0, np.int64),
    np.empty((0, 4)),
    np.zeros(1, np.int64),
    np.empty(0, bool),
    np.empty((0, 3)),
    np.empty(0, object),
    {},
)
