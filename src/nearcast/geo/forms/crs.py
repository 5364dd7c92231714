"""Coordinates of any coordinate reference system as longitudes and latitudes, by pyproj."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from nearcast.errors import InvalidInput, MissingPart

_LONLAT = ({"authority": "EPSG", "code": 4326}, {"authority": "OGC", "code": "CRS84"})
_LONLAT_NAMES = ("EPSG:4326", "OGC:CRS84")


def to_lonlat(geometries: np.ndarray, crs: Any) -> np.ndarray:
    """The geometries in longitudes and latitudes; the same array if they are in these already.

    `crs` is a name such as "EPSG:3857", PROJJSON as a dict, or WKT.
    """
    if _is_lonlat(crs):
        return geometries
    transform = _transformer(crs)
    return np.asarray(shapely.transform(geometries, lambda x, y: transform(x, y), interleaved=False))


def _is_lonlat(crs: Any) -> bool:
    if isinstance(crs, dict):
        own = crs.get("id") or {}
        return {"authority": own.get("authority"), "code": own.get("code")} in _LONLAT
    return str(crs).upper() in _LONLAT_NAMES


def _transformer(crs: Any) -> Any:
    try:
        import pyproj  # only other systems need it
    except ImportError:
        reason = (
            f"the places are in {_name_of(crs)}; to read them as longitudes and latitudes: pip install 'nearcast[crs]'"
        )
        raise MissingPart(reason) from None
    try:
        return pyproj.Transformer.from_crs(pyproj.CRS.from_user_input(crs), "OGC:CRS84", always_xy=True).transform
    except pyproj.exceptions.CRSError as error:
        raise InvalidInput(f"{_name_of(crs)} is no coordinate reference system: {error}", column="region") from None


def _name_of(crs: Any) -> str:
    return str(crs.get("name", "an unnamed system")) if isinstance(crs, dict) else str(crs)
