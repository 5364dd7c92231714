"""Circles and polygons as columns: how the shapes of many subscriptions travel from a table to the shape table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import Region


class ShapeColumns(NamedTuple):
    """Shapes of one space. A shape with a geometry is a polygon; the others are circles."""

    circles: np.ndarray  # float64[n,3]  x, y, radius; 0 for polygons
    geometries: np.ndarray  # object[n]     shapely Polygon or MultiPolygon; None for circles

    @property
    def size(self) -> int:
        return len(self.geometries)

    @classmethod
    def of(cls, regions: Sequence[Region]) -> ShapeColumns:
        """The shapes of circles and polygons."""
        made = cls(np.zeros((len(regions), 3)), np.full(len(regions), None, object))
        for number, region in enumerate(regions):
            if isinstance(region, CircleRegion):
                made.circles[number] = region.x, region.y, region.radius
            elif isinstance(region, PolygonRegion):
                made.geometries[number] = region.geometry
            else:
                raise ValueError(f"not a circle or polygon: {region.describe()}")
        return made

    def take(self, numbers: np.ndarray) -> ShapeColumns:
        return ShapeColumns(self.circles[numbers], self.geometries[numbers])


NO_SHAPES = ShapeColumns.of(())
