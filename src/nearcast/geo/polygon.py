"""Polygons and multipolygons. Edges are straight in the coordinates; all borders, also of holes, belong to the area.

Great-circle distance to a border: edges are split into segments of at most one degree in either direction. On a segment
the distance has one minimum, which golden-section search finds to 0.1 mm. Only segments that could be nearer than the
nearest corner are searched: usually two or three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import shapely

from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.geo.antimeridian import with_aliases
from nearcast.geo.boxes import bounds_of
from nearcast.geo.distance import EARTH_RADIUS_KM, RADIANS, great_circle_km
from nearcast.geo.region import Region, check_space
from nearcast.geo.shapes.arrays import ShapeArrays, empty_shapes, overlapping
from nearcast.geo.shapes.polygon_blocks import with_polygons
from nearcast.geo.space import Space

MAX_BOXES = 8
"""The most boxes of one polygon with many islands: each box is one more row in every index."""

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
STEPS = 44  # 0.618^44 of a degree is 0.07 mm


@dataclass(frozen=True)
class PolygonRegion(Region):
    """A valid Polygon or MultiPolygon. In lon/lat it is within -180..180 and -90..90; `parse_region` splits it."""

    geometry: shapely.Geometry
    planar: bool = False

    def __post_init__(self) -> None:
        geometry = self.geometry
        if geometry.geom_type not in ("Polygon", "MultiPolygon") or geometry.is_empty:
            raise InvalidInput(f"a polygon region needs a non-empty polygon, not {geometry!r}", column="region")
        if not geometry.is_valid:
            raise InvalidInput(f"the polygon is not valid: {shapely.is_valid_reason(geometry)}", column="region")
        xmin, ymin, xmax, ymax = geometry.bounds
        if not self.planar and (xmin < -180 or xmax > 180 or ymin < -90 or ymax > 90):
            raise InvalidInput("the polygon leaves -180..180, -90..90; parse_region splits it", column="region")

    @cached_property
    def _arrays(self) -> ShapeArrays:
        """The polygon as shape 0."""
        number, ends = np.zeros(1, np.int32), np.zeros(2, np.int64)
        return with_polygons(empty_shapes(self.planar, 1), number, np.array([self.geometry]), ends)

    @cached_property
    def _segments(self) -> np.ndarray:
        return border_segments(self.geometry)

    def boxes(self, space: Space) -> np.ndarray:
        check_space(self.planar, space)
        return covering_boxes(self.geometry if self.planar else with_aliases(self.geometry))

    def overlaps(self, boxes: np.ndarray) -> np.ndarray:
        return overlapping(self._arrays, np.zeros(len(boxes), np.int32), boxes)

    def distance(self, x: float, y: float) -> float:
        if self.planar:
            return float(shapely.distance(self.geometry, shapely.Point(x, y)))
        if self.overlaps(np.array([[x, y, x, y]], np.float64))[0]:
            return 0.0
        return float(border_km(float(x), float(y), self._segments))

    def to_geojson(self) -> dict[str, Any]:
        mapping: dict[str, Any] = shapely.geometry.mapping(self.geometry)
        return {"type": mapping["type"], "coordinates": _as_lists(mapping["coordinates"])}

    def describe(self) -> str:
        # A ring repeats its first corner at its end.
        rings = shapely.get_rings(shapely.get_parts(self.geometry))
        corners = int(shapely.get_num_coordinates(self.geometry)) - len(rings)
        parts = int(shapely.get_num_geometries(self.geometry))
        what = "a polygon" if parts == 1 else f"{parts} polygons"
        return f"{what} with {corners} corners"


def _as_lists(nested: Any) -> Any:
    return [_as_lists(item) for item in nested] if isinstance(nested, tuple) else nested


def covering_boxes(geometry: shapely.Geometry) -> np.ndarray:
    """float64[k,4], k <= MAX_BOXES: the bounds of the parts, grouped at the widest gaps in x. Boxes share no x."""
    bounds = shapely.bounds(shapely.get_parts(shapely.get_parts(geometry)))
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    gaps = bounds[1:, 0] - np.maximum.accumulate(bounds[:-1, 2])
    widest = np.argsort(-gaps, kind="stable")[: MAX_BOXES - 1]
    cuts = np.sort(widest[gaps[widest] > 0]) + 1
    return np.array([bounds_of(group) for group in np.split(bounds, cuts)])


def border_segments(geometry: shapely.Geometry) -> np.ndarray:
    """float64[m,4]: the segments x1, y1, x2, y2 of the border, each at most one degree wide and high."""
    coordinates, rings = shapely.get_coordinates(shapely.get_rings(shapely.get_parts(geometry)), return_index=True)
    same_ring = rings[1:] == rings[:-1]
    starts, steps = coordinates[:-1][same_ring], np.diff(coordinates, axis=0)[same_ring]
    counts = np.maximum(np.ceil(np.abs(steps).max(axis=1)).astype(np.int64), 1)
    edge = np.repeat(np.arange(len(counts)), counts)
    nth = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin, end = (nth / counts[edge])[:, None], ((nth + 1) / counts[edge])[:, None]
    return np.hstack([starts[edge] + steps[edge] * begin, starts[edge] + steps[edge] * end])


@kernel
def border_km(x, y, segments):
    """Kilometres from the point to the nearest point of the segments."""
    corner_km = np.empty(len(segments))
    for i in range(len(segments)):
        corner_km[i] = great_circle_km(x, y, segments[i, 0], segments[i, 1])
    best = corner_km.min()
    for i in range(len(segments)):
        length = math.hypot(segments[i, 2] - segments[i, 0], segments[i, 3] - segments[i, 1])
        if corner_km[i] - length * RADIANS * EARTH_RADIUS_KM < best:
            best = min(best, _segment_km(x, y, segments, i))
    return best


@kernel
def _along_km(x, y, segments, i, t):
    lon = segments[i, 0] + t * (segments[i, 2] - segments[i, 0])
    lat = segments[i, 1] + t * (segments[i, 3] - segments[i, 1])
    return great_circle_km(x, y, lon, lat)


@kernel
def _segment_km(x, y, segments, i):
    low, high = 0.0, 1.0
    left, right = 1.0 - GOLDEN, GOLDEN
    left_km, right_km = _along_km(x, y, segments, i, left), _along_km(x, y, segments, i, right)
    for _ in range(STEPS):
        if left_km <= right_km:
            high, right, right_km = right, left, left_km
            left = high - GOLDEN * (high - low)
            left_km = _along_km(x, y, segments, i, left)
        else:
            low, left, left_km = left, right, right_km
            right = low + GOLDEN * (high - low)
            right_km = _along_km(x, y, segments, i, right)
    return min(left_km, right_km)
