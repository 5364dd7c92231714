"""Circles and polygons as columns: how the shapes of many subscriptions travel from a table to the shape table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import shapely

from nearcast.arrays.checked import checked_column
from nearcast.errors import InvalidInput
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

_POLYGONS = (-1, 3, 6)  # shapely's numbers of None, Polygon and MultiPolygon


def checked_shapes(shapes: ShapeColumns) -> ShapeColumns:
    """The columns in the types that kernels read. Raises InvalidInput for what is no circle and no polygon."""
    if shapes is NO_SHAPES:
        return shapes
    geometries = shapes.geometries
    if not (isinstance(geometries, np.ndarray) and geometries.dtype == object and geometries.ndim == 1):
        raise InvalidInput("geometries are a column of objects, of shapely or None", column="shapes")
    circles = checked_column(shapes.circles, np.float64, "shapes", len(geometries), 3)
    if not (np.isfinite(circles).all() and (circles[:, 2] >= 0).all()):
        raise InvalidInput("a circle has a finite place and a finite radius from 0 on", column="shapes")
    try:
        kinds = shapely.get_type_id(geometries)
    except TypeError:
        kinds = np.array([-2])
    if not np.isin(kinds, _POLYGONS).all():
        raise InvalidInput("a geometry is a Polygon or a MultiPolygon of shapely, or None", column="shapes")
    return ShapeColumns(circles, geometries)
