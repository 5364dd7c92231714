"""Exact tests of circles and polygons in kernels. They allocate nothing and take no lock.

The tests read only ShapeArrays. A head is a cache line of eight numbers:

    circle   x, y, radius, the unit vector of the centre (three numbers), the squared chord of the radius, unused
    polygon  xmin, ymin, xmax, ymax, cells per unit of x, cells per unit of y, slabs per unit of y, unused

A polygon also has a block of words: the fields FIRST_CORNER to N_ENTRIES; a grid of side x side cells, two bits each;
the starts of the slabs' lists, one more than slabs; the lists; and the lengths of the rings. Cells divide the bounds
into equal parts; a cell without an edge is INSIDE or OUTSIDE and decides at once. Slabs divide the bounds by y; the
list of a slab names the edges that reach into it. Edge k runs from corner k of the polygon to corner k + 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.pointers import unsafe_floats, unsafe_int64, unsafe_lines, unsafe_uint8, unsafe_uint32
from nearcast.geo.distance import EARTH_RADIUS_KM, RADIANS, point_box_euclid, point_box_km
from nearcast.geo.shapes.orientation import segment_meets_box, side_of_line

CIRCLE, FREE = -1, -2
HEAD = 8
FIRST_CORNER, N_CORNERS, N_RINGS, IS_MULTI, SIDE, SLABS, N_ENTRIES, BLOCK_HEAD = range(8)
UNKNOWN, INSIDE, OUTSIDE, BORDER = range(4)
CELLS_PER_WORD = 16

SHARE = 1e-9
"""The squared distance decides if it differs from the squared radius by more than this share, which is 0.5 um for a
radius of 1 km. Squares and chords of radii err by less than 1e-14 of themselves."""
CHORD_SLACK = 4e-20
"""On a sphere it must differ by this much more. The unit vectors err by e < 4e-15 together, and so the squared chord t
by 2 e sqrt(t) + e^2 <= SHARE t + e^2 / SHARE + e^2."""

EVERYWHERE = 1e9  # a squared chord beyond all others: the whole globe


class ShapeArrays(NamedTuple):
    """What kernels read of the shapes of one space. Writers add behind what older tuples use."""

    planar: np.ndarray  # uint8[1]      whether the space is a plane
    blocks: np.ndarray  # int64[n]      where the polygon's words start; CIRCLE; or FREE
    heads: np.ndarray  # float64[n,8]
    words: np.ndarray  # uint32[...]   blocks of polygons
    corners: np.ndarray  # float64[...]  x, y of each corner; each ring ends with its first corner


def empty_shapes(planar: bool, size: int = 0) -> ShapeArrays:
    """Arrays for `size` shapes, all FREE."""
    heads, words = np.zeros((size, HEAD)), np.zeros(0, np.uint32)
    return ShapeArrays(np.array([planar], np.uint8), np.full(size, FREE), heads, words, np.zeros(0))


@kernel
def unsafe_shapes(pointers, first):
    """The arrays from `first` on as ShapeArrays (see arrays/pointers.py)."""
    return ShapeArrays(
        unsafe_uint8(pointers, first),
        unsafe_int64(pointers, first + 1),
        unsafe_lines(pointers, first + 2, HEAD),
        unsafe_uint32(pointers, first + 3),
        unsafe_floats(pointers, first + 4),
    )


@kernel
def put_circles(heads, blocks, numbers, circles, planar):
    """Write circles; a row of `circles` is x, y, radius."""
    for i in range(len(numbers)):
        number, x, y, radius = numbers[i], circles[i, 0], circles[i, 1], circles[i, 2]
        heads[number, 0], heads[number, 1], heads[number, 2] = x, y, radius
        heads[number, 3] = heads[number, 4] = heads[number, 5] = heads[number, 7] = 0.0
        if planar:
            heads[number, 6] = _squared_radius(radius)
        else:
            heads[number, 3], heads[number, 4], heads[number, 5] = unit_vector(x, y)
            heads[number, 6] = _squared_chord(radius / EARTH_RADIUS_KM)
        blocks[number] = CIRCLE


@kernel
def _squared_radius(radius):
    """The square, or NaN where it might underflow or overflow: then the distance decides alone."""
    square = radius * radius
    return square if 1e-280 < square and square < 1e300 else np.nan


@kernel
def _squared_chord(angle):
    """The squared chord of an angle. NaN near a half turn, which no point may exceed: then the distance decides."""
    if angle >= math.pi * (1.0 + SHARE):
        return EVERYWHERE
    return (2.0 * math.sin(0.5 * angle)) ** 2 if angle <= math.pi * (1.0 - SHARE) else np.nan


@lean_kernel
def locate(shapes, boxes, message, place):
    """Write to `place`, float64[4], what `shape_overlaps` needs of a message: the unit vector of the middle of its box,
    and a chord that reaches from there to all of the box, 0 for a point.
    """
    if shapes.planar[0]:
        return
    xmin, ymin, xmax, ymax = boxes[message, 0], boxes[message, 1], boxes[message, 2], boxes[message, 3]
    place[0], place[1], place[2] = unit_vector(0.5 * (xmin + xmax), 0.5 * (ymin + ymax))
    place[3] = 0.0
    if xmin != xmax or ymin != ymax:
        place[3] = 0.5 * (xmax - xmin + ymax - ymin) * RADIANS * (1.0 + SHARE)


@inline_kernel
def unit_vector(x, y):
    """The vector of a lon/lat point. Each number errs by less than 1e-15."""
    shrink = math.cos(y * RADIANS)
    return shrink * math.cos(x * RADIANS), shrink * math.sin(x * RADIANS), math.sin(y * RADIANS)


@inline_kernel
def shape_overlaps(shapes, number, boxes, message, place):
    """Whether a shape shares a point with box `message`, whose `place` is written by `locate`. FREE shapes do not.

    Inlined: the call of a function with all these arrays takes 13 ns, the test of a circle 5.
    """
    block = shapes.blocks[number]
    if block >= 0:
        return polygon_overlaps(shapes, number, boxes, message)
    return block == CIRCLE and circle_overlaps(shapes, number, boxes, message, place)


def overlapping(shapes: ShapeArrays, numbers: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """bool[k]: whether shape numbers[i] shares a point with boxes[i]."""
    out = np.zeros(len(numbers), np.bool_)
    _overlaps_each(shapes, numbers, boxes, np.zeros(4), out)
    return out


@lean_kernel
def _overlaps_each(shapes, numbers, boxes, place, out):
    """Write whether shape numbers[i] overlaps boxes[i]."""
    for i in range(len(numbers)):
        locate(shapes, boxes, i, place)
        out[i] = shape_overlaps(shapes, numbers[i], boxes, i, place)


@inline_kernel
def circle_overlaps(shapes, number, boxes, message, place):
    """Whether a circle shares a point with the box: the same as point_box_km(...) <= radius, or point_box_euclid."""
    heads = shapes.heads
    if shapes.planar[0]:
        return _planar_circle_overlaps(heads, number, boxes, message)
    x, y, z = heads[number, 3] - place[0], heads[number, 4] - place[1], heads[number, 5] - place[2]
    chord, limit = x * x + y * y + z * z, heads[number, 6]
    slack = SHARE * limit + CHORD_SLACK
    if abs(chord - limit) > slack and place[3] == 0.0:
        return chord < limit
    return _border_circle_overlaps(heads, number, boxes, message, chord, place[3])


@lean_kernel
def _border_circle_overlaps(heads, number, boxes, message, chord, reach):
    """The same for a box that is not a point, or a point near the border. A limit of NaN leaves all to the distance."""
    limit = heads[number, 6]
    if chord <= limit - (SHARE * limit + CHORD_SLACK):
        return True
    if reach > 0.0 and math.sqrt(chord) >= (math.sqrt(limit) + reach) * (1.0 + SHARE) + 1e-9:
        return False
    return point_box_km(heads[number, 0], heads[number, 1], boxes, message) <= heads[number, 2]


@lean_kernel
def _planar_circle_overlaps(heads, number, boxes, message):
    """The same as point_box_euclid(...) <= radius. A limit of NaN leaves all decisions to it."""
    x, y = heads[number, 0], heads[number, 1]
    dx = max(boxes[message, 0] - x, x - boxes[message, 2], 0.0)
    dy = max(boxes[message, 1] - y, y - boxes[message, 3], 0.0)
    square, limit = dx * dx + dy * dy, heads[number, 6]
    if square <= limit - SHARE * limit:
        return True
    if square >= limit + SHARE * limit:
        return False
    return point_box_euclid(x, y, boxes, message) <= heads[number, 2]


@inline_kernel
def polygon_overlaps(shapes, number, boxes, message):
    """Whether a polygon shares a point with the box. The grid decides for four of five points of hits on `mixed`."""
    heads, x, y = shapes.heads, boxes[message, 0], boxes[message, 1]
    if heads[number, 0] <= x and x <= heads[number, 2] and heads[number, 1] <= y and y <= heads[number, 3]:
        state = cell_state(shapes, number, x, y)
        if state == INSIDE:
            return True
        is_point = x == boxes[message, 2] and y == boxes[message, 3]
        if state == OUTSIDE and is_point and (shapes.planar[0] or (abs(x) < 180.0 and abs(y) < 90.0)):
            return False
    return _polygon_overlaps(shapes, number, boxes, message)


@lean_kernel
def _polygon_overlaps(shapes, number, boxes, message):
    """Whether a polygon shares a point with the box. In lon/lat, 180 and -180 are one meridian, and a pole is one point
    (see `with_aliases`): a box with points of that meridian or a pole is tested by all their coordinates.
    """
    xmin, ymin, xmax, ymax = boxes[message, 0], boxes[message, 1], boxes[message, 2], boxes[message, 3]
    if _polygon_meets(shapes, number, xmin, ymin, xmax, ymax):
        return True
    if shapes.planar[0]:
        return False
    heads = shapes.heads
    if (ymax == 90.0 and heads[number, 3] == 90.0) or (ymin == -90.0 and heads[number, 1] == -90.0):
        return True
    if xmax == 180.0 and heads[number, 0] == -180.0 and _polygon_meets(shapes, number, -180.0, ymin, -180.0, ymax):
        return True
    return xmin == -180.0 and heads[number, 2] == 180.0 and _polygon_meets(shapes, number, 180.0, ymin, 180.0, ymax)


@lean_kernel
def _polygon_meets(shapes, number, xmin, ymin, xmax, ymax):
    """Whether the polygon shares a point with the box. If no edge does, the box is all inside or all outside, and one
    corner decides.
    """
    heads = shapes.heads
    if not (xmax >= heads[number, 0] and heads[number, 2] >= xmin):  # also where a coordinate is NaN
        return False
    if not (ymax >= heads[number, 1] and heads[number, 3] >= ymin):
        return False
    if xmin == xmax and ymin == ymax:
        return holds_point(shapes, number, xmin, ymin)
    return holds_point(shapes, number, xmin, ymin) or _border_meets(shapes, number, xmin, ymin, xmax, ymax)


@lean_kernel
def holds_point(shapes, number, x, y):
    """Whether the point is in the polygon or on its border."""
    heads = shapes.heads
    if not (heads[number, 0] <= x and x <= heads[number, 2] and heads[number, 1] <= y and y <= heads[number, 3]):
        return False
    state = cell_state(shapes, number, x, y)
    return state == INSIDE or (state == BORDER and edges_hold_point(shapes, number, x, y))


@inline_kernel
def cell_state(shapes, number, x, y):
    """INSIDE, OUTSIDE or BORDER: what the grid of a polygon knows of a point within the bounds."""
    heads, block = shapes.heads, shapes.blocks[number]
    side = np.int64(shapes.words[block + SIDE])
    if side == 0:
        return BORDER
    column = part_of_bounds(x, heads[number, 0], heads[number, 4], side)
    row = part_of_bounds(y, heads[number, 1], heads[number, 5], side)
    cell = row * side + column
    word = np.int64(shapes.words[block + BLOCK_HEAD + cell // CELLS_PER_WORD])
    return (word >> (2 * (cell % CELLS_PER_WORD))) & 3


@inline_kernel
def part_of_bounds(value, low, scale, count):
    """The cell or slab of a coordinate, of `count`. It never falls where the coordinate grows, whatever the rounding:
    so an edge reaches into no slab but those from its lower to its upper end.
    """
    return min(max(int((value - low) * scale), 0), count - 1) if count > 1 else 0


@inline_kernel
def slab_starts(words, block):
    """Where the starts of the slabs' lists are, one more than slabs. The lists follow."""
    side = np.int64(words[block + SIDE])
    return block + BLOCK_HEAD + side * side // CELLS_PER_WORD


@inline_kernel
def slab_list(shapes, number, y):
    """(first, stop): where shapes.words lists the edges that reach into the slab of y."""
    words, block = shapes.words, shapes.blocks[number]
    slabs, starts = np.int64(words[block + SLABS]), slab_starts(words, block)
    lists, slab = starts + slabs + 1, part_of_bounds(y, shapes.heads[number, 1], shapes.heads[number, 6], slabs)
    return lists + np.int64(words[starts + slab]), lists + np.int64(words[starts + slab + 1])


@lean_kernel
def edges_hold_point(shapes, number, x, y):
    """Whether the point is on an edge, or a ray to the right of it crosses an odd number of edges.

    An edge counts its lower end and not its upper one. Rings of a valid polygon do not cross, so the parity over all
    rings is right for holes and for several parts.
    """
    corners, base = shapes.corners, np.int64(shapes.words[shapes.blocks[number] + FIRST_CORNER])
    first, stop = slab_list(shapes, number, y)
    inside = False
    for k in range(first, stop):
        at = 2 * (base + np.int64(shapes.words[k]))
        ay, by = corners[at + 1], corners[at + 3]
        if (ay > y and by > y) or (ay < y and by < y):
            continue
        ax, bx = corners[at], corners[at + 2]
        if ax < x and bx < x:
            continue
        crosses = (ay > y) != (by > y)
        if ax > x and bx > x:
            inside = inside != crosses
            continue
        side = side_of_line(ax, ay, bx, by, x, y)
        if side == 0:
            return True
        inside = inside != (crosses and (side > 0) == (by > ay))
    return inside


@lean_kernel
def _border_meets(shapes, number, xmin, ymin, xmax, ymax):
    """Whether an edge of the polygon shares a point with the box."""
    corners, base = shapes.corners, np.int64(shapes.words[shapes.blocks[number] + FIRST_CORNER])
    first = slab_list(shapes, number, max(ymin, shapes.heads[number, 1]))[0]
    stop = slab_list(shapes, number, min(ymax, shapes.heads[number, 3]))[1]
    for k in range(first, stop):
        if segment_meets_box(corners, 2 * (base + np.int64(shapes.words[k])), xmin, ymin, xmax, ymax):
            return True
    return False
