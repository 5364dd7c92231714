"""Reads the parameter columns that kinds of subscriptions declare, and checks the rows of plain kinds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.geo.geojson import parse_region
from nearcast.geo.region import RegionColumns
from nearcast.geo.space import Space
from nearcast.model import Kind, Parameter
from nearcast.tables.columns import column, floats_of, strings_of
from nearcast.tables.faults import Faults
from nearcast.tables.subscription_rows import ABSENT


def read_parameters(table: pa.Table, kind: Kind, is_own: np.ndarray, faults: Faults) -> dict[str, np.ndarray]:
    """float64[n] for each parameter of a kind. The values of rows of other kinds (not `is_own`) are undefined."""
    read = {parameter.name: _values(table, parameter, faults) for parameter in kind.parameters}
    for parameter in kind.parameters:
        if parameter.default is None:
            limits = f"a number from {parameter.low:g} to {parameter.high:g}"
            reason = f"no {parameter.name}; kind '{kind.name}' needs {parameter.meaning}, {limits}"
            faults.add_where(is_own & ~read[parameter.name][1], parameter.name, reason)
    for parameter in kind.parameters:
        values = read[parameter.name][0]
        is_out = ~((values >= parameter.low) & (values <= parameter.high))
        for row in np.flatnonzero(is_own & is_out & ~faults.is_bad):
            reason = f"{values[row]} is not within {parameter.low:g} to {parameter.high:g}"
            faults.add(int(row), parameter.name, reason)
    return {name: values for name, (values, _) in read.items()}


def _values(table: pa.Table, parameter: Parameter, faults: Faults) -> tuple[np.ndarray, np.ndarray]:
    """(values, mask of the rows with a value). A NaN in the table counts as a value, which is out of range."""
    fill = 0.0 if parameter.default is None else parameter.default
    values, raw = floats_of(table, parameter.name, faults), column(table, parameter.name)
    if values is None or raw is None:
        return np.full(table.num_rows, fill), np.zeros(table.num_rows, bool)
    is_given = np.asarray(raw.is_valid().to_numpy(zero_copy_only=False))
    return np.where(is_given, values, fill), is_given


def refuse_expressions(table: pa.Table, kind: Kind, is_own: np.ndarray, faults: Faults) -> None:
    """Add a fault for each expression of a plain kind."""
    values = strings_of(table, "expression")
    if values is not None:
        is_given = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
        faults.add_where(is_own & is_given, "expression", f"kind '{kind.name}' takes tokens, not an expression")


def replace_regions(
    boxes: np.ndarray, regions: RegionColumns, region_of_row: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Turn the regions of these rows of a plain kind into boxes. Return the rows whose region is not one box."""
    numbers = region_of_row[rows]
    is_one_box = regions.is_box[numbers] & (np.diff(regions.box_starts)[numbers] == 1)
    boxes[rows[is_one_box]] = regions.boxes[regions.box_starts[numbers[is_one_box]]]
    region_of_row[rows] = ABSENT
    return np.asarray(rows[~is_one_box])


def refuse_shapes(table: pa.Table, kind: Kind, rows: np.ndarray, space: Space, faults: Faults) -> None:
    """Add a fault for the region of each of these rows of a plain kind."""
    texts = strings_of(table, "region")
    for row in rows.tolist():
        assert texts is not None
        region = parse_region(texts[row].as_py(), space)
        accepted = "a point, a box, or a region that is one box"
        faults.add(row, "region", f"kind '{kind.name}' takes {accepted}, not {region.describe()}")
