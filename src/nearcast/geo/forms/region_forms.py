"""Further forms of a region: box(xmin, ymin, xmax, ymax), WKT, WKB, and objects with a geometry, such as shapely's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely

from nearcast.errors import InvalidInput
from nearcast.geo.region import Region, box_region
from nearcast.geo.space import Space

_NUMBER = r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*"
_BOX = re.compile(rf"box\s*\({_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\)", re.IGNORECASE | re.ASCII)
_WKT = re.compile(r"(SRID\s*=\s*(\d+)\s*;)?\s*(POINT|POLYGON|MULTI|GEOMETRYCOLLECTION|LINE)", re.IGNORECASE)


def is_wkt(text: str) -> bool:
    """Whether the text begins as well-known text does."""
    return _WKT.match(text) is not None


def box_of_text(text: str, space: Space) -> Region:
    """The region box(xmin, ymin, xmax, ymax)."""
    found = _BOX.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"cannot read the box {text[:60]!r}; write box(xmin, ymin, xmax, ymax)", column="region")
    return box_region([float(number) for number in found.groups()], space)


def geojson_of(given: Any, space: Space) -> Mapping[str, Any] | None:
    """GeoJSON of WKT, of the bytes of WKB, or of an object with a geometry; None if it is neither."""
    if isinstance(given, str):
        return _of_shapely(_one_wkt(given), space)
    if isinstance(given, bytes | bytearray | memoryview):
        geometry = shapely.from_wkb(bytes(given), on_invalid="ignore")
        if geometry is None:
            raise InvalidInput("these bytes are no WKB", column="region")
        return _of_shapely(geometry, space)
    if isinstance(given, shapely.Geometry):
        return _of_shapely(given, space)
    own = getattr(given, "__geo_interface__", None)
    return own if isinstance(own, Mapping) else None


def _one_wkt(text: str) -> shapely.Geometry:
    bare = np.array([text], object)
    geometry = from_wkt(bare)[0]
    if geometry is not None:
        return geometry
    try:
        shapely.from_wkt(text.split(";")[-1])
        reason = "it is cut off"
    except shapely.errors.GEOSException as error:
        reason = str(error).removeprefix("ParseException: ")
    raise InvalidInput(f"cannot read the WKT {text[:60]!r}: {reason}", column="region")


def from_wkt(texts: np.ndarray) -> np.ndarray:
    """object[n]: the geometries of well-known texts, with their SRID; None for what cannot be read."""
    srids = np.zeros(len(texts), np.int64)
    plain = np.array(texts, object)
    for at, text in enumerate(texts.tolist()):
        found = _WKT.match(text)
        if found is not None and found.group(1):
            srids[at], plain[at] = int(found.group(2)), text[found.end(1) :]
    geometries = shapely.from_wkt(plain, on_invalid="ignore")
    has_srid = (srids > 0) & ~shapely.is_missing(geometries)
    if has_srid.any():
        geometries[has_srid] = shapely.set_srid(geometries[has_srid], srids[has_srid])
    return np.asarray(geometries)


def _of_shapely(geometry: shapely.Geometry, space: Space) -> Mapping[str, Any]:
    srid = int(shapely.get_srid(geometry))
    if srid > 0 and not space.planar:
        from nearcast.geo.forms.crs import to_lonlat  # most places are in longitudes and latitudes

        geometry = to_lonlat(np.array([geometry], object), f"EPSG:{srid}")[0]
    found: Mapping[str, Any] = json.loads(shapely.to_geojson(geometry))
    return found
