"""From the hits of a batch to sorted subscription ids: tests of NOT terms, expiry and exact shapes, owners, order.

Messages are taken in groups of some hundred hits. Each step runs over all rows of a group before the next step begins,
and prefetches what the next step reads: a test needs two to eight cache lines, each of which leads to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.arrays.radix import MOST_COUNTS, sort_rows
from nearcast.arrays.ragged import drop_repeats, sort_in_place
from nearcast.arrays.vector import prefetch
from nearcast.geo.shapes.arrays import (
    BLOCK_HEAD,
    BORDER,
    CELLS_PER_WORD,
    FIRST_CORNER,
    HEAD,
    INSIDE,
    OUTSIDE,
    circle_overlaps,
    grid_cell,
    holds_surely,
    is_inner_point,
    locate,
    polygon_overlaps,
    slab_list,
    slab_start,
    state_of,
)
from nearcast.matching.predicate import FLAG_EXPIRES, FLAG_LIVE, FLAG_NEGATIVE, FLAG_POLYGON, FLAG_SHAPED
from nearcast.matching.store import StoreView
from nearcast.matching.verify import DOUBTS, holds_besides_shape, joined, owners_sorted, verified
from nearcast.model import Found, Hits, MessageBatch

_CHUNK = 128  # rows that are tested at a time: their cache lines fit into the first cache
_GROUP_ROWS = 1024  # what a group reads must fit into the first two caches
_GROUP_MESSAGES = 32
_AHEAD = 16
_LINE = 16  # words of a cache line


class _Lists(NamedTuple):
    """The hits of a batch: those of the method, and those of rows without terms."""

    rows: np.ndarray
    starts: np.ndarray
    more_rows: np.ndarray
    more_starts: np.ndarray


class _Order(NamedTuple):
    """How rows become ids."""

    is_by_row: bool  # ids ascend with rows
    step: int  # id - row number, where all rows have the same; or NO_STEP


_NO_STEP = -(1 << 62)


class _Group(NamedTuple):
    """Working memory for a group of messages."""

    rows: np.ndarray  # int32[room]  rows that hold; those of a message start where its hits would
    firsts: np.ndarray  # int64[_GROUP_MESSAGES + 1]  where the rows of each message start
    stops: np.ndarray  # int64[_GROUP_MESSAGES]  where those that hold end
    unsure: np.ndarray  # int32[room,2]  rows to be tested, and their messages
    circles: np.ndarray  # int32[3,_CHUNK + 1]  the same, and their shapes
    polygons: np.ndarray  # int32[4,_CHUNK + 1]  the same, and the cell
    borders: np.ndarray  # int64[room,5]  polygons whose grid does not decide: the same, and a list of edges
    place: np.ndarray  # float64[4]  see `locate`


def found_by(
    store: StoreView, messages: MessageBatch, hits: Hits, more: Hits | None = None, has_chains: bool = True
) -> Found:
    """The subscriptions of each message, sorted by id, each once, of the rows that hold in full.

    `more` are further hits, without scores. `has_chains`: some subscriptions have several rows.
    """
    if hits.scores is not None or not store.needs_verifying:
        hits = hits if more is None else joined(hits, more)
        return owners_sorted(store, verified(store, messages, hits), has_chains)
    lists = _Lists(hits.rows, hits.starts, *((hits.rows[:0], np.zeros_like(hits.starts)) if more is None else more[:2]))
    ids, starts = np.empty(len(lists.rows) + len(lists.more_rows), np.int64), np.zeros(messages.size + 1, np.int64)
    order = _Order(store.in_id_order, _NO_STEP if store.id_step is None else store.id_step)
    n = _deliver((store.arrays, store.details, store.shapes), messages, lists, order, ids, starts)
    return Found(ids[:n], starts)


@kernel
def _deliver(store, messages, lists, order, ids, starts):
    """Fill ids and starts; return the number of ids."""
    rows, details, shapes = store
    longest = 0
    for m in range(len(starts) - 1):
        longest = max(longest, _n_hits(lists, m))
    room = max(longest, _GROUP_ROWS)
    group = _new_group(room)
    counts, scratch = np.empty(MOST_COUNTS, np.int32), np.empty(room, np.int32)
    m = n = 0
    while m < len(starts) - 1:
        stop, n_unsure = _gather(rows.flags, lists, m, group)
        n_borders = 0
        for k in range(0, n_unsure, _CHUNK):
            unsure = group.unsure[k : min(k + _CHUNK, n_unsure)]
            n_circles, n_polygons = _test_rows(rows, details, messages, m, group, unsure)
            if n_circles:
                _test_circles(shapes, messages, m, group, n_circles)
            if n_polygons:
                n_borders = _test_polygons(shapes, messages, m, group, n_polygons, n_borders)
        if n_borders:
            _test_borders(shapes, messages, m, group, n_borders)
        for k in range(stop - m):
            own = group.rows[group.firsts[k] : group.stops[k]]
            if order.is_by_row:
                sort_rows(own, scratch[: len(own)], counts)
            n = _write_ids(details.owner_ids, own, order, ids, n)
            if not order.is_by_row:
                sort_in_place(ids, starts[m + k], n)
                n = drop_repeats(ids, starts[m + k], n)
            starts[m + k + 1] = n
        m = stop
    return n


@kernel
def _new_group(room):
    firsts, stops = np.zeros(_GROUP_MESSAGES + 1, np.int64), np.zeros(_GROUP_MESSAGES, np.int64)
    rows, unsure = np.empty(room, np.int32), np.empty((room, 2), np.int32)
    circles, polygons = np.empty((3, _CHUNK + 1), np.int32), np.empty((4, _CHUNK + 1), np.int32)
    return _Group(rows, firsts, stops, unsure, circles, polygons, np.empty((room, 5), np.int64), np.empty(4))


@inline_kernel
def _n_hits(lists, m):
    return lists.starts[m + 1] - lists.starts[m] + lists.more_starts[m + 1] - lists.more_starts[m]


@lean_kernel
def _gather(flags, lists, first, group):
    """Take messages from `first` on. Write the rows that surely hold, and those to be tested. Return the message behind
    the group, and the number of rows to be tested.
    """
    m = first
    n_rows = n_unsure = 0
    while m < len(lists.starts) - 1 and m - first < _GROUP_MESSAGES:
        n_hits = _n_hits(lists, m)
        if m > first and n_rows + n_hits > _GROUP_ROWS:
            break
        group.firsts[m - first] = group.stops[m - first] = n_rows
        n_unsure = _divide(flags, lists.rows, lists.starts[m], lists.starts[m + 1], group, m - first, n_unsure)
        more, more_stop = lists.more_starts[m], lists.more_starts[m + 1]
        n_unsure = _divide(flags, lists.more_rows, more, more_stop, group, m - first, n_unsure)
        n_rows += n_hits
        m += 1
    return m, n_unsure


@inline_kernel
def _divide(flags, rows, start, stop, group, message, n_unsure):
    """Divide rows[start:stop], hits of one message, into rows that surely hold and others; return the new n_unsure."""
    n, kept, unsure = group.stops[message], group.rows, group.unsure
    for k in range(start, stop):
        row = rows[k]
        if k + _AHEAD < len(rows):
            prefetch(flags, rows[k + _AHEAD])
        is_sure = flags[row] & DOUBTS == FLAG_LIVE
        kept[n], unsure[n_unsure, 0], unsure[n_unsure, 1] = row, row, message
        n += is_sure
        n_unsure += not is_sure
    group.stops[message] = n
    return n_unsure


@inline_kernel
def _keep(group, message, row, holds):
    """Add a row to those of its message, if it holds."""
    group.rows[group.stops[message]] = row
    group.stops[message] += holds


@lean_kernel
def _test_rows(rows, details, messages, first, group, unsure):
    """Test all but shapes. Return the numbers of circles and of polygons that are still to be tested."""
    flags, circles, polygons = rows.flags, group.circles, group.polygons
    n_circles = n_polygons = shape = 0
    _prefetch_tests(rows, details, unsure)
    for k in range(len(unsure)):
        row, message = unsure[k, 0], unsure[k, 1]
        if k + _AHEAD < len(unsure) and flags[unsure[k + _AHEAD, 0]] & FLAG_NEGATIVE:
            prefetch(rows.terms, rows.offsets[unsure[k + _AHEAD, 0]])
        holds = holds_besides_shape(rows, details, row, messages, first + message)
        if len(details.shapes):
            shape = details.shapes[row]
        # Sums, not branches: the kinds of rows follow no pattern.
        is_shaped, is_polygon = flags[row] & FLAG_SHAPED > 0, flags[row] & FLAG_POLYGON > 0
        circles[0, n_circles], circles[1, n_circles], circles[2, n_circles] = row, message, shape
        polygons[0, n_polygons], polygons[1, n_polygons], polygons[2, n_polygons] = row, message, shape
        n_circles += holds & is_shaped & (not is_polygon)
        n_polygons += holds & is_polygon
        _keep(group, message, row, holds & (not is_shaped))
    return n_circles, n_polygons


@inline_kernel
def _prefetch_tests(rows, details, unsure):
    """Prefetch what the tests of these rows read first."""
    for k in range(len(unsure)):
        row = unsure[k, 0]
        prefetch(details.shapes, row)
        if rows.flags[row] & FLAG_EXPIRES:
            prefetch(details.expires, row)
        if rows.flags[row] & FLAG_NEGATIVE:
            prefetch(rows.offsets, row)
            prefetch(rows.n_terms, row)
            prefetch(rows.n_not, row)


@lean_kernel
def _test_circles(shapes, messages, first, group, n_circles):
    """Test circles; their messages ascend."""
    circles, located = group.circles, -1
    for k in range(n_circles):
        prefetch(shapes.heads, HEAD * np.int64(circles[2, k]))
    for k in range(n_circles):
        message = circles[1, k]
        if message != located:
            locate(shapes, messages.boxes, first + message, group.place)
            located = message
        holds = circle_overlaps(shapes, circles[2, k], messages.boxes, first + message, group.place)
        _keep(group, message, circles[0, k], holds)


@lean_kernel
def _test_polygons(shapes, messages, first, group, n_polygons, n_borders):
    """Test polygons by their heads, then by their grids. The others are added to `borders`; return their new number."""
    polygons, boxes, heads, blocks = group.polygons, messages.boxes, shapes.heads, shapes.blocks
    for k in range(n_polygons):
        prefetch(heads, HEAD * np.int64(polygons[2, k]))
        prefetch(blocks, polygons[2, k])
    n = 0
    for k in range(n_polygons):
        row, message, number = polygons[0, k], polygons[1, k], polygons[2, k]
        x, y = boxes[first + message, 0], boxes[first + message, 1]
        holds = holds_surely(heads, number, x, y)
        _keep(group, message, row, holds)
        cell = grid_cell(heads, number, x, y)
        polygons[0, n], polygons[1, n], polygons[2, n], polygons[3, n] = row, message, number, cell
        n += not holds
    for k in range(n):
        prefetch(shapes.words, blocks[polygons[2, k]] + BLOCK_HEAD + polygons[3, k] // CELLS_PER_WORD)
    borders = group.borders
    for k in range(n):
        row, message, number, cell = polygons[0, k], polygons[1, k], polygons[2, k], polygons[3, k]
        state = state_of(shapes.words, blocks[number], cell) if cell >= 0 else BORDER
        _keep(group, message, row, state == INSIDE)
        borders[n_borders, 0], borders[n_borders, 1], borders[n_borders, 2] = row, message, number
        n_borders += state != INSIDE and not (state == OUTSIDE and is_inner_point(boxes, first + message))
    return n_borders


@lean_kernel
def _test_borders(shapes, messages, first, group, n_borders):
    """Test polygons whose grid does not decide. The words and corners of their edges are prefetched step by step."""
    borders, words, boxes = group.borders, shapes.words, messages.boxes
    for k in range(n_borders):
        prefetch(words, shapes.blocks[borders[k, 2]])
    for k in range(n_borders):
        prefetch(words, slab_start(shapes, borders[k, 2], boxes[first + borders[k, 1], 1]))
    for k in range(n_borders):
        start, stop = slab_list(shapes, borders[k, 2], boxes[first + borders[k, 1], 1])
        borders[k, 3], borders[k, 4] = start, min(stop, start + _LINE)
        prefetch(words, start)
    for k in range(n_borders):
        base = np.int64(words[shapes.blocks[borders[k, 2]] + FIRST_CORNER])
        for at in range(borders[k, 3], borders[k, 4]):
            prefetch(shapes.corners, 2 * (base + np.int64(words[at])))
    for k in range(n_borders):
        message = borders[k, 1]
        _keep(group, message, borders[k, 0], polygon_overlaps(shapes, borders[k, 2], boxes, first + message))


@lean_kernel
def _write_ids(owner_ids, rows, order, ids, n):
    """Write the owners of the rows of one message to ids[n:], without immediate repeats; return the new n."""
    if order.step != _NO_STEP:
        for k in range(len(rows)):
            ids[n + k] = rows[k] + order.step
        return n + len(rows)
    first = n
    for k in range(len(rows)):
        if k + _AHEAD < len(rows):
            prefetch(owner_ids, rows[k + _AHEAD])
        owner = owner_ids[np.uint64(rows[k])]
        ids[n] = owner
        n += n == first or ids[n - 1] != owner
    return n
