"""How polygons are stored for the tests of shape_arrays.py: their corners, grids and slabs, and back to geometries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import shapely

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.geo.shapes.arrays import (
    BLOCK_HEAD,
    BORDER,
    CELLS_PER_WORD,
    CIRCLE,
    FIRST_CORNER,
    FREE,
    INSIDE,
    IS_MULTI,
    N_CORNERS,
    N_ENTRIES,
    N_RINGS,
    OUTSIDE,
    SIDE,
    SLABS,
    UNKNOWN,
    ShapeArrays,
    edges_hold_point,
    part_of_bounds,
    slab_starts,
)

LEAST_SIDE, MOST_SIDE = 8, 128
CELLS_PER_CORNER = 8  # two bytes for each corner, which has 16 itself
CORNERS_PER_SLAB = 2
ENTRIES_PER_CORNER = 2  # beyond the first: an edge may reach into many slabs
MARGIN = 1.0 / 64.0
"""A cell counts as touched by edges that pass it within this share of its size. Rounding moves an edge and the border
of a cell by less than 2**-14 of a cell: a cell measures at least 2**-36 of the coordinates."""
SMALLEST_CELL = 2.0**-36


class Rings(NamedTuple):
    """The rings of polygons, one after the other."""

    coordinates: np.ndarray  # float64[m,2]  each ring ends with its first corner
    starts: np.ndarray  # int64[r+1]   the coordinates of each ring
    is_shell: np.ndarray  # bool[r]      whether a ring is the outline of a part; its holes follow
    polygons: np.ndarray  # int64[k+1]   the rings of each polygon
    is_multi: np.ndarray  # bool[k]      whether it is a MultiPolygon


def rings_of(geometries: np.ndarray) -> Rings:
    """The rings of Polygons and MultiPolygons. Heights are left out."""
    k = len(geometries)
    is_multi = shapely.get_type_id(geometries) == shapely.GeometryType.MULTIPOLYGON
    if not is_multi.any() and not shapely.get_num_interior_rings(geometries).any():
        # One ring each. Objects for parts and rings would take 15 of 50 us for a polygon alone.
        coordinates = shapely.get_coordinates(geometries)
        starts = starts_of(shapely.get_num_coordinates(geometries))
        return Rings(coordinates, starts, np.ones(k, np.bool_), np.arange(k + 1), is_multi)
    parts, polygon_of_part = shapely.get_parts(geometries, return_index=True)
    rings, part_of_ring = shapely.get_rings(parts, return_index=True)
    is_shell = np.ones(len(rings), np.bool_)
    is_shell[1:] = part_of_ring[1:] != part_of_ring[:-1]
    polygons = starts_of(np.bincount(polygon_of_part[part_of_ring], minlength=k))
    starts = starts_of(shapely.get_num_coordinates(rings))
    return Rings(shapely.get_coordinates(rings), starts, is_shell, polygons, is_multi)


def geometries_of(rings: Rings) -> np.ndarray:
    """object[k]: the Polygons and MultiPolygons of these rings."""
    shells = starts_of(rings.is_shell)
    part_starts = np.append(np.flatnonzero(rings.is_shell), len(rings.is_shell))
    offsets = (rings.starts, part_starts, shells[rings.polygons])
    geometries = shapely.from_ragged_array(shapely.GeometryType.MULTIPOLYGON, rings.coordinates, offsets)
    return np.asarray(np.where(rings.is_multi, geometries, shapely.get_geometry(geometries, 0)))


def with_polygons(shapes: ShapeArrays, numbers: np.ndarray, geometries: np.ndarray, ends: np.ndarray) -> ShapeArrays:
    """The arrays with polygons of these numbers. `ends`, int64[2], is how many words and corners are in use; it grows.

    The words and corners are replaced if they have no room. Heads and blocks have room for the numbers already.
    """
    rings = rings_of(geometries)
    plans = np.empty((len(numbers), 5), np.int64)
    _plan_blocks(shapes.heads, rings, numbers, plans, ends)
    words, corners = grown(shapes.words, int(ends[0])), grown(shapes.corners, 2 * int(ends[1]))
    if words is not shapes.words or corners is not shapes.corners:
        shapes = shapes._replace(words=words, corners=corners)
    _fill_blocks(shapes, rings, numbers, plans)
    return shapes


@kernel
def _plan_blocks(heads, rings, numbers, plans, ends):
    """Write the head of each polygon, and its plan: where its words and corners start, grid side, slabs, entries."""
    for k in range(len(numbers)):
        first, stop = rings.starts[rings.polygons[k]], rings.starts[rings.polygons[k + 1]]
        head, n = heads[numbers[k]], stop - first
        climb = _write_bounds(head, rings.coordinates, first, stop)
        height = head[3] - head[1]
        side = LEAST_SIDE
        while side < MOST_SIDE and side * side < CELLS_PER_CORNER * n:
            side *= 2
        slabs = n // CORNERS_PER_SLAB
        if climb * slabs > ENTRIES_PER_CORNER * n * height:
            slabs = max(int(ENTRIES_PER_CORNER * n * (height / climb)), 1)
        head[4], head[5] = _parts_per_unit(head[0], head[2], side), _parts_per_unit(head[1], head[3], side)
        head[6] = _parts_per_unit(head[1], head[3], slabs)
        side = side if head[4] > 0.0 and head[5] > 0.0 else 0
        slabs = slabs if head[6] > 0.0 else 1
        entries = 0
        for ring in range(rings.polygons[k], rings.polygons[k + 1]):
            for i in range(rings.starts[ring], rings.starts[ring + 1] - 1):
                ay, by = rings.coordinates[i, 1], rings.coordinates[i + 1, 1]
                entries += part_of_bounds(max(ay, by), head[1], head[6], slabs) + 1
                entries -= part_of_bounds(min(ay, by), head[1], head[6], slabs)
        plans[k, 0], plans[k, 1], plans[k, 2], plans[k, 3], plans[k, 4] = ends[0], ends[1], side, slabs, entries
        ends[0] += block_length(side, slabs, entries, rings.polygons[k + 1] - rings.polygons[k])
        ends[1] += n


@kernel
def block_length(side, slabs, entries, rings):
    """The number of words of a polygon."""
    return BLOCK_HEAD + side * side // CELLS_PER_WORD + slabs + 1 + entries + rings


@kernel
def _write_bounds(head, coordinates, first, stop):
    """Write the bounds of the coordinates to a head; return the sum of their steps in y."""
    head[0] = head[1] = np.inf
    head[2] = head[3] = -np.inf
    head[7] = climb = 0.0
    for i in range(first, stop):
        x, y = coordinates[i, 0], coordinates[i, 1]
        head[0], head[1] = min(head[0], x), min(head[1], y)
        head[2], head[3] = max(head[2], x), max(head[3], y)
        climb += abs(y - coordinates[max(i - 1, first), 1])
    return climb


@kernel
def _parts_per_unit(low, high, count):
    """`count` / (high - low), or 0 where the parts would be so small or so large that rounding matters."""
    width = high - low
    largest = max(abs(low), abs(high))
    if count < 2 or not (1e-140 < width and width < 1e140 and width > count * largest * SMALLEST_CELL):
        return 0.0
    return count / width


@kernel
def _fill_blocks(shapes, rings, numbers, plans):
    """Write the words and corners of each polygon."""
    for k in range(len(numbers)):
        block, words = plans[k, 0], shapes.words
        first_ring, stop_ring = rings.polygons[k], rings.polygons[k + 1]
        first, stop = rings.starts[first_ring], rings.starts[stop_ring]
        words[block + FIRST_CORNER], words[block + N_CORNERS] = plans[k, 1], stop - first
        words[block + N_RINGS], words[block + IS_MULTI] = stop_ring - first_ring, rings.is_multi[k]
        words[block + SIDE], words[block + SLABS], words[block + N_ENTRIES] = plans[k, 2], plans[k, 3], plans[k, 4]
        lengths = block + block_length(plans[k, 2], plans[k, 3], plans[k, 4], 0)
        for ring in range(first_ring, stop_ring):
            length = rings.starts[ring + 1] - rings.starts[ring]
            words[lengths + ring - first_ring] = 2 * length + rings.is_shell[ring]
        for i in range(first, stop):
            shapes.corners[2 * (plans[k, 1] + i - first)] = rings.coordinates[i, 0]
            shapes.corners[2 * (plans[k, 1] + i - first) + 1] = rings.coordinates[i, 1]
        shapes.blocks[numbers[k]] = block
        _fill_slabs(shapes, numbers[k], lengths)
        _fill_grid(shapes, numbers[k], lengths)


@kernel
def _fill_slabs(shapes, number, lengths):
    """Write the lists of the slabs. The starts count down from the end of each list while it is filled backwards."""
    words, head, block = shapes.words, shapes.heads[number], shapes.blocks[number]
    slabs, starts = np.int64(words[block + SLABS]), slab_starts(words, block)
    lists = starts + slabs + 1
    words[starts:lists] = 0
    for step in range(2):
        edge = np.int64(0)
        for ring in range(np.int64(words[block + N_RINGS])):
            for _ in range(np.int64(words[lengths + ring]) // 2 - 1):
                at = 2 * (np.int64(words[block + FIRST_CORNER]) + edge)
                low, high = shapes.corners[at + 1], shapes.corners[at + 3]
                low, high = min(low, high), max(low, high)
                first = part_of_bounds(low, head[1], head[6], slabs)
                last = part_of_bounds(high, head[1], head[6], slabs)
                for slab in range(first, last + 1):
                    if step == 0:
                        words[starts + slab] += np.uint32(1)
                    else:
                        words[starts + slab] -= np.uint32(1)
                        words[lists + np.int64(words[starts + slab])] = edge
                edge += 1
            edge += 1
        if step == 0:
            for slab in range(1, slabs + 1):
                words[starts + slab] += words[starts + slab - 1]


@kernel
def _fill_grid(shapes, number, lengths):
    """Write the states of all cells: BORDER where an edge passes, else the state of a neighbour or of the middle."""
    words, head, block = shapes.words, shapes.heads[number], shapes.blocks[number]
    side = np.int64(words[block + SIDE])
    grid = block + BLOCK_HEAD
    words[grid : grid + side * side // CELLS_PER_WORD] = 0
    if side == 0:
        return
    at = 2 * np.int64(words[block + FIRST_CORNER])
    for ring in range(np.int64(words[block + N_RINGS])):
        for _ in range(np.int64(words[lengths + ring]) // 2 - 1):
            _mark_edge(shapes, number, at, side)
            at += 2
        at += 2
    for cell in range(side * side):
        if _state(words, grid, cell) != UNKNOWN:
            continue
        state = _state(words, grid, cell - 1) if cell % side else BORDER
        if state == BORDER:
            state = _state(words, grid, cell - side) if cell >= side else BORDER
        if state == BORDER:
            x, y = (cell % side + 0.5) / head[4] + head[0], (cell // side + 0.5) / head[5] + head[1]
            state = INSIDE if edges_hold_point(shapes, number, x, y) else OUTSIDE
        _set_state(words, grid, cell, state)


@kernel
def _mark_edge(shapes, number, at, side):
    """Set the state of all cells that an edge passes, within the margin, to BORDER."""
    head, corners, block = shapes.heads[number], shapes.corners, shapes.blocks[number]
    ax, ay, bx, by = corners[at], corners[at + 1], corners[at + 2], corners[at + 3]
    first_row = part_of_bounds(min(ay, by), head[1], head[5], side)
    last_row = part_of_bounds(max(ay, by), head[1], head[5], side)
    for row in range(first_row, last_row + 1):
        start_x, stop_x = ax, bx
        if first_row < last_row:
            # The part of the edge in this row: first as shares of the edge.
            start = ((row - MARGIN) / head[5] + head[1] - ay) / (by - ay)
            stop = ((row + 1.0 + MARGIN) / head[5] + head[1] - ay) / (by - ay)
            start_x = ax + min(max(start, 0.0), 1.0) * (bx - ax)
            stop_x = ax + min(max(stop, 0.0), 1.0) * (bx - ax)
        low, high = min(start_x, stop_x) - MARGIN / head[4], max(start_x, stop_x) + MARGIN / head[4]
        first = row * side + part_of_bounds(low, head[0], head[4], side)
        last = row * side + part_of_bounds(high, head[0], head[4], side)
        for cell in range(first, last + 1):
            _set_state(shapes.words, block + BLOCK_HEAD, cell, BORDER)


@kernel
def _state(words, grid, cell):
    return (np.int64(words[grid + cell // CELLS_PER_WORD]) >> (2 * (cell % CELLS_PER_WORD))) & 3


@kernel
def _set_state(words, grid, cell, state):
    """Add the bits of a state. The cell is UNKNOWN, or `state` is BORDER, which has all bits."""
    words[grid + cell // CELLS_PER_WORD] |= np.uint32(state << (2 * (cell % CELLS_PER_WORD)))


def room_of(shapes: ShapeArrays, numbers: np.ndarray) -> np.ndarray:
    """int64[3]: the words, corners and rings of the polygons among these shapes."""
    return np.array(_count_room(shapes.blocks, shapes.words, numbers))


@kernel
def _count_room(blocks, words, numbers):
    n_words = n_corners = n_rings = 0
    for k in range(len(numbers)):
        block = blocks[numbers[k]]
        if block >= 0:
            n_words += _stored_length(words, block)
            n_corners += np.int64(words[block + N_CORNERS])
            n_rings += np.int64(words[block + N_RINGS])
    return n_words, n_corners, n_rings


@kernel
def _stored_length(words, block):
    side, slabs = np.int64(words[block + SIDE]), np.int64(words[block + SLABS])
    return block_length(side, slabs, np.int64(words[block + N_ENTRIES]), np.int64(words[block + N_RINGS]))


def stored_rings(shapes: ShapeArrays, numbers: np.ndarray) -> Rings:
    """The rings of these polygons."""
    _, n_corners, n_rings = room_of(shapes, numbers).tolist()
    flags, starts = np.empty(n_rings, np.bool_), np.zeros(n_rings + 1, np.int64)
    polygons, is_multi = np.zeros(len(numbers) + 1, np.int64), np.empty(len(numbers), np.bool_)
    rings = Rings(np.empty((n_corners, 2)), starts, flags, polygons, is_multi)
    _copy_rings(shapes, numbers, rings)
    return rings


@kernel
def _copy_rings(shapes, numbers, rings):
    words = shapes.words
    ring = corner = 0
    for k in range(len(numbers)):
        block = shapes.blocks[numbers[k]]
        rings.is_multi[k] = words[block + IS_MULTI] > 0
        n_rings = np.int64(words[block + N_RINGS])
        lengths = block + _stored_length(words, block) - n_rings
        for i in range(n_rings):
            length = np.int64(words[lengths + i])
            rings.is_shell[ring] = length & 1
            rings.starts[ring + 1] = rings.starts[ring] + length // 2
            ring += 1
        rings.polygons[k + 1] = ring
        at = 2 * np.int64(words[block + FIRST_CORNER])
        for _ in range(np.int64(words[block + N_CORNERS])):
            rings.coordinates[corner, 0], rings.coordinates[corner, 1] = shapes.corners[at], shapes.corners[at + 1]
            at += 2
            corner += 1


def compacted(shapes: ShapeArrays, size: int) -> ShapeArrays:
    """A copy of the first `size` shapes, without holes and without spare room."""
    blocks = shapes.blocks[:size].copy()
    n_words, n_corners, _ = room_of(shapes, np.flatnonzero(blocks >= 0).astype(np.int32)).tolist()
    words, corners = np.empty(n_words, np.uint32), np.empty(2 * n_corners)
    copy = ShapeArrays(shapes.planar, blocks, shapes.heads[:size].copy(), words, corners)
    _copy_blocks(shapes, copy)
    return copy


@kernel
def _copy_blocks(shapes, copy):
    n_words = n_corners = 0
    for number in range(len(copy.blocks)):
        block = shapes.blocks[number]
        if block < 0:
            continue
        length, count = _stored_length(shapes.words, block), np.int64(shapes.words[block + N_CORNERS])
        first = 2 * np.int64(shapes.words[block + FIRST_CORNER])
        for k in range(length):
            copy.words[n_words + k] = shapes.words[block + k]
        for k in range(2 * count):
            copy.corners[2 * n_corners + k] = shapes.corners[first + k]
        copy.words[n_words + FIRST_CORNER] = n_corners
        copy.blocks[number] = n_words
        n_words += length
        n_corners += count


@kernel
def first_damaged(shapes):
    """The number of the first stored shape that a test could not read, or -1."""
    for number in range(len(shapes.blocks)):
        block = shapes.blocks[number]
        if block == CIRCLE or block == FREE:
            continue
        if block < 0 or block + BLOCK_HEAD > len(shapes.words) or _has_wrong_sizes(shapes, block):
            return number
        if _has_wrong_lists(shapes.words, block) or _has_wrong_corners(shapes, number):
            return number
    return -1


@kernel
def _has_wrong_sizes(shapes, block):
    words = shapes.words
    side, slabs = np.int64(words[block + SIDE]), np.int64(words[block + SLABS])
    if side > MOST_SIDE or side % CELLS_PER_WORD % LEAST_SIDE or slabs < 1 or words[block + N_RINGS] < 1:
        return True
    last_corner = np.int64(words[block + FIRST_CORNER]) + np.int64(words[block + N_CORNERS])
    return block + _stored_length(words, block) > len(words) or 2 * last_corner > len(shapes.corners)


@kernel
def _has_wrong_lists(words, block):
    """Whether a slab's list leaves the block or names an edge that is not there."""
    slabs, starts = np.int64(words[block + SLABS]), slab_starts(words, block)
    n_entries = np.int64(words[block + N_ENTRIES])
    if words[starts] != 0 or words[starts + slabs] != n_entries:
        return True
    for k in range(starts, starts + slabs):
        if words[k] > words[k + 1]:
            return True
    for k in range(starts + slabs + 1, starts + slabs + 1 + n_entries):
        if np.int64(words[k]) > np.int64(words[block + N_CORNERS]) - 2:
            return True
    return False


@kernel
def _has_wrong_corners(shapes, number):
    """Whether the rings or the head of a polygon do not fit its corners."""
    words, corners, head, block = shapes.words, shapes.corners, shapes.heads[number], shapes.blocks[number]
    n_rings, at = np.int64(words[block + N_RINGS]), 2 * np.int64(words[block + FIRST_CORNER])
    stop = at + 2 * np.int64(words[block + N_CORNERS])
    lengths = block + _stored_length(words, block) - n_rings
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    for ring in range(n_rings):
        length = np.int64(words[lengths + ring])
        last = at + length - length % 2 - 2
        if length < 8 or last >= stop or (ring == 0 and length % 2 == 0):
            return True
        if corners[at] != corners[last] or corners[at + 1] != corners[last + 1]:
            return True
        for k in range(at, last + 2, 2):
            if not (abs(corners[k]) < np.inf and abs(corners[k + 1]) < np.inf):
                return True
            low_x, low_y = min(low_x, corners[k]), min(low_y, corners[k + 1])
            high_x, high_y = max(high_x, corners[k]), max(high_y, corners[k + 1])
        at = last + 2
    if at != stop or low_x != head[0] or low_y != head[1] or high_x != head[2] or high_y != head[3]:
        return True
    side = np.int64(words[block + SIDE])
    if side and (head[4] != _parts_per_unit(low_x, high_x, side) or head[5] != _parts_per_unit(low_y, high_y, side)):
        return True
    slabs = np.int64(words[block + SLABS])
    return slabs > 1 and head[6] != _parts_per_unit(low_y, high_y, slabs)
