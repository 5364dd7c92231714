"""The parser of regions: GeoJSON, WKT, WKB, circle(x, y, 2.5km), box(xmin, ymin, xmax, ymax), world."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely

from nearcast.errors import InvalidInput
from nearcast.geo.antimeridian import (
    crosses_antimeridian,
    globe_polygon,
    is_rectangle,
    polygons_in,
    repaired,
    with_aliases,
)
from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import WORLD, BoxRegion, Region, box_region
from nearcast.geo.space import LONLAT, Space
from nearcast.limits import LIMITS

ACCEPTED = (
    "accepted are GeoJSON (Polygon, MultiPolygon, Point, a Feature or GeometryCollection of polygons), WKT, WKB, "
    'shapely, {"type": "Circle", "coordinates": [x, y], "radius": 2.5}, circle(x, y, 2.5km), '
    "box(xmin, ymin, xmax, ymax), and world"
)
NUMBER = r"([-+]?(?:\d++\.?\d*+|\.\d++)(?:e[-+]?\d++)?)"  # one way to read any text: the time is linear
CIRCLE = re.compile(
    rf"circle\s*\(\s*{NUMBER}\s*,\s*{NUMBER}\s*,\s*{NUMBER}\s*([^\W\d]*)\s*\)", re.IGNORECASE | re.ASCII
)
KM_PER = {"km": 1.0, "m": 0.001, "miles": 1.609344}
MAX_NESTING = 32


def parse_region(given: Any, space: Space) -> Region:
    """The region of a text, a GeoJSON dict, WKB, or an object with a geometry. Raises InvalidInput that names the
    mistake and the accepted forms.
    """
    if isinstance(given, Mapping):
        return _from_geojson(given, space)
    if not isinstance(given, str):
        return _from_other_form(given, space)
    if len(given) > LIMITS.region_characters:
        raise _region_error(f"a region of more than {LIMITS.region_characters:,} characters, {_shown(given[:60])}")
    text = given.strip()
    if text.startswith("{"):
        return _from_geojson(_load_json(text), space)
    if text.lower() == "world":
        return WORLD
    if text.lower().startswith("circle"):
        return _from_circle_text(text, space)
    if not text:
        raise _region_error("the region is empty")
    return _from_other_form(text, space)


def _from_other_form(given: Any, space: Space) -> Region:
    """The region of a box as text, WKT, WKB, or an object with a geometry."""
    from nearcast.geo.forms.region_forms import box_of_text, geojson_of, is_wkt  # most regions are none of these

    if isinstance(given, str) and given.lower().startswith("box"):
        return box_of_text(given, space)
    if isinstance(given, str) and not is_wkt(given):
        raise _region_error(f"cannot read the region {_shown(given)}")
    geojson = geojson_of(given, space)
    if geojson is None:
        raise _region_error(f"a region is text, a GeoJSON dict, WKB or a geometry, not {type(given).__name__}")
    return _from_geojson(geojson, space)


def _region_error(reason: str) -> InvalidInput:
    return InvalidInput(f"{reason}; {ACCEPTED}", column="region")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _load_json(text: str) -> Mapping[str, Any]:
    try:
        loaded: Mapping[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise _region_error(f"the region is not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except (RecursionError, ValueError):  # ValueError: an integer of more than 4,300 digits
        raise _region_error("the region's JSON is nested too deeply or holds too long a number") from None
    return loaded


def _from_circle_text(text: str, space: Space) -> CircleRegion:
    found = CIRCLE.fullmatch(text)
    if found is None:
        raise _region_error(f"cannot read the circle {_shown(text)}")
    x, y, radius = (float(number) for number in found.groups()[:3])
    unit = found.group(4).lower()
    if space.planar:
        if unit:
            raise _region_error(f"the space is a plane, so the radius is a plain number without {_shown(unit)}")
        return CircleRegion(x, y, radius, planar=True)
    if unit not in KM_PER:
        raise _region_error(f"the radius needs km, m or miles behind it{f', not {_shown(unit)}' if unit else ''}")
    return CircleRegion(x, y, radius / 1000.0 if unit == "m" else radius * KM_PER[unit])


def _from_geojson(geojson: Any, space: Space) -> Region:
    if geojson.get("type") == "Feature":
        geojson = geojson.get("geometry")
        if not isinstance(geojson, Mapping):
            raise _region_error("the Feature has no geometry")
    kind = geojson.get("type")
    if kind == "World":
        return WORLD
    if kind == "Box":
        return box_region(_bounds(geojson), space)
    if kind == "Point":
        x, y = _position(geojson, "Point")
        return BoxRegion(x, y, x, y, space.planar)
    if kind == "Circle":
        x, y = _position(geojson, "Circle")
        radius = geojson.get("radius")
        if isinstance(radius, bool) or not isinstance(radius, int | float):
            unit = "" if space.planar else " of kilometres"
            raise _region_error(f"the Circle's radius is a number{unit}, not {_shown(radius)}")
        return CircleRegion(x, y, _as_float(radius), space.planar)
    return _from_polygons(_polygon_rings(geojson), space)


def _position(geojson: Mapping[str, Any], kind: str) -> tuple[float, float]:
    values = geojson.get("coordinates")
    if not isinstance(values, list | tuple) or len(values) < 2:
        raise _region_error(f"the coordinates of a {kind} are [x, y], not {_shown(values)}")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values[:2]):
        raise _region_error(f"the coordinates of a {kind} are two numbers, not {_shown(values)}")
    return _as_float(values[0]), _as_float(values[1])


def _bounds(geojson: Mapping[str, Any]) -> list[float]:
    """The four numbers of a Box, which is nearcast's addition to GeoJSON as Circle is."""
    values = geojson.get("coordinates")
    is_list = isinstance(values, list | tuple) and len(values) == 4
    if not is_list or any(isinstance(value, bool) or not isinstance(value, int | float) for value in values or ()):
        raise _region_error(f"the coordinates of a Box are [xmin, ymin, xmax, ymax], not {_shown(values)}")
    return [_as_float(value) for value in values or ()]


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer past 1e308
        return math.inf if value > 0 else -math.inf


def _polygon_rings(geojson: Mapping[str, Any], depth: int = 0) -> list[list[np.ndarray]]:
    """The rings of every polygon in a Polygon, MultiPolygon or GeometryCollection of these."""
    kind = geojson.get("type")
    if kind == "GeometryCollection":
        members = _items(geojson.get("geometries"), "GeometryCollection", "geometries")
        if depth == MAX_NESTING or not all(isinstance(member, Mapping) for member in members):
            raise _region_error("a GeometryCollection lists geometries, nested at most 32 deep")
        return [rings for member in members for rings in _polygon_rings(member, depth + 1)]
    if kind == "Polygon":
        return [_rings(geojson.get("coordinates"), kind)]
    if kind == "MultiPolygon":
        return [_rings(rings, kind) for rings in _items(geojson.get("coordinates"), kind, "polygons")]
    raise _region_error(
        f"the type {_shown(kind)} is not a region" if kind is not None else "the region's JSON has no type"
    )


def _items(value: Any, kind: str, what: str) -> list[Any]:
    if not isinstance(value, list | tuple) or not value:
        raise _region_error(f"the {kind} has no {what}")
    return list(value)


def _rings(value: Any, kind: str) -> list[np.ndarray]:
    return [_ring(ring, kind) for ring in _items(value, kind, "coordinates")]


def _ring(value: Any, kind: str) -> np.ndarray:
    """float64[n,2]: the positions, closed. A third coordinate (height) is ignored."""
    positions = _items(value, kind, "coordinates")
    try:
        given = np.array([list(position)[:2] for position in positions])
    except (TypeError, ValueError, OverflowError):
        given = np.empty(0, object)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iuf":
        raise _region_error(f"a ring of the {kind} is a list of [x, y], not {_shown(value)}")
    ring = given.astype(np.float64)
    if not np.isfinite(ring).all():
        raise _region_error(f"a ring of the {kind} has a coordinate that is NaN or infinite")
    if (ring[0] != ring[-1]).any():
        ring = np.vstack([ring, ring[:1]])
    if len(ring) < 4:
        raise _region_error(f"a ring of the {kind} needs at least three corners; it has {len(ring) - 1}")
    return ring


def _from_polygons(polygons: list[list[np.ndarray]], space: Space) -> Region:
    if len(polygons) == 1 and len(polygons[0]) == 1:
        box = _as_box(polygons[0][0], space)
        if box is not None:
            return box
    parts: list[shapely.Geometry] = []
    for rings in polygons:
        geometry = shapely.Polygon(rings[0], rings[1:]) if space.planar else globe_polygon(rings)
        parts.extend(polygons_in(repaired(geometry)))
    whole = parts[0] if len(parts) == 1 else repaired(shapely.MultiPolygon(parts))
    return PolygonRegion(whole, space.planar)


def _as_box(ring: np.ndarray, space: Space) -> Region | None:
    """The box of a rectangular ring, else None. Boxes are faster to test and may have no width or no height."""
    if not is_rectangle(ring):
        return None
    (xmin, ymin), (xmax, ymax) = ring.min(axis=0).tolist(), ring.max(axis=0).tolist()
    if space.planar:
        return BoxRegion(xmin, ymin, xmax, ymax, planar=True)
    if max(-xmin, xmax) > 180 or max(-ymin, ymax) > 90:
        return None
    flat = shapely.box(xmin, ymin, xmax, ymax)
    if crosses_antimeridian(ring) or (flat.area > 0 and with_aliases(flat) is not flat):
        return None
    return WORLD if (xmin, ymin, xmax, ymax) == LONLAT.bounds else BoxRegion(xmin, ymin, xmax, ymax)
