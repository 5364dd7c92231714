"""Regions that Python holds as dicts or geometries, as values of one Arrow column."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import shapely


def region_values(values: Any) -> Any:
    """Values that Arrow takes: as they are, unless a geometry or different sorts are among them, which become texts."""
    if not isinstance(values, list | tuple):
        return values
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str} or kinds <= {bytes}:
        return values
    if kinds == {dict}:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            pass  # a Polygon and a MultiPolygon have lists of different depths
    return [_text_of(value) for value in values]


def _text_of(value: Any) -> Any:
    """GeoJSON; anything else unchanged."""
    if isinstance(value, bytes):
        value = shapely.from_wkb(value, on_invalid="ignore")
    if isinstance(value, shapely.Geometry):
        srid = int(shapely.get_srid(value))
        return f"SRID={srid};{shapely.to_wkt(value, rounding_precision=-1)}" if srid else shapely.to_geojson(value)
    if isinstance(value, Mapping):
        return json.dumps(value, default=str)
    own = getattr(value, "__geo_interface__", None)
    return value if own is None else json.dumps(own)
