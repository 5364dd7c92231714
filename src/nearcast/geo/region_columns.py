"""The regions of many texts at once: boxes and shapes as columns. `geojson.parse_region` defines them.

Kernels read circles and GeoJSON Polygons (see `region_texts`); shapely builds and checks all polygons in a few calls. A
text that needs a rule of the globe (antimeridian, poles), a repair or an error message is read by `parse_region`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import shapely

from nearcast.arrays.arrow import string_buffers
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.errors import InvalidInput
from nearcast.geo.circle_boxes import circle_boxes
from nearcast.geo.geojson import parse_region
from nearcast.geo.region import NO_REGION, Region, RegionColumns
from nearcast.geo.region_texts import METRES, OTHER, Numbers, read_circles, read_polygons
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.space import FINE, Space, coordinate_faults

FEW = 24
"""The kernels are quicker from about 20 texts on."""

UNREAD, BOX, POLYGON = range(3)
"""What `survey_polygons` finds: a text for `parse_region`, a box, or a polygon that needs no rule of the globe."""


class _Part(NamedTuple):
    """Some of the regions, in the columns of RegionColumns."""

    boxes: np.ndarray
    box_counts: np.ndarray
    is_box: np.ndarray
    circles: np.ndarray
    geometries: np.ndarray


def read_regions(texts: pa.Array, space: Space, few: int = FEW) -> RegionColumns:
    """The region of each text. There must be no nulls. Up to `few` texts are read one by one."""
    if len(texts) <= few:
        numbers, part, errors = _read_one_by_one(texts.to_pylist(), space)
        return _region_columns(numbers, [part], errors)
    is_circle, circles = _circles(texts, space)
    parts = [_part_of_circles(circles, space)]
    numbers = np.cumsum(is_circle) - 1
    others, errors = np.flatnonzero(~is_circle), dict[int, InvalidInput]()
    if len(others):
        coded = (texts if len(others) == len(texts) else texts.take(pa.array(others))).dictionary_encode()
        distinct, more, mistakes = _distinct_regions(coded.dictionary, space)
        distinct[distinct != NO_REGION] += len(circles)
        entries = coded.indices.to_numpy()
        numbers[others] = distinct[entries]
        parts += more
        for place in np.flatnonzero(np.isin(entries, list(mistakes))).tolist():
            errors[int(others[place])] = mistakes[int(entries[place])]
    return _region_columns(numbers, parts, errors)


def _region_columns(numbers: np.ndarray, parts: list[_Part], errors: dict[int, InvalidInput]) -> RegionColumns:
    columns = parts[0] if len(parts) == 1 else [np.concatenate(column) for column in zip(*parts, strict=True)]
    boxes, counts, is_box, circles, geometries = columns
    return RegionColumns(numbers, boxes, starts_of(counts), is_box, circles, geometries, errors)


def _read_one_by_one(texts: list[str], space: Space) -> tuple[np.ndarray, _Part, dict[int, InvalidInput]]:
    """(number of the region of each text, the regions, errors by text)."""
    numbers, regions, errors = np.full(len(texts), NO_REGION, np.int64), list[Region](), dict[int, InvalidInput]()
    for i, text in enumerate(texts):
        try:
            region = parse_region(text, space)
        except InvalidInput as error:
            errors[i] = error
        else:
            numbers[i] = len(regions)
            regions.append(region)
    return numbers, _part_of_regions(regions, space), errors


def _circles(texts: pa.Array, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """(mask of the texts that are valid circles, float64[k,3]: their x, y, radius)."""
    raw, offsets = string_buffers(texts)
    forms = np.empty(len(texts), np.uint8)
    numbers = Numbers.room_for(int(offsets[-1] - offsets[0]), 3 * len(texts), 0)
    read_circles(raw, offsets, space.planar, numbers, forms)
    circles = numbers.values().reshape(-1, 3)
    is_circle = forms != OTHER
    circles[forms[is_circle] == METRES, 2] /= 1000.0
    is_valid = coordinate_faults(np.hstack([circles[:, :2]] * 2), space) == FINE
    is_valid &= np.isfinite(circles[:, 2]) & (circles[:, 2] >= 0)
    is_circle[is_circle] = is_valid
    return is_circle, circles if is_valid.all() else circles[is_valid]


def _distinct_regions(texts: pa.Array, space: Space) -> tuple[np.ndarray, list[_Part], dict[int, InvalidInput]]:
    """(number of the region of each text among these, the regions in parts, errors by text)."""
    kinds, boxes, polygons = _polygons(texts, space)
    box_rows, polygon_rows, unread = (np.flatnonzero(kinds == kind) for kind in (BOX, POLYGON, UNREAD))
    n_read = len(box_rows) + len(polygon_rows)
    numbers = np.empty(len(texts), np.int64)
    numbers[np.concatenate([box_rows, polygon_rows])] = np.arange(n_read)
    of_unread, part, errors = _read_one_by_one(texts.take(pa.array(unread)).to_pylist(), space)
    numbers[unread] = np.where(of_unread == NO_REGION, NO_REGION, of_unread + n_read)
    parts = [_part_of_boxes(boxes[box_rows]), _part_of_polygons(polygons, boxes[polygon_rows]), part]
    return numbers, parts, {int(unread[i]): error for i, error in errors.items()}


def _polygons(texts: pa.Array, space: Space) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(kind of each text, float64[n,4] bounds where it is not UNREAD, object[k] geometries where it is POLYGON)."""
    raw, offsets = string_buffers(texts)
    used = raw[offsets[0] : offsets[-1]]
    n_brackets = int(np.count_nonzero(used == ord("[")))  # a ring has at least two, two numbers have one
    numbers = Numbers.room_for(len(used), 2 * n_brackets, n_brackets)
    first_rings, is_read = np.empty(len(texts) + 1, np.int64), np.empty(len(texts), np.bool_)
    read_polygons(raw, offsets, numbers, first_rings, is_read)
    positions, rings = numbers.values().reshape(-1, 2), numbers.rings[: first_rings[-1] + 1]
    corners, starts = np.empty((len(positions) + len(rings) - 1, 2)), np.empty(len(rings), np.int64)
    corners = corners[: close_rings(positions, rings, corners, starts)]
    kinds, boxes = np.empty(len(texts), np.uint8), np.empty((len(texts), 4))
    survey_polygons(corners, starts, first_rings, space.planar, kinds, boxes)
    polygons = np.flatnonzero(kinds == POLYGON)
    geometries = _geometries(corners, starts, first_rings, polygons)
    is_valid = shapely.is_valid(geometries)
    kinds[polygons[~is_valid]] = UNREAD
    return kinds, boxes, geometries[is_valid]


def _geometries(corners: np.ndarray, starts: np.ndarray, first_rings: np.ndarray, polygons: np.ndarray) -> np.ndarray:
    """object[k]: the geometries of these polygons; the first ring of each is its border, the others are holes."""
    of_ring = np.repeat(np.arange(len(first_rings) - 1), np.diff(first_rings))
    is_wanted = np.isin(of_ring, polygons)
    of_corner = np.repeat(np.arange(len(of_ring)), np.diff(starts))
    is_own = is_wanted[of_corner]
    if not is_own.any():
        return np.empty(0, object)
    # shapely counts rings and polygons from 0 without gaps
    nth_ring, nth_polygon = np.cumsum(is_wanted) - 1, np.searchsorted(polygons, of_ring[is_wanted])
    made = shapely.linearrings(corners[is_own], indices=nth_ring[of_corner[is_own]])
    return np.asarray(shapely.polygons(made, indices=nth_polygon))


def _part_of_circles(circles: np.ndarray, space: Space) -> _Part:
    boxes, starts = circle_boxes(circles, space.planar)
    n = len(circles)
    return _Part(boxes, np.diff(starts), np.zeros(n, bool), circles, np.full(n, None, object))


def _part_of_boxes(boxes: np.ndarray) -> _Part:
    n = len(boxes)
    return _Part(boxes, np.ones(n, np.int64), np.ones(n, bool), np.zeros((n, 3)), np.full(n, None, object))


def _part_of_polygons(geometries: np.ndarray, bounds: np.ndarray) -> _Part:
    n = len(geometries)
    return _Part(bounds, np.ones(n, np.int64), np.zeros(n, bool), np.zeros((n, 3)), geometries)


def _part_of_regions(regions: Sequence[Region], space: Space) -> _Part:
    n, boxes = len(regions), [region.boxes(space) for region in regions]
    is_box = np.array([region.is_box for region in regions], bool)
    circles, geometries = np.zeros((n, 3)), np.full(n, None, object)
    circles[~is_box], geometries[~is_box] = ShapeColumns.of([region for region in regions if not region.is_box])
    return _Part(
        np.concatenate([np.empty((0, 4)), *boxes]),
        np.array([len(own) for own in boxes], np.int64),
        is_box,
        circles,
        geometries,
    )


@kernel
def close_rings(positions, rings, out_corners, out_starts):
    """Copy the rings, with the first position repeated at the end of a ring that is not closed; return the size."""
    n = 0
    out_starts[0] = 0
    for ring in range(len(rings) - 1):
        first, stop = rings[ring], rings[ring + 1]
        for i in range(first, stop):
            out_corners[n] = positions[i]
            n += 1
        if positions[first, 0] != positions[stop - 1, 0] or positions[first, 1] != positions[stop - 1, 1]:
            out_corners[n] = positions[first]
            n += 1
        out_starts[ring + 1] = n
    return n


@kernel
def survey_polygons(corners, starts, first_rings, is_planar, out_kinds, out_bounds):
    """Write the kind of each polygon and the bounds of its first ring. A polygon without rings is UNREAD."""
    for row in range(len(out_kinds)):
        first_ring, last_ring = first_rings[row], first_rings[row + 1]
        kind = POLYGON if first_ring < last_ring else UNREAD
        for ring in range(first_ring, last_ring):
            first, stop = starts[ring], starts[ring + 1]
            if stop - first < 4 or not (is_planar or is_inside_the_map(corners, first, stop)):
                kind = UNREAD
        if kind == POLYGON:
            first, stop = starts[first_ring], starts[first_ring + 1]
            box = out_bounds[row]
            box[:2] = corners[first]
            box[2:] = corners[first]
            for i in range(first, stop):
                for axis in range(2):
                    box[axis] = min(box[axis], corners[i, axis])
                    box[axis + 2] = max(box[axis + 2], corners[i, axis])
            if last_ring == first_ring + 1 and is_box_of(corners, first, stop, box):
                kind = BOX
        out_kinds[row] = kind


@kernel
def is_inside_the_map(corners, first, stop):
    """Whether a ring neither touches the border of -180..180, -90..90 nor has a step of more than 180 degrees."""
    for i in range(first, stop):
        if not (abs(corners[i, 0]) < 180.0 and abs(corners[i, 1]) < 90.0):
            return False
        if i > first and abs(corners[i, 0] - corners[i - 1, 0]) > 180.0:
            return False
    return True


@kernel
def is_box_of(corners, first, stop, box):
    """Whether a closed ring is the border of `box`, its bounds: as `antimeridian.is_rectangle`."""
    if stop - first != 5:
        return False
    is_seen = np.zeros(4, np.bool_)
    for i in range(first, stop):
        x, y = corners[i, 0], corners[i, 1]
        if i > first and x != corners[i - 1, 0] and y != corners[i - 1, 1]:
            return False
        is_corner = False
        for k in range(4):
            if x == box[k // 2 * 2] and y == box[1 + k % 2 * 2]:
                is_seen[k] = is_corner = True
        if not is_corner:
            return False
    return bool(is_seen.all())
