"""The R-tree as an object: build, growth of its arrays, save and open.

A build packs sort-tile-recursively, level by level: slices by x, tiles by y. Every node has b to B entries.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.structures.rtree.nodes import NONE, ROOT, USED, TreeArrays, add_entry, has_room


class SavedArrays:
    """Arrays that are saved under the names of their fields, after a prefix."""

    arrays: Any
    prefix: ClassVar[str]

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)

    def state(self) -> dict[str, np.ndarray]:
        return {f"{self.prefix}_{name}": array for name, array in self.arrays._asdict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        kind = type(self.arrays)
        self.arrays = kind(*(arrays[f"{self.prefix}_{name}"] for name in kind._fields))


class RTree(SavedArrays):
    """An R-tree whose nodes, other than the root, have `b` to `most` entries."""

    arrays: TreeArrays
    prefix = "tree"

    def __init__(self, b: int, most: int) -> None:
        whole = isinstance(b, int) and isinstance(most, int)
        if not whole or not 2 <= b <= most // 2:
            raise InvalidInput(f"b and B are whole numbers with 2 <= b <= B/2; they are {b} and {most}")
        self._b, self._most = b, most
        self.arrays = self._empty(1, 0)
        self.arrays.head[USED] = 1

    def _empty(self, n_nodes: int, n_rows: int) -> TreeArrays:
        width = self._most + 1
        return TreeArrays(
            np.zeros((n_nodes, width), np.int32),
            np.zeros((n_nodes, width, 4)),
            np.zeros(n_nodes, np.int32),
            np.zeros(n_nodes, np.int32),
            np.full(n_nodes, NONE, np.int32),
            np.full(n_rows, NONE, np.int32),
            np.empty(n_nodes, np.int32),
            np.array([n_nodes, 0, self._b], np.int64),
        )

    @property
    def height(self) -> int:
        """The number of levels below the root."""
        return int(self.arrays.levels[ROOT])

    def build(self, rows: np.ndarray, boxes: np.ndarray, n_rows: int) -> None:
        """Replace the tree by a packed tree over these rows and their boxes."""
        levels = packed_levels(boxes, self._b, self._most)
        self.arrays = self._empty(sum(level.size for level in levels), n_rows)
        first = 0
        for height in range(len(levels) - 1, -1, -1):  # nodes are numbered level by level, from the root
            level = levels[height]
            below = levels[height - 1].boxes if height else boxes
            entries = level.order + first + level.size if height else rows[level.order]
            _fill(self.arrays, first, height, entries.astype(np.int32), below[level.order], level.starts)
            first += level.size

    def make_room(self, n_rows: int) -> None:
        """Make room for one more row, whatever it splits, and for row numbers below n_rows."""
        a = self.arrays
        needed = len(a.counts)
        if not has_room(a):
            needed += self.height + max(2, needed // 4)
        self.arrays = TreeArrays(
            grown(a.slots, needed),
            grown(a.boxes, needed),
            grown(a.counts, needed, fill=0),
            grown(a.levels, needed, fill=0),
            grown(a.parents, needed, fill=NONE),
            grown(a.leaves, n_rows, fill=NONE),
            grown(a.free, needed),
            a.head,
        )


@kernel
def _fill(tree, first, height, entries, boxes, starts):
    """Fill the nodes of one level, numbered from `first` on, with these entries."""
    for k in range(len(starts) - 1):
        tree.levels[first + k] = height
        for i in range(starts[k], starts[k + 1]):
            add_entry(tree, first + k, entries[i], boxes[i])


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
    """How many nodes n entries get. Filled to four fifths, so that first inserts split few; b or more entries each."""
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
