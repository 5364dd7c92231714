"""Coordinate spaces: which coordinates are valid, and why others are not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput

FINE, MISSING, INFINITE, OUT_OF_RANGE, MIN_ABOVE_MAX = range(5)
BOX_COLUMNS = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class Space:
    """Lon/lat degrees on the sphere, or a plane with Euclidean distance.

    The bounds of a plane only scale distances and grids: any finite coordinate is valid there, also outside the bounds.
    """

    planar: bool
    bounds: tuple[float, float, float, float]

    @classmethod
    def of(cls, space: Sequence[float] | None) -> Space:
        """The space of the argument: None for lon/lat, or the (xmin, ymin, xmax, ymax) of a plane."""
        return LONLAT if space is None else cls(True, _checked_bounds(space))

    def has_point(self, x: float, y: float) -> bool:
        """Whether these coordinates are valid."""
        if self.planar:
            return math.isfinite(x) and math.isfinite(y)
        return -180.0 <= x <= 180.0 and -90.0 <= y <= 90.0

    def has_box(self, xmin: float, ymin: float, xmax: float, ymax: float) -> bool:
        """Whether these coordinates are valid, and minima come first."""
        return xmin <= xmax and ymin <= ymax and self.has_point(xmin, ymin) and self.has_point(xmax, ymax)

    def header(self) -> dict[str, Any]:
        return {"planar": self.planar, "bounds": list(self.bounds)}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> Space:
        xmin, ymin, xmax, ymax = (float(value) for value in header["bounds"])
        return cls(bool(header["planar"]), (xmin, ymin, xmax, ymax))


LONLAT = Space(False, (-180.0, -90.0, 180.0, 90.0))


def _checked_bounds(space: Sequence[float]) -> tuple[float, float, float, float]:
    try:
        if isinstance(space, np.ma.MaskedArray):
            raise TypeError
        xmin, ymin, xmax, ymax = (float(value) for value in space)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"space must be four numbers (xmin, ymin, xmax, ymax), or None for lon/lat; it is {space!r}"
        ) from None
    if not all(math.isfinite(value) for value in (xmin, ymin, xmax, ymax)):
        raise InvalidInput(f"the bounds of space must be finite; they are {xmin, ymin, xmax, ymax}")
    if not (xmin < xmax and ymin < ymax):
        raise InvalidInput(
            f"space needs xmin < xmax and ymin < ymax; it is {xmin, ymin, xmax, ymax}: minima come first"
        )
    if not (math.isfinite(xmax - xmin) and math.isfinite(ymax - ymin)):
        raise InvalidInput(f"space is too wide for double precision: {xmin, ymin, xmax, ymax}")
    return xmin, ymin, xmax, ymax


def coordinate_faults(boxes: np.ndarray, space: Space) -> np.ndarray:
    """uint8[n]: FINE, or the code of the first fault of each box. `fault_reason` describes a code."""
    codes = np.empty(len(boxes), np.uint8)
    _faults(boxes, space.planar, codes)
    return codes


@kernel
def _faults(boxes, planar, out_codes):
    for i in range(len(boxes)):
        xmin, ymin, xmax, ymax = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
        largest_x = max(abs(xmin), abs(xmax))
        largest_y = max(abs(ymin), abs(ymax))
        if xmin != xmin or ymin != ymin or xmax != xmax or ymax != ymax:
            out_codes[i] = MISSING
        elif largest_x == np.inf or largest_y == np.inf:
            out_codes[i] = INFINITE
        elif not planar and (largest_x > 180.0 or largest_y > 90.0):
            out_codes[i] = OUT_OF_RANGE
        elif xmin > xmax or ymin > ymax:
            out_codes[i] = MIN_ABOVE_MAX
        else:
            out_codes[i] = FINE


def fault_reason(
    code: int, box: Sequence[float], columns: Sequence[str] = BOX_COLUMNS, planar: bool = False
) -> tuple[str, str]:
    """(name of the wrong column, reason): the reason names the value, the rule and the remedy.

    `columns` are the table's names of the four values, e.g. ("lon", "lat", "lon", "lat").
    """
    xmin, ymin, xmax, ymax = (float(value) for value in box)
    values = (xmin, ymin, xmax, ymax)
    if code == MISSING:
        at = next(i for i, value in enumerate(values) if math.isnan(value))
        return columns[at], f"{columns[at]} is missing or NaN; it must be a number"
    if code == INFINITE:
        at = next(i for i, value in enumerate(values) if math.isinf(value))
        return columns[at], f"{columns[at]} is {values[at]}; it must be finite"
    if code == OUT_OF_RANGE:
        return _range_reason(values, columns)
    if code == MIN_ABOVE_MAX:
        return _order_reason(values, columns, planar)
    raise ValueError(f"code {code} is no fault")


def _range_reason(values: tuple[float, ...], columns: Sequence[str]) -> tuple[str, str]:
    limits = (180.0, 90.0, 180.0, 90.0)
    at = next(i for i in range(4) if abs(values[i]) > limits[i])
    what = "longitude" if at % 2 == 0 else "latitude"
    reason = f"{columns[at]} is {values[at]}, but a {what} lies between {-limits[at]:g} and {limits[at]:g}"
    xs, ys = (values[0], values[2]), (values[1], values[3])
    if max(map(abs, ys)) <= 180 and max(map(abs, xs)) <= 90:
        return columns[at], f"{reason}: are x and y swapped?"
    if max(map(abs, values)) > 540:
        return columns[at], f"{reason}; coordinates of a plane need space=(xmin, ymin, xmax, ymax)"
    if at % 2 == 0:
        return columns[at], f"{reason}; add or subtract 360"
    return columns[at], reason


def _order_reason(values: tuple[float, ...], columns: Sequence[str], planar: bool) -> tuple[str, str]:
    at = 0 if values[0] > values[2] else 1
    low, high = columns[at], columns[at + 2]
    reason = f"{low} is {values[at]}, above {high} = {values[at + 2]}"
    if at == 0 and not planar:
        return low, f"{reason}; swap them. Only boxes of subscriptions go over the antimeridian, by 180 degrees at most"
    return low, f"{reason}; swap them"
