"""Sort-tile-recursive packing, level by level: slices by x, tiles by y. Every node has b to B entries."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class Level(NamedTuple):
    """One level of the tree. Node k has the entries order[starts[k]:starts[k + 1]] of the level below."""

    order: np.ndarray  # int64[n]
    starts: np.ndarray  # int64[n_nodes + 1]
    boxes: np.ndarray  # float64[n_nodes, 4]

    @property
    def size(self) -> int:
        return len(self.boxes)


def packed_levels(boxes: np.ndarray, b: int, most: int) -> list[Level]:
    """The levels of a tree over these boxes: leaves first; the last level is the root."""
    levels = [_packed(boxes, b, most)]
    while levels[-1].size > 1:
        levels.append(_packed(levels[-1].boxes, b, most))
    return levels


def n_nodes_for(n: int, b: int, most: int) -> int:
    """The number of nodes for n entries. Nodes are filled to four fifths, so that the first inserts do not split all of
    them; there are fewer nodes where these would have less than b entries each.
    """
    if n <= most:
        return 1
    return min(math.ceil(n / max(b, most * 4 // 5)), n // b)


def _packed(boxes: np.ndarray, b: int, most: int) -> Level:
    n, n_nodes = len(boxes), n_nodes_for(len(boxes), b, most)
    starts = np.arange(n_nodes + 1) * n // n_nodes
    if n == 0:
        return Level(np.zeros(0, np.int64), starts, np.zeros((1, 4)))
    order = np.argsort(_middles(boxes, 0), kind="stable")
    n_slices = math.ceil(math.sqrt(n_nodes))
    edges = starts[np.arange(n_slices + 1) * n_nodes // n_slices]
    slices = np.repeat(np.arange(n_slices, dtype=np.int32), np.diff(edges))
    order = order[np.lexsort((_middles(boxes, 1)[order], slices))]
    lows = np.minimum.reduceat(boxes[order, :2], starts[:-1])
    highs = np.maximum.reduceat(boxes[order, 2:], starts[:-1])
    return Level(order, starts, np.hstack([lows, highs]))


def _middles(boxes: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(boxes[:, axis] / 2 + boxes[:, axis + 2] / 2)  # halves first: sums of huge values overflow
