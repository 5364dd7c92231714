"""Columns of geometries (text, structs, WKB, GeoArrow with a CRS) as texts of regions, or as points."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from nearcast.arrays.arrow import is_null_mask, one_array, string_buffers, strings
from nearcast.errors import InvalidInput
from nearcast.geo.forms.crs import to_lonlat
from nearcast.geo.forms.region_forms import from_wkt
from nearcast.geo.space import Space
from nearcast.tables.faults import Faults
from nearcast.tables.input_checks.known_columns import GEOMETRY, geometry_extension

REGION = "region"
_NESTED = {"geoarrow.point": "Point", "geoarrow.polygon": "Polygon", "geoarrow.multipolygon": "MultiPolygon"}
_FIRST_OF_WKT = np.zeros(256, bool)
_FIRST_OF_WKT[[ord(letter) for letter in "PpMmGgSsLl"]] = (
    True  # POINT, POLYGON, MULTI…, GEOMETRYCOLLECTION, SRID, LINE…
)


def geometry_name(table: pa.Table) -> str | None:
    """The column `region`; without one, `geometry` if it is GeoArrow, as GeoDataFrames have it."""
    if REGION in table.column_names:
        return REGION
    if GEOMETRY not in table.column_names:
        return None
    return GEOMETRY if geometry_extension(table.schema.field(GEOMETRY)).startswith("geoarrow.") else None


def geometry_texts(table: pa.Table, name: str, space: Space, faults: Faults) -> pa.Array:
    """string[n]: the regions as texts. A value that cannot be read is a fault."""
    kind, crs = _extension(table, name)
    values = one_array(table.column(name))
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    if kind in _NESTED:
        values = pa.array([_nested(value, _NESTED[kind]) for value in values.to_pylist()], pa.string())
    elif kind == "geoarrow.box":
        values = pa.array([_box(value) for value in values.to_pylist()], pa.string())
    elif kind and kind not in ("geoarrow.wkb", "geoarrow.wkt", "ogc.wkb"):
        raise InvalidInput(f"a column of {kind} is no region; give polygons, points or boxes", column=name)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), pa.string())
    if pa.types.is_struct(values.type):
        values = pa.array([_of_struct(value) for value in values.to_pylist()], pa.string())
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        values = _of_wkb(values, name, faults)
    texts = _without_wkt(_texts(values, name))
    return texts if crs is None or space.planar else _reprojected(texts, crs, name)


def _extension(table: pa.Table, name: str) -> tuple[str, Any]:
    """(the name of the extension type of a column, or "", its CRS)."""
    field = table.schema.field(name)
    if isinstance(field.type, pa.BaseExtensionType):
        raw = field.type.__arrow_ext_serialize__()
    else:
        raw = (field.metadata or {}).get(b"ARROW:extension:metadata", b"")
    try:
        found = json.loads(raw or b"{}")
    except ValueError:
        found = {}
    return geometry_extension(field), found.get("crs") if isinstance(found, dict) else None


def _texts(values: pa.Array, name: str) -> pa.Array:
    try:
        return strings(values)
    except InvalidInput:
        reason = f"a region is text (GeoJSON, WKT, circle(...), box(...)), a struct or WKB, not {values.type}"
        raise InvalidInput(reason, column=name) from None


def _nested(value: Any, kind: str) -> str | None:
    """A value of a native GeoArrow encoding as GeoJSON."""
    return None if value is None else json.dumps({"type": kind, "coordinates": _positions(value)})


def _positions(value: Any) -> Any:
    """Points as [x, y], in lists as deep as they were. Points are structs or lists."""
    if isinstance(value, dict):
        return [value["x"], value["y"]]
    return [_positions(each) if isinstance(each, dict | list) else each for each in value]


def _box(value: dict[str, float] | None) -> str | None:
    return (
        None
        if value is None
        else "box({}, {}, {}, {})".format(*(value[name] for name in ("xmin", "ymin", "xmax", "ymax")))
    )


def _of_struct(value: dict[str, Any] | None) -> str | None:
    """GeoJSON that was read as a struct. A struct has nulls for members that other rows have."""
    return None if value is None else json.dumps(_without_nulls(value), default=str)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _of_wkb(values: pa.Array, name: str, faults: Faults) -> pa.Array:
    geometries = shapely.from_wkb(values.to_numpy(zero_copy_only=False), on_invalid="ignore")
    for row in np.flatnonzero(shapely.is_missing(geometries) & ~is_null_mask(values)).tolist():
        faults.add(row, name, "these bytes are no WKB")
    return pa.array(_geojson(geometries), pa.string())


def _geojson(geometries: np.ndarray) -> Any:
    """object[n]: GeoJSON, or None. An SRID that says longitudes and latitudes is dropped; others are a CRS."""
    srids = shapely.get_srid(geometries)
    for srid in np.unique(srids[srids > 0]).tolist():
        own = srids == srid
        geometries = np.array(geometries, object)
        geometries[own] = to_lonlat(geometries[own], f"EPSG:{srid}")
    return shapely.to_geojson(geometries)


def _without_wkt(texts: pa.Array) -> pa.Array:
    """The texts with GeoJSON in place of WKT. WKT that cannot be read stays: who reads regions says why."""
    raw, offsets = string_buffers(texts)
    is_text = np.diff(offsets) > 0
    rows = np.flatnonzero(is_text)
    rows = rows[_FIRST_OF_WKT[raw[offsets[:-1][rows]]]]
    if not len(rows):
        return texts
    found = from_wkt(texts.take(pa.array(rows)).to_numpy(zero_copy_only=False))
    good = ~shapely.is_missing(found)
    out = texts.to_numpy(zero_copy_only=False).astype(object)
    out[rows[good]] = _geojson(found[good])
    return pa.array(out, pa.string())


def _reprojected(texts: pa.Array, crs: Any, name: str) -> pa.Array:
    """GeoJSON in another CRS as GeoJSON in longitudes and latitudes."""
    given = texts.to_numpy(zero_copy_only=False)
    geometries = shapely.from_geojson(given, on_invalid="ignore")
    found = to_lonlat(geometries, crs)
    return (
        texts
        if found is geometries
        else pa.array(np.where(shapely.is_missing(found), given, shapely.to_geojson(found)), pa.string())
    )


def with_points(table: pa.Table, space: Space) -> pa.Table:
    """Messages with columns x and y in place of a GeoArrow column `geometry` of points."""
    if geometry_name(table) != GEOMETRY:
        return table
    texts = geometry_texts(table, GEOMETRY, space, Faults(table.num_rows, "raise"))
    geometries = shapely.from_geojson(texts.to_numpy(zero_copy_only=False), on_invalid="ignore")
    is_other = ~shapely.is_missing(geometries) & (shapely.get_type_id(geometries) != shapely.GeometryType.POINT)
    if is_other.any():
        reason = "the place of a message is a point; give boxes as xmin, ymin, xmax and ymax"
        raise InvalidInput(reason, row=int(is_other.argmax()), column=GEOMETRY)
    places = {"x": shapely.get_x(geometries), "y": shapely.get_y(geometries)}
    table = table.drop_columns([name for name in (GEOMETRY, *places) if name in table.column_names])
    for name, values in places.items():
        table = table.append_column(name, pa.array(values))
    return table
