"""Reads the parameter columns that kinds of subscriptions declare, and checks the rows of plain kinds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.geo.geojson import parse_region
from nearcast.geo.region import RegionColumns
from nearcast.geo.space import Space
from nearcast.model import NEVER, Kind, Parameter
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
        if parameter.is_whole:
            for row in np.flatnonzero(is_own & (values != np.floor(values)) & ~faults.is_bad):
                faults.add(int(row), parameter.name, f"{values[row]} is not a whole number")
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


def require_points(
    boxes: np.ndarray, expires: np.ndarray, tokens: pa.Array, kind: Kind, is_own: np.ndarray, faults: Faults
) -> None:
    """Add a fault for each row of a point kind that has a box, has an expiry or has no token."""
    is_box = (boxes[:, 0] != boxes[:, 2]) | (boxes[:, 1] != boxes[:, 3])
    reason = f"kind '{kind.name}' takes a point, not a box; give columns x and y (or lon and lat)"
    faults.add_where(is_own & is_box, "xmin", reason)
    reason = f"a subscription of kind '{kind.name}' does not expire by itself; unsubscribe it"
    faults.add_where(is_own & (expires != NEVER), "expires", reason)
    n_tokens = pc.fill_null(pc.list_value_length(tokens), 0).to_numpy(zero_copy_only=False)
    faults.add_where(is_own & (n_tokens == 0), "tokens", f"no tokens; kind '{kind.name}' needs at least one")
