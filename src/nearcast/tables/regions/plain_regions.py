"""Every form of a place of a subscription as a text in the column `region`, which `nearcast.geo.geojson` defines.

Points with a radius become circle(...), boxes over the antimeridian box(...); WKT, WKB, structs, shapely objects and
GeoArrow become GeoJSON, in longitudes and latitudes if they have a CRS. Texts of numbers are exact: they are the
shortest that are read as the same number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import is_null_mask
from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS, LONLAT, Space, coordinate_faults
from nearcast.tables.columns import column, floats_of
from nearcast.tables.faults import Faults
from nearcast.tables.places import point_columns
from nearcast.tables.regions.geometry_columns import geometry_name, geometry_texts

_RADII = {"km": "km", "radius_km": "km", "m": "m", "miles": "miles"}
RADIUS_COLUMNS = tuple(_RADII)


class Given(NamedTuple):
    """Rows with a place that is to become a text, and the texts."""

    rows: np.ndarray  # int64[k]
    texts: pa.Array


def with_plain_regions(table: pa.Table, space: Space, faults: Faults) -> pa.Table:
    """The table, where whatever is no plain box or point is a text in the column `region`."""
    name, texts = geometry_name(table), None
    if name is not None:
        texts = geometry_texts(table, name, space, faults)
        table = table.drop_columns([name])
    has_region = np.zeros(table.num_rows, bool) if texts is None else ~is_null_mask(texts)
    for found in (_circles(table, space, faults, has_region), _wrapped_boxes(table, space, has_region)):
        if found is not None and len(found.rows):
            texts = _put(texts, found, table.num_rows)
    table = table.drop_columns([each for each in RADIUS_COLUMNS if each in table.column_names])
    return table if texts is None else table.append_column("region", texts)


def _put(texts: pa.Array | None, found: Given, n: int) -> pa.Array:
    """The texts with those found."""
    places = np.full(n, -1)
    places[found.rows] = np.arange(len(found.rows))
    more = found.texts.take(pa.array(places, mask=places < 0))
    return more if texts is None else pc.coalesce(texts.cast(pa.string()), more)


def _circles(table: pa.Table, space: Space, faults: Faults, has_region: np.ndarray) -> Given | None:
    """The circles of points with a radius. A radius without a point, or two of them, is a fault."""
    names = [each for each in RADIUS_COLUMNS if each in table.column_names]
    if not names:
        return None
    if space.planar:
        reason = f"a plane has no {names[0]}; write region as circle(x, y, radius) in the units of the plane"
        raise InvalidInput(reason, column=names[0])
    radii, used = np.full(table.num_rows, np.nan), np.full(table.num_rows, "", object)
    for name in names:
        _read_radius(table, name, radii, used, faults)
    is_given = used != ""
    point = point_columns(table)
    if point is None:
        if is_given.any():
            raise InvalidInput(f"{names[0]} needs the columns lon and lat (or x and y)", column=names[0])
        return None
    x, y = (_numbers(table, name, faults) for name in point)
    for row in np.flatnonzero(is_given & has_region & ~faults.is_bad).tolist():
        faults.add(row, used[row], f"both a region and {used[row]}; give one of them")
    is_missing = np.isnan(x) | np.isnan(y)
    for row in np.flatnonzero(is_given & is_missing & ~faults.is_bad).tolist():
        faults.add(row, used[row], f"{used[row]} needs a point: {point[0]} and {point[1]}")
    is_sound = coordinate_faults(np.column_stack([x, y, x, y]), LONLAT) == 0
    rows = np.flatnonzero(is_given & is_sound & ~faults.is_bad)  # other coordinates are a fault of points
    unit = pa.array([_RADII[name] for name in used[rows]], pa.string())
    return Given(rows, _joined("circle(", x[rows], y[rows], radii[rows], unit))


def _read_radius(table: pa.Table, name: str, radii: np.ndarray, used: np.ndarray, faults: Faults) -> None:
    """Enter the radii of one column."""
    values, raw = floats_of(table, name, faults), column(table, name)
    if values is None or raw is None:
        return
    is_given = ~is_null_mask(raw)
    for row in np.flatnonzero(is_given & ~(np.isfinite(values) & (values >= 0)) & ~faults.is_bad).tolist():
        faults.add(row, name, f"{name} is {values[row]}; a radius is a number from 0 on")
    for row in np.flatnonzero(is_given & (used != "") & ~faults.is_bad).tolist():
        faults.add(row, name, f"both {used[row]} and {name}; give one of them")
    is_new = is_given & (used == "")
    radii[is_new] = values[is_new]
    used[is_new] = name


def _wrapped_boxes(table: pa.Table, space: Space, has_region: np.ndarray) -> Given | None:
    """The boxes over the antimeridian, whose xmin is above xmax."""
    if space.planar or not {*BOX_COLUMNS} <= {*table.column_names}:
        return None
    quiet = Faults(table.num_rows, "skip")  # what cannot be read is said by those who read boxes
    xmin, ymin, xmax, ymax = (_numbers(table, name, quiet) for name in BOX_COLUMNS)
    rows = np.flatnonzero((xmin > xmax) & (xmax - xmin <= -180) & ~has_region)  # wider ones are mistakes, as it is said
    if not len(rows):
        return None
    boxes = np.column_stack([values[rows] for values in (xmax, ymin, xmin, ymax)])
    rows = rows[coordinate_faults(boxes, LONLAT) == 0]
    return Given(rows, _joined("box(", xmin[rows], ymin[rows], xmax[rows], ymax[rows]))


def _joined(start: str, *parts: np.ndarray | pa.Array) -> pa.Array:
    """Texts such as circle(1, 2, 3km): the last part follows without a comma if it is no number."""
    *numbers, last = [pa.array(part).cast(pa.string()) if isinstance(part, np.ndarray) else part for part in parts]
    if not isinstance(parts[-1], np.ndarray):
        *numbers, number = numbers
        last = pc.binary_join_element_wise(number, last, "")
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise(start, numbers[0], ""),
        *numbers[1:],
        pc.binary_join_element_wise(last, ")", ""),
        ", ",
    )


def _numbers(table: pa.Table, name: str, faults: Faults) -> np.ndarray:
    values = floats_of(table, name, faults)
    return np.full(table.num_rows, np.nan) if values is None else values
