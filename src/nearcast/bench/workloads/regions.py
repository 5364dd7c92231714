"""Circles and polygons instead of boxes: a share of the drawn boxes becomes circles of the same area, or polygons.

The centre of a circle is that of its box. A polygon has 5 to 30 corners around the centre of its box; some polygons
have a hole, and some are two or three polygons side by side. Boxes of a single point, and of the whole space, stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import shapely

from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of, take
from nearcast.bench.workloads.corpus import DrawnItems
from nearcast.bench.workloads.places import KM_PER_DEGREE
from nearcast.bench.workloads.random_numbers import DrawNumbers, begin, stream_key, unit, units, whole_numbers
from nearcast.bench.workloads.subscriptions import source_numbers
from nearcast.bench.workloads.workload import Workload
from nearcast.geo.circle import CircleRegion
from nearcast.geo.polygon import PolygonRegion
from nearcast.geo.region import Region
from nearcast.geo.shapes.columns import ShapeColumns
from nearcast.geo.space import LONLAT, Space
from nearcast.model import NO_SHAPE, RowBatch

_CORNERS = (5, 30)
_HOLED, _SEVERAL = 0.2, 0.1  # shares of the polygons
_MOST_PARTS = 3
_HOLE_SIZE, _PART_SIZE = 0.4, 0.9  # of the polygon around it; of its share of the box
_EDGE_DEGREES = 1.0  # polygons nearer to the antimeridian or a pole may need several boxes


class Regions(NamedTuple):
    """The circles and polygons of drawn subscriptions, by position."""

    positions: np.ndarray  # int64[k]  ascending
    regions: Sequence[Region]


NO_REGIONS = Regions(np.empty(0, np.int64), ())


def draw_regions(workload: Workload, drawn: DrawnItems, first: int) -> Regions:
    """The regions of drawn subscriptions that begin with number `first`. Equal draws have equal regions."""
    if workload.circle_share == workload.polygon_share == 0 or not drawn.size:
        return NO_REGIONS
    sources = source_numbers(workload, first, first + drawn.size)
    kind = units(stream_key(workload.seed, "regions"), sources)
    usual = _is_usual(drawn.boxes, workload.geometry)
    is_circle = usual & (kind < workload.circle_share)
    is_polygon = usual & ~is_circle & (kind < workload.circle_share + workload.polygon_share)
    made = np.full(drawn.size, None, object)
    made[is_circle] = _objects(circles_like(drawn.boxes[is_circle], workload.geometry))
    made[is_polygon] = _objects(_polygons(workload, drawn.boxes[is_polygon], sources[is_polygon]))
    positions = np.flatnonzero(is_circle | is_polygon)
    return Regions(positions, made[positions].tolist())


def _is_usual(boxes: np.ndarray, space: Space) -> np.ndarray:
    """Whether each box is neither without width or height nor as wide and high as the space."""
    sides = boxes[:, 2:] - boxes[:, :2]
    whole = np.array(space.bounds[2:]) - np.array(space.bounds[:2])
    return np.asarray((sides > 0).all(axis=1) & (sides < whole).any(axis=1))


def _objects(regions: Sequence[Region]) -> np.ndarray:
    out = np.empty(len(regions), object)
    out[:] = regions
    return out


def circles_like(boxes: np.ndarray, space: Space) -> list[Region]:
    """For each box the circle of the same centre and area."""
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    sides = boxes[:, 2:] - boxes[:, :2]
    if not space.planar:
        sides = sides * KM_PER_DEGREE
        sides[:, 0] *= np.cos(np.radians(middles[:, 1]))
    radii = np.sqrt(sides.prod(axis=1) / math.pi)
    rows = zip(middles[:, 0].tolist(), middles[:, 1].tolist(), radii.tolist(), strict=True)
    return [CircleRegion(x, y, radius, space.planar) for x, y, radius in rows]


# -- polygons


def _polygons(workload: Workload, boxes: np.ndarray, sources: np.ndarray) -> list[Region]:
    def each(name: str) -> np.ndarray:
        return units(stream_key(workload.seed, f"polygons/{name}"), sources)

    several = each("several") < _SEVERAL
    parts = np.where(several, 2 + (each("parts") * (_MOST_PARTS - 1)).astype(np.int64), 1)
    counts = whole_numbers(stream_key(workload.seed, "polygons/counts"), sources, *_CORNERS)
    corners = np.empty((int(counts.sum()), 2))
    _draw_corners(counts, DrawNumbers(stream_key(workload.seed, "polygons/corners"), sources), corners)
    geometries = _geometries(boxes, parts, each("holed") < _HOLED, corners, starts_of(counts))
    return [PolygonRegion(geometry, workload.geometry.planar) for geometry in geometries.tolist()]


@kernel
def _draw_corners(counts, draws, out_corners):
    """Corners around (0, 0), one in each of equal sectors, anticlockwise and within -1 .. 1."""
    state = np.zeros(1, np.uint64)
    at = 0
    for i in range(len(counts)):
        begin(state, draws.key, draws.indices[i])
        for k in range(counts[i]):
            angle = 2.0 * math.pi * (k + 0.9 * unit(state)) / counts[i]
            reach = 0.6 + 0.4 * unit(state)
            out_corners[at, 0] = reach * math.cos(angle)
            out_corners[at, 1] = reach * math.sin(angle)
            at += 1


def _geometries(
    boxes: np.ndarray, parts: np.ndarray, is_holed: np.ndarray, corners: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """The polygon in each box. Parts lie side by side, each with the same corners in its share of the box."""
    numbers = np.repeat(np.arange(len(parts)), parts)  # of the polygon that each part belongs to
    nth = np.arange(len(numbers)) - starts_of(parts)[numbers]
    halves = (boxes[:, 2:] - boxes[:, :2])[numbers] / 2
    halves[:, 0] /= parts[numbers]
    middles = boxes[numbers, :2] + halves
    middles[:, 0] += 2 * nth * halves[:, 0]
    halves[parts[numbers] > 1] *= _PART_SIZE
    with_hole = np.flatnonzero(is_holed[numbers])
    shells = _rings(middles, halves, numbers, corners, starts)
    holes = _rings(middles[with_hole], _HOLE_SIZE * halves[with_hole], numbers[with_hole], corners, starts)
    owners = np.concatenate([np.arange(len(numbers)), with_hole])
    order = np.argsort(owners, kind="stable")  # the shell before the hole
    polygons = np.asarray(shapely.polygons(np.concatenate([shells, holes])[order], indices=owners[order]))
    made = np.empty(len(parts), object)
    made[parts == 1] = polygons[parts[numbers] == 1]
    if (parts > 1).any():
        joined = shapely.multipolygons(polygons[parts[numbers] > 1], indices=_dense(numbers[parts[numbers] > 1]))
        made[parts > 1] = joined
    return made


def _rings(
    middles: np.ndarray, halves: np.ndarray, numbers: np.ndarray, corners: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """A closed ring of the corners of each number, scaled by `halves` and moved to `middles`."""
    counts = np.diff(starts)[numbers]
    ring = np.repeat(np.arange(len(numbers)), counts)
    nth = np.arange(len(ring)) - starts_of(counts)[ring]
    placed = middles[ring] + halves[ring] * corners[starts[numbers[ring]] + nth]
    return np.asarray(shapely.linearrings(placed, indices=ring)) if len(ring) else np.empty(0, object)


def _dense(numbers: np.ndarray) -> np.ndarray:
    return np.unique(numbers, return_inverse=True)[1]


# -- regions in rows and tables


def with_regions(batch: RowBatch, regions: Regions, first: int, space: Space) -> tuple[RowBatch, ShapeColumns]:
    """The rows, each repeated for every box of its region, and the shapes that they refer to."""
    boxes, starts = _covering_boxes(regions.regions, space)
    last = int(batch.owner_ids[-1]) - first + 1 if batch.size else 0
    number_of = np.full(last, NO_SHAPE, np.int64)
    number_of[regions.positions] = np.arange(len(regions.positions))
    numbers = number_of[batch.owner_ids - first]
    counts = np.where(numbers == NO_SHAPE, 1, np.diff(starts)[numbers] if len(boxes) else 1)
    rows = np.repeat(np.arange(batch.size), counts)
    nth = np.arange(len(rows)) - starts_of(counts)[rows]
    numbers = numbers[rows]
    is_shaped = numbers != NO_SHAPE
    own = batch.boxes[rows]
    own[is_shaped] = boxes[starts[numbers[is_shaped]] + nth[is_shaped]]
    terms, term_starts = take(batch.terms, batch.term_starts, rows)
    not_terms, not_starts = take(batch.not_terms, batch.not_starts, rows)
    made = RowBatch(
        batch.owner_ids[rows],
        terms,
        term_starts,
        not_terms,
        not_starts,
        own,
        numbers.astype(np.int32),
        batch.expires[rows],
    )
    return made, ShapeColumns.of(regions.regions)


def _covering_boxes(regions: Sequence[Region], space: Space) -> tuple[np.ndarray, np.ndarray]:
    """(boxes of all regions, where those of each start). Polygons of one part take 20 us less: their bounds do."""
    made = []
    for region in regions:
        simple = isinstance(region, PolygonRegion) and region.geometry.geom_type == "Polygon"
        bounds = np.array([region.geometry.bounds]) if isinstance(region, PolygonRegion) and simple else None
        is_inner = bounds is not None and (space.planar or _is_inner(bounds[0]))
        made.append(bounds if bounds is not None and is_inner else region.boxes(space))
    counts = np.array([len(each) for each in made], np.int64)
    return np.concatenate(made) if made else np.empty((0, 4)), starts_of(counts)


def _is_inner(bounds: np.ndarray) -> bool:
    edge = np.array(LONLAT.bounds) + _EDGE_DEGREES * np.array([1, 1, -1, -1])
    return bool((bounds[:2] > edge[:2]).all() and (bounds[2:] < edge[2:]).all())


def region_texts(regions: Regions, boxes: np.ndarray, space: Space) -> np.ndarray:
    """The region of every subscription as a table has it, object[n]: GeoJSON, circle(...) or world."""
    points = (boxes[:, 0] == boxes[:, 2]) & (boxes[:, 1] == boxes[:, 3])
    is_world = (boxes == np.array(LONLAT.bounds)).all(axis=1) & (not space.planar)
    geometries = shapely.box(*boxes.T)
    geometries[points] = shapely.points(boxes[points, :2])
    is_shaped = np.zeros(len(boxes), bool)
    is_shaped[regions.positions] = True
    texts = np.full(len(boxes), "world", object)
    plain = ~is_shaped & ~is_world
    texts[plain] = shapely.to_geojson(geometries[plain])
    for position, region in zip(regions.positions.tolist(), regions.regions, strict=True):
        texts[position] = region_text(region)
    return texts


def region_text(region: Region) -> str:
    """A circle or polygon as text."""
    if isinstance(region, CircleRegion):
        return f"circle({region.x!r}, {region.y!r}, {region.radius!r}{'' if region.planar else 'km'})"
    if isinstance(region, PolygonRegion):
        return str(shapely.to_geojson(region.geometry))
    raise ValueError(f"not a circle or polygon: {region.describe()}")
