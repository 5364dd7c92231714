"""Circles: all points within a radius of a centre, in great-circle kilometres or in units of a plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.geo.circle_boxes import circle_boxes
from nearcast.geo.distance import point_box_distance
from nearcast.geo.region import PLANE, Region, check_space
from nearcast.geo.space import LONLAT, Space, coordinate_faults, fault_reason


@dataclass(frozen=True)
class CircleRegion(Region):
    x: float
    y: float
    radius: float
    planar: bool = False

    def __post_init__(self) -> None:
        space = PLANE if self.planar else LONLAT
        if not space.has_point(self.x, self.y):
            centre = np.array([[self.x, self.y, self.x, self.y]], np.float64)
            code = int(coordinate_faults(centre, space)[0])
            names = ("x", "y", "x", "y")
            reason = f"the centre of a circle: {fault_reason(code, centre[0], names, self.planar)[1]}"
            raise InvalidInput(reason, column="region")
        if not (math.isfinite(self.radius) and self.radius >= 0):
            raise InvalidInput(
                f"the radius of a circle is finite and not negative; it is {self.radius}", column="region"
            )

    def boxes(self, space: Space) -> np.ndarray:
        check_space(self.planar, space)
        return circle_boxes(np.array([[self.x, self.y, self.radius]], np.float64), self.planar)[0]

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
