"""Divides a node by place: a grid of columns and lines, whose borders are chosen for each axis separately.

A column costs (boxes that overlap it) x (probability that a message does). Borders start where they divide the centres
of the boxes evenly; then each moves to the best place between its neighbours. A border lies where a box begins or just
behind the end of a box: elsewhere it would only cut more boxes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.indexes.ap_tree.layout import cells_of_box, covers

_TRIED = 8  # beginnings, and as many ends, that are tried for a border
_SWEEPS = 2


class Axis(NamedTuple):
    """One axis of a node. Each array is sorted on its own."""

    starts: np.ndarray  # float64[boxes]  where boxes begin
    stops: np.ndarray  # float64[boxes]  where they end
    message_starts: np.ndarray  # float64[messages]  of the expected messages that overlap the node
    message_stops: np.ndarray  # float64[messages]
    low: float  # of the node's region
    high: float


def axis_of(boxes: np.ndarray, messages: np.ndarray, region: np.ndarray, k: int) -> Axis:
    """Axis k (0 or 1) of a node, given the boxes of its rows and of expected messages."""
    return Axis(
        np.sort(boxes[:, k]),
        np.sort(boxes[:, k + 2]),
        np.sort(messages[:, k]),
        np.sort(messages[:, k + 2]),
        float(region[k]),
        float(region[k + 2]),
    )


@kernel
def _overlapping(starts, stops, low, high):
    """The number of intervals that overlap the column low <= value < high."""
    return np.searchsorted(starts, high) - np.searchsorted(stops, low)


@kernel
def chance_of(axis, low, high, columns):
    """The probability that a message at the node overlaps one of so many columns.

    It is estimated from the expected messages, and from the column's width, which weighs as much as one message for
    each column. Values are halved because a width may exceed the largest number.
    """
    whole = axis.high / 2 - axis.low / 2
    part = min(high, axis.high) / 2 - max(low, axis.low) / 2
    share = max(part, 0.0) / whole if whole > 0.0 else 1.0 / columns
    came = _overlapping(axis.message_starts, axis.message_stops, low, high)
    return (came + share * columns) / (len(axis.message_starts) + columns)


@kernel
def _column_cost(axis, low, high, columns):
    return _overlapping(axis.starts, axis.stops, low, high) * chance_of(axis, low, high, columns)


@kernel
def even_edges(axis, columns, out):
    """Write borders that divide the boxes evenly into at most so many columns; return the number of borders."""
    n, last = 0, max(axis.low, axis.starts[0])  # a border at the lowest beginning divides nothing
    for i in range(1, columns):
        at = i * len(axis.starts) // columns
        edge = axis.starts[at] / 2 + axis.stops[at] / 2
        if last < edge <= axis.high:
            out[n] = last = edge
            n += 1
    return n


@kernel
def _best_edge(axis, low, edge, high, columns):
    """The cheapest place of a border between its neighbours `low` and `high`."""
    best = edge
    least = _column_cost(axis, low, edge, columns) + _column_cost(axis, edge, high, columns)
    for ends in range(2):
        places = axis.stops if ends else axis.starts
        first, stop = np.searchsorted(places, low), np.searchsorted(places, high)
        for k in range(first, stop, max(1, (stop - first) // _TRIED)):
            tried = np.nextafter(places[k], np.inf) if ends else places[k]
            if low < tried < high and axis.low < tried <= axis.high:
                cost = _column_cost(axis, low, tried, columns) + _column_cost(axis, tried, high, columns)
                if cost < least:
                    least, best = cost, tried
    return best


@kernel
def placed_edges(axis, columns):
    """The best borders between at most so many columns."""
    edges = np.empty(columns, np.float64)
    n = even_edges(axis, columns, edges)
    for _ in range(_SWEEPS):
        for i in range(n):
            low = edges[i - 1] if i else -np.inf
            high = edges[i + 1] if i + 1 < n else np.inf
            edges[i] = _best_edge(axis, low, edges[i], high, columns)
    return edges[:n].copy()


@kernel
def chances_of(axis, edges):
    """The probability of each column."""
    columns = len(edges) + 1
    chances = np.empty(columns, np.float64)
    for i in range(columns):
        low = edges[i - 1] if i else -np.inf
        high = edges[i] if i + 1 < columns else np.inf
        chances[i] = chance_of(axis, low, high, columns)
    return chances


def grid_counts(boxes: np.ndarray, region: np.ndarray, across: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, int]:
    """The number of boxes that overlap each cell, [line, column], and the number that cover the region and are in none.

    Each box adds to four corners; running sums along both axes then count it in all its cells.
    """
    corners = np.zeros((len(down) + 2, len(across) + 2), np.int64)
    covering = _add_corners(boxes, region, across, down, corners)
    return corners.cumsum(axis=0).cumsum(axis=1)[:-1, :-1], covering


@kernel
def _add_corners(boxes, region, across, down, corners):
    """Add the corners of all boxes but those that cover the region; return the number of these."""
    covering = 0
    for i in range(len(boxes)):
        if covers(boxes[i], region):
            covering += 1
            continue
        cells = cells_of_box(across, down, boxes[i])
        corners[cells.below, cells.left] += 1
        corners[cells.above + 1, cells.left] -= 1
        corners[cells.below, cells.right + 1] -= 1
        corners[cells.above + 1, cells.right + 1] += 1
    return covering
