"""Reads the places of a table: boxes or points. (`subscriptions` reads regions.)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.geo.space import BOX_COLUMNS, FINE, Space, coordinate_faults, fault_reason
from nearcast.tables.columns import floats_of
from nearcast.tables.faults import Faults

POINTS = (("x", "y"), ("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"))


def point_columns(table: pa.Table) -> tuple[str, str] | None:
    """The names of the columns of points."""
    return next((names for names in POINTS if {*names} <= {*table.column_names}), None)


def boxes_of(table: pa.Table, space: Space, faults: Faults, has_region: np.ndarray | None = None) -> np.ndarray:
    """float64[n,4]: the box of each row, or its point if it has no box. Rows of `has_region` need neither."""
    point = point_columns(table)
    has_box = set(BOX_COLUMNS) <= set(table.column_names)
    if point is None and not has_box and has_region is None:
        raise InvalidInput("no place: give columns x and y (or lon and lat), or xmin, ymin, xmax and ymax")
    boxes = _columns(table, BOX_COLUMNS, faults) if has_box else np.full((table.num_rows, 4), np.nan)
    is_point = np.zeros(table.num_rows, bool)
    if point is not None:
        is_point = np.asarray(np.isnan(boxes).all(axis=1)) if has_box else ~is_point
        points = _columns(table, point * 2, faults)
        boxes = np.where(is_point[:, None], points, boxes) if has_box else points
    codes = coordinate_faults(boxes, space)
    if has_region is not None:
        codes[has_region] = FINE
    for row in np.flatnonzero((codes != FINE) & ~faults.is_bad):
        names = (*point, *point) if point is not None and is_point[row] else BOX_COLUMNS
        column, reason = fault_reason(int(codes[row]), boxes[row], names, space.planar)
        faults.add(int(row), column, reason)
    return boxes


def _columns(table: pa.Table, names: Sequence[str], faults: Faults) -> np.ndarray:
    """float64[n,4]: four columns, of which some may be the same; NaN for nulls."""
    boxes, read = np.empty((table.num_rows, 4)), {name: floats_of(table, name, faults) for name in names}
    for k, name in enumerate(names):
        values = read[name]
        boxes[:, k] = np.nan if values is None else values
    return boxes
