"""Circles: all points within a radius of a centre, in great-circle kilometres or in units of a plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.geo.distance import EARTH_RADIUS_KM, point_box_distance
from nearcast.geo.region import HUGE, PLANE, Region, check_space
from nearcast.geo.space import FINE, LONLAT, Space, coordinate_faults, fault_reason

PAD = 1e-12
"""Boxes are wider than their circle by this share and by this many degrees (0.1 µm). Distances and sums of coordinates
err by less than 1e-13 degrees, so every point of the circle is in a box."""


@dataclass(frozen=True)
class CircleRegion(Region):
    x: float
    y: float
    radius: float
    planar: bool = False

    def __post_init__(self) -> None:
        centre = np.array([[self.x, self.y, self.x, self.y]], np.float64)
        code = int(coordinate_faults(centre, PLANE if self.planar else LONLAT)[0])
        if code != FINE:
            names = ("x", "y", "x", "y")
            reason = f"the centre of a circle: {fault_reason(code, centre[0], names, self.planar)[1]}"
            raise InvalidInput(reason, column="region")
        if not (math.isfinite(self.radius) and self.radius >= 0):
            raise InvalidInput(
                f"the radius of a circle is finite and not negative; it is {self.radius}", column="region"
            )

    def boxes(self, space: Space) -> np.ndarray:
        check_space(self.planar, space)
        if self.planar:
            return _planar_boxes(self.x, self.y, self.radius)
        return _lonlat_boxes(self.x, self.y, self.radius)

    def overlaps(self, boxes: np.ndarray) -> np.ndarray:
        out = np.zeros(len(boxes), np.bool_)
        circles = np.array([[self.x, self.y, self.radius]], np.float64)
        circles_overlap(circles, np.zeros(len(boxes), np.int32), boxes, self.planar, out)
        return out

    def distance(self, x: float, y: float) -> float:
        to_centre = point_box_distance(float(x), float(y), np.array([[self.x, self.y] * 2], np.float64), 0, self.planar)
        return max(0.0, float(to_centre) - self.radius)

    def to_geojson(self) -> dict[str, Any]:
        return {"type": "Circle", "coordinates": [float(self.x), float(self.y)], "radius": float(self.radius)}

    def describe(self) -> str:
        return f"{self.radius:g}{'' if self.planar else ' km'} round {self.x:g}, {self.y:g}"


@kernel
def circles_overlap(circles, numbers, boxes, planar, out):
    """Write whether circle numbers[i] overlaps boxes[i]. A row of `circles` is x, y, radius."""
    for i in range(len(numbers)):
        number = numbers[i]
        gap = point_box_distance(circles[number, 0], circles[number, 1], boxes, i, planar)
        out[i] = gap <= circles[number, 2]


def _planar_boxes(x: float, y: float, radius: float) -> np.ndarray:
    reach = min(radius * (1.0 + PAD), HUGE)
    with np.errstate(over="ignore"):
        low = np.nextafter(np.array([x, y]) - reach, -np.inf)
        high = np.nextafter(np.array([x, y]) + reach, np.inf)
    return np.asarray(np.clip(np.concatenate([low, high]), -HUGE, HUGE)).reshape(1, 4)


def _lonlat_boxes(x: float, y: float, radius: float) -> np.ndarray:
    angle = math.degrees(radius / EARTH_RADIUS_KM) * (1.0 + PAD) + PAD
    south, north = y - angle, y + angle
    reach = 180.0 if south <= -90.0 or north >= 90.0 else _longitude_reach(y, angle)
    south, north = max(south, -90.0), min(north, 90.0)
    west, east = x - reach, x + reach
    if reach >= 180.0:
        rows = [(-180.0, south, 180.0, north)]
    elif west <= -180.0:
        rows = [(-180.0, south, east, north), (west + 360.0, south, 180.0, north)]
    elif east >= 180.0:
        rows = [(-180.0, south, east - 360.0, north), (west, south, 180.0, north)]
    else:
        rows = [(west, south, east, north)]
    return np.array(rows, np.float64)


def _longitude_reach(y: float, angle: float) -> float:
    """Degrees of longitude to the meridians that touch a circle without a pole: sin(reach) = sin(angle) / cos(y)."""
    slope = math.sin(math.radians(angle)) / math.sin(math.radians(90.0 - abs(y)))
    return 180.0 if slope >= 1.0 else math.degrees(math.asin(slope)) * (1.0 + PAD) + PAD
