"""Distances: great-circle kilometres on a sphere, or Euclidean distances in a plane.

On the sphere, with half differences a = |lon1 - lon2| / 2, b = |lat1 - lat2| / 2 and middle latitude m,

    sin(d/2)^2 = (sin b cos a)^2 + (cos m sin a)^2
    cos(d/2)^2 = (cos b cos a)^2 + (sin m sin a)^2

Both are sums of squares, so d = 2 atan2(sin, cos) is accurate to 10 nm for near points and for antipodes; the usual
haversine formula errs by 10 cm at antipodes. Angles stay in degrees as long as possible, so that the distance between
longitudes 180 and -180, or between two longitudes at a pole, is exactly 0.
"""

from __future__ import annotations

import math

from nearcast.arrays.jit import kernel

EARTH_RADIUS_KM = 6371.0088
"""The mean radius of the Earth (IUGG)."""

RADIANS = math.pi / 180.0


@kernel
def sin_deg(angle):
    return math.sin(angle * RADIANS)


@kernel
def cos_deg(angle):
    """The cosine, exactly 0 at 90 degrees, where math.cos returns 6e-17."""
    return math.sin((90.0 - abs(angle)) * RADIANS)


@kernel
def great_circle_km(x1, y1, x2, y2):
    """Kilometres between two lon/lat points."""
    half_x = 0.5 * abs(x1 - x2)
    if half_x > 90.0:
        half_x = 180.0 - half_x
    half_y = 0.5 * abs(y1 - y2)
    middle = 0.5 * (y1 + y2)
    sin_x, cos_x = sin_deg(half_x), cos_deg(half_x)
    near = math.hypot(sin_deg(half_y) * cos_x, cos_deg(middle) * sin_x)
    far = math.hypot(cos_deg(half_y) * cos_x, sin_deg(middle) * sin_x)
    return 2.0 * EARTH_RADIUS_KM * math.atan2(near, far)


@kernel
def meridian_km(x, y, lon, ymin, ymax):
    """Kilometres to the nearest point of the part ymin..ymax of a meridian.

    The nearest latitude of the whole great circle is atan2(sin y, cos y cos dx). For dx > 90 it lies beyond a pole, so
    both ends of the part are tried, not just the nearer one.
    """
    best = min(great_circle_km(x, y, lon, ymin), great_circle_km(x, y, lon, ymax))
    nearest = math.atan2(sin_deg(y), cos_deg(y) * math.cos((x - lon) * RADIANS)) / RADIANS
    if ymin < nearest and nearest < ymax:
        best = min(best, great_circle_km(x, y, lon, nearest))
    return best


@kernel
def point_box_km(x, y, boxes, i):
    """Kilometres to the nearest point of box i, 0 inside.

    For a point within the box's longitudes the nearest point is due north or south. Otherwise it is on the west or east
    side: along a parallel the distance only grows with the difference in longitude.
    """
    xmin, ymin, xmax, ymax = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
    if xmin == xmax and ymin == ymax:
        return great_circle_km(x, y, xmin, ymin)
    if (xmin <= x and x <= xmax) or (x == 180.0 and xmin == -180.0) or (x == -180.0 and xmax == 180.0):
        return great_circle_km(x, y, x, min(max(y, ymin), ymax))
    return min(meridian_km(x, y, xmin, ymin, ymax), meridian_km(x, y, xmax, ymin, ymax))


@kernel
def point_box_euclid(x, y, boxes, i):
    """Distance in the plane to the nearest point of box i, 0 inside."""
    return math.hypot(max(boxes[i, 0] - x, x - boxes[i, 2], 0.0), max(boxes[i, 1] - y, y - boxes[i, 3], 0.0))


@kernel
def point_box_distance(x, y, boxes, i, planar):
    return point_box_euclid(x, y, boxes, i) if planar else point_box_km(x, y, boxes, i)
