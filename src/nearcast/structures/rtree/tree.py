"""The R-tree as an object: build, growth of its arrays, save and open."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.structures.rtree.grow import raise_root
from nearcast.structures.rtree.nodes import NONE, ROOT, USED, TreeArrays, add_entry, has_room
from nearcast.structures.rtree.pack import packed_levels
from nearcast.structures.rtree.shrink import lower_root


class RTree:
    """An R-tree whose nodes, other than the root, have `b` to `most` entries."""

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

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)

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

    def raise_root(self) -> None:
        raise_root(self.arrays)

    def lower_root(self) -> None:
        lower_root(self.arrays)

    def state(self) -> dict[str, np.ndarray]:
        return {f"tree_{name}": array for name, array in self.arrays._asdict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = TreeArrays(*(arrays[f"tree_{name}"] for name in TreeArrays._fields))


@kernel
def _fill(tree, first, height, entries, boxes, starts):
    """Fill the nodes of one level, numbered from `first` on, with these entries."""
    for k in range(len(starts) - 1):
        tree.levels[first + k] = height
        for i in range(starts[k], starts[k + 1]):
            add_entry(tree, first + k, entries[i], boxes[i])
