"""Polygons on the globe: over the antimeridian, beyond 180 degrees, round a pole.

A ring within -180..180 that jumps by more than 180 degrees crosses the antimeridian. Unrolled, its longitudes
run on beyond 180; if it then ends 360 degrees from where it began, it runs round a pole and is closed over
that pole. The unrolled polygon is cut at 180 + 360 k and its pieces are moved back. We do this ourselves: the
`antimeridian` package (the tests compare with it) loses rings round a pole with a hole, edges wider than 180
degrees, and seventh digits.
"""

from __future__ import annotations

import numpy as np
import shapely

from nearcast.errors import InvalidInput

MAX_LONGITUDE = 540.0
"""Longitudes past this are taken for a mistake, not for a third time round."""


def globe_polygon(rings: list[np.ndarray]) -> shapely.Geometry:
    """The polygon of an outer ring and holes (float64[n,2], closed), within -180..180. It may be invalid."""
    for ring in rings:
        _check_range(ring)
    unrolled = [_unrolled(ring, is_hole=i > 0) for i, ring in enumerate(rings)]
    if all(ring is given and _within(ring) for ring, given in zip(unrolled, rings, strict=True)):
        return shapely.Polygon(rings[0], rings[1:])
    shell, *holes = (rolled_up(ring) for ring in unrolled)
    return shapely.difference(shell, shapely.union_all(holes)) if holes else shell


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


def _unrolled(ring: np.ndarray, is_hole: bool) -> np.ndarray:
    """The ring without its jumps, closed over a pole if it runs round one; itself if it has no jumps."""
    if not takes_short_cut(ring, is_hole):
        return ring
    steps = np.diff(ring[:, 0])
    turns = np.concatenate([[0], np.cumsum(np.where(steps > 180, -1, np.where(steps < -180, 1, 0)))])
    out = np.column_stack([ring[:, 0] + 360.0 * turns, ring[:, 1]])
    if turns[-1] == 0:
        return out
    if abs(turns[-1]) > 1:
        raise InvalidInput("a ring of the polygon runs round the pole more than once", column="region")
    return _closed_over_pole(out)


def takes_short_cut(ring: np.ndarray, is_hole: bool = False) -> bool:
    """Is a step of more than 180 degrees a short cut over the antimeridian, or meant as it stands?

    As it stands in rings that leave -180..180; where only whole rounds from -180 to 180 are made, as bands
    do; and in a rectangle wound the way the standard asks for: that is how a box wider than 180 degrees is
    written.
    """
    steps = np.abs(np.diff(ring[:, 0]))
    wide = steps[steps > 180]
    if not len(wide) or not _within(ring) or (wide == 360).all():
        return False
    return not (is_rectangle(ring) and shapely.is_ccw(shapely.LinearRing(ring)) != is_hole)


def _closed_over_pole(ring: np.ndarray) -> np.ndarray:
    """Over the nearer pole, by the mean latitude; a ring on the equator has its pole on its left."""
    steps, latitudes = np.diff(ring[:, 0]), (ring[1:, 1] + ring[:-1, 1]) / 2
    eastward = ring[-1, 0] > ring[0, 0]
    mean = float((steps * latitudes).sum()) / (360.0 if eastward else -360.0)
    pole = 90.0 if mean > 0 or (mean == 0 and eastward) else -90.0
    return np.vstack([ring, [[ring[-1, 0], pole], [ring[0, 0], pole]], ring[:1]])


def is_rectangle(ring: np.ndarray) -> bool:
    """Does the closed ring visit the corners of its bounds along the sides? It may lack width or height."""
    if len(ring) != 5:
        return False
    (xmin, ymin), (xmax, ymax) = ring.min(axis=0).tolist(), ring.max(axis=0).tolist()
    corners = {(xmin, ymin), (xmin, ymax), (xmax, ymin), (xmax, ymax)}
    along = (ring[1:] == ring[:-1]).any(axis=1).all()
    return bool(along) and set(map(tuple, ring.tolist())) == corners


def rolled_up(ring: np.ndarray) -> shapely.Geometry:
    """The area of an unrolled ring, cut at 180 + 360 k and moved back into -180..180.

    GEOS cuts at exactly the seam's longitude, the same latitudes on both sides (160,000 random triangles).
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
    """The geometry if it is valid; else its area with crossings resolved. Refused if no area is left."""
    if not geometry.is_valid:
        reason = shapely.is_valid_reason(geometry)
        parts = polygons_in(shapely.make_valid(geometry, method="structure", keep_collapsed=False))
        geometry = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
        if geometry.is_empty or geometry.area == 0:
            raise InvalidInput(f"the polygon has no area ({reason})", column="region")
    if geometry.is_empty:
        raise InvalidInput("the polygon is empty", column="region")
    return geometry


def polygons_in(geometry: shapely.Geometry) -> list[shapely.Geometry]:
    """The polygons of a geometry of any type; lines and points, which cutting may leave, are dropped."""
    parts = shapely.get_parts(shapely.get_parts(geometry))
    return [part for part in parts if part.geom_type == "Polygon" and not part.is_empty]


def with_twins(geometry: shapely.Geometry) -> shapely.Geometry:
    """The geometry, and what it touches at 180 degrees or a pole under its other coordinates too."""
    xmin, ymin, xmax, ymax = geometry.bounds
    twins = []
    for side, is_touched in ((180.0, xmax == 180.0), (-180.0, xmin == -180.0)):
        if is_touched:
            border = shapely.intersection(geometry, shapely.LineString([(side, -90), (side, 90)]))
            twins.append(shapely.transform(border, lambda at, side=side: at * [-1.0, 1.0]))
    for pole, is_touched in ((90.0, ymax == 90.0), (-90.0, ymin == -90.0)):
        if is_touched:
            twins.append(shapely.LineString([(-180, pole), (180, pole)]))
    missing = [twin for twin in twins if not shapely.covers(geometry, twin)]
    return shapely.GeometryCollection([geometry, *missing]) if missing else geometry
