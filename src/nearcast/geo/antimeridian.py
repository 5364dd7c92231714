"""Polygons on the globe: across the antimeridian, beyond 180 degrees of longitude, around a pole.

A ring within -180..180 with a step of more than 180 degrees crosses the antimeridian. It is unwrapped: its longitudes
continue beyond 180. If the unwrapped ring ends 360 degrees from its start, it runs around a pole and is closed over
that pole. The unwrapped polygon is cut at 180 + 360 k, and the pieces are moved back into -180..180. We do not use the
`antimeridian` package (only the tests compare with it): it loses rings around a pole with a hole, edges wider than 180
degrees, and the seventh digit.
"""

from __future__ import annotations

import numpy as np
import shapely

from nearcast.errors import InvalidInput
from nearcast.geo.crossings import require_few_crossings

MAX_LONGITUDE = 540.0
"""The largest longitude accepted: one turn beyond 180. A larger one is taken for a mistake."""
_MOST_TURNS = 4


def globe_polygon(rings: list[np.ndarray]) -> shapely.Geometry:
    """The polygon of an outer ring and holes (float64[n,2], closed), within -180..180. The result may be invalid."""
    for ring in rings:
        _check_range(ring)
    unwrapped = [_unwrapped(ring, is_hole=i > 0) for i, ring in enumerate(rings)]
    if all(ring is given and _within(ring) for ring, given in zip(unwrapped, rings, strict=True)):
        return shapely.Polygon(rings[0], rings[1:])
    shell, *holes = (wrapped(ring) for ring in unwrapped)
    if not holes:
        return shell
    require_few_crossings(shapely.GeometryCollection([shell, *holes]))
    return shapely.difference(shell, shapely.union_all(holes))


def _check_range(ring: np.ndarray) -> None:
    x, y = ring[:, 0], ring[:, 1]
    if np.abs(y).max() > 90:
        worst = y[np.argmax(np.abs(y))]
        swapped = ": are x and y swapped?" if np.abs(y).max() <= 180 and np.abs(x).max() <= 90 else ""
        raise InvalidInput(f"latitude {worst} is not between -90 and 90{swapped}", column="region")
    if np.abs(x).max() > MAX_LONGITUDE:
        worst = x[np.argmax(np.abs(x))]
        raise InvalidInput(
            f"longitude {worst} is not between -{MAX_LONGITUDE:g} and {MAX_LONGITUDE:g}", column="region"
        )


def _within(ring: np.ndarray) -> bool:
    return bool(np.abs(ring[:, 0]).max() <= 180.0)


def _unwrapped(ring: np.ndarray, is_hole: bool) -> np.ndarray:
    """The ring with continuous longitudes, closed over a pole if it runs around one. The same object if unchanged."""
    if not crosses_antimeridian(ring, is_hole):
        return ring
    steps = np.diff(ring[:, 0])
    turns = np.concatenate([[0], np.cumsum(np.where(steps > 180, -1, np.where(steps < -180, 1, 0)))])
    out = np.column_stack([ring[:, 0] + 360.0 * turns, ring[:, 1]])
    if abs(turns[-1]) > 1 or np.ptp(turns) > _MOST_TURNS:
        raise InvalidInput("a ring of the polygon runs around the pole more than once", column="region")
    return out if turns[-1] == 0 else _closed_over_pole(out)


def crosses_antimeridian(ring: np.ndarray, is_hole: bool = False) -> bool:
    """Whether a step of more than 180 degrees in this ring crosses the antimeridian, instead of being a long edge.

    It is a long edge in rings that leave -180..180; if all such steps go from -180 to 180 or back, as in bands around
    the globe; and in a rectangle wound as the GeoJSON standard demands, the form of a box wider than 180 degrees.
    """
    steps = np.abs(np.diff(ring[:, 0]))
    wide = steps[steps > 180]
    if not len(wide) or not _within(ring) or (wide == 360).all():
        return False
    return not (is_rectangle(ring) and shapely.is_ccw(shapely.LinearRing(ring)) != is_hole)


def _closed_over_pole(ring: np.ndarray) -> np.ndarray:
    """The ring closed over the pole nearer to its mean latitude; a ring on the equator over the pole on its left."""
    steps, latitudes = np.diff(ring[:, 0]), (ring[1:, 1] + ring[:-1, 1]) / 2
    eastward = ring[-1, 0] > ring[0, 0]
    mean = float((steps * latitudes).sum()) / (360.0 if eastward else -360.0)
    pole = 90.0 if mean > 0 or (mean == 0 and eastward) else -90.0
    return np.vstack([ring, [[ring[-1, 0], pole], [ring[0, 0], pole]], ring[:1]])


def is_rectangle(ring: np.ndarray) -> bool:
    """Whether the closed ring is a rectangle with sides along the axes. It may have no width or no height."""
    if len(ring) != 5:
        return False
    (xmin, ymin), (xmax, ymax) = ring.min(axis=0).tolist(), ring.max(axis=0).tolist()
    corners = {(xmin, ymin), (xmin, ymax), (xmax, ymin), (xmax, ymax)}
    along = (ring[1:] == ring[:-1]).any(axis=1).all()
    return bool(along) and set(map(tuple, ring.tolist())) == corners


def wrapped(ring: np.ndarray) -> shapely.Geometry:
    """The area of an unwrapped ring, cut at 180 + 360 k and moved back into -180..180.

    GEOS cuts at exactly that longitude and at the same latitudes on both sides (tried on 160,000 random triangles).
    """
    area = repaired(shapely.Polygon(ring))
    first, last = np.floor((np.array(area.bounds)[[0, 2]] + 180.0) / 360.0).astype(int)
    pieces = []
    for turn in range(first, last + 1):
        middle = 360.0 * turn
        piece = shapely.intersection(area, shapely.box(middle - 180.0, -90.0, middle + 180.0, 90.0))
        pieces.extend(polygons_in(shapely.transform(piece, lambda at, middle=middle: at - [middle, 0.0])))
    return shapely.union_all(pieces)


def repaired(geometry: shapely.Geometry) -> shapely.Geometry:
    """The geometry if it is valid, else its area with crossings resolved. Raises InvalidInput if no area is left."""
    if not geometry.is_valid:
        require_few_crossings(geometry)
        with np.errstate(over="ignore", invalid="ignore"):  # of numbers as large as float64 has them
            reason = shapely.is_valid_reason(geometry)
            parts = polygons_in(shapely.make_valid(geometry, method="structure", keep_collapsed=False))
        geometry = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
        if geometry.is_empty or geometry.area == 0:
            raise InvalidInput(f"the polygon has no area ({reason})", column="region")
    if geometry.is_empty:
        raise InvalidInput("the polygon is empty", column="region")
    return geometry


def polygons_in(geometry: shapely.Geometry) -> list[shapely.Geometry]:
    """The polygons of a geometry of any type. Drops lines and points, which cutting may produce."""
    parts = shapely.get_parts(shapely.get_parts(geometry))
    return [part for part in parts if part.geom_type == "Polygon" and not part.is_empty]


def with_aliases(geometry: shapely.Geometry) -> shapely.Geometry:
    """The geometry and the aliases of its points: 180 and -180 are one meridian, and a pole is one point."""
    xmin, ymin, xmax, ymax = geometry.bounds
    aliases = []
    for side, is_touched in ((180.0, xmax == 180.0), (-180.0, xmin == -180.0)):
        if is_touched:
            border = shapely.intersection(geometry, shapely.LineString([(side, -90), (side, 90)]))
            aliases.append(shapely.transform(border, lambda at, side=side: at * [-1.0, 1.0]))
    for pole, is_touched in ((90.0, ymax == 90.0), (-90.0, ymin == -90.0)):
        if is_touched:
            aliases.append(shapely.LineString([(-180, pole), (180, pole)]))
    missing = [alias for alias in aliases if not shapely.covers(geometry, alias)]
    return shapely.GeometryCollection([geometry, *missing]) if missing else geometry
