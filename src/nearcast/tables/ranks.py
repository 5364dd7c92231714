"""What ranked subscriptions ask for: the columns alpha and threshold, and the places they can have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nearcast.geo.region import Region
from nearcast.geo.space import Space
from nearcast.tables.columns import column, floats_of, strings_of
from nearcast.tables.faults import Faults

DEFAULT_ALPHA = 0.5


def asked_of(table: pa.Table, is_ranked: np.ndarray, faults: Faults) -> tuple[np.ndarray, np.ndarray]:
    """float64[n] each: alpha and threshold; they mean something only where a row is ranked."""
    if not is_ranked.any():
        return np.zeros(table.num_rows), np.zeros(table.num_rows)
    alphas, has_alpha = _numbers(table, "alpha", faults)
    thresholds, has_threshold = _numbers(table, "threshold", faults)
    alphas = np.where(has_alpha, alphas, DEFAULT_ALPHA)
    missing = "no threshold; kind 'rank' needs the least score to deliver, a number from 0 to 1"
    faults.add_where(is_ranked & ~has_threshold, "threshold", missing)
    for name, values in (("alpha", alphas), ("threshold", thresholds)):
        for row in np.flatnonzero(is_ranked & ~((values >= 0.0) & (values <= 1.0)) & ~faults.is_bad):
            faults.add(int(row), name, f"{values[row]} is not within 0 to 1")
    return alphas, thresholds


def _numbers(table: pa.Table, name: str, faults: Faults) -> tuple[np.ndarray, np.ndarray]:
    """The values, and where there is one: a NaN that was given is a value, and a wrong one."""
    values, raw = floats_of(table, name, faults), column(table, name)
    if values is None or raw is None:
        return np.zeros(table.num_rows), np.zeros(table.num_rows, bool)
    return values, np.asarray(raw.is_valid().to_numpy(zero_copy_only=False))


def refuse_expressions(table: pa.Table, is_ranked: np.ndarray, faults: Faults) -> None:
    values = strings_of(table, "expression")
    if values is not None and is_ranked.any():
        given = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
        faults.add_where(is_ranked & given, "expression", "kind 'rank' takes tokens, not an expression")


def place_ranked(
    boxes: np.ndarray, regions: dict[int, Region], is_ranked: np.ndarray, space: Space, faults: Faults
) -> None:
    """Turn regions of ranked rows into their boxes; those that are no single box are faults."""
    for row in [row for row in regions if is_ranked[row]]:
        region = regions.pop(row)
        own = region.boxes(space)
        if region.is_box and len(own) == 1:
            boxes[row] = own[0]
        else:
            reason = f"kind 'rank' takes a point, a box, or a region that is one box, not {region.describe()}"
            faults.add(row, "region", reason)
