"""The layout of an AP-tree: nodes in flat arrays; cuts, cells, borders and entries in arenas.

A node is a line of eight numbers. A k-node has cuts: disjoint, ascending intervals of term ranks, each with a child. An
s-node has a grid of cells, each with a child or none. Both may have one more child, the dummy, for rows whose terms are
used up or whose box covers the node. A leaf has entries: a row, its float32 box rounded outward, and up to three terms.
Memory is not freed piece by piece. What is replaced is counted as dead, and the tree is copied once enough is dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import inline_kernel, kernel, lean_kernel
from nearcast.structures.boxes import rounded_down

ROOT, NONE = 0, -1
LEAF, K_NODE, S_NODE = 0, 1, 2
# A line of `nodes`. In a leaf FIRST, COUNT and ROOM are of entries; in a k-node of cuts. In an s-node FIRST is the
# first cell, ACROSS and DOWN are the numbers of columns and lines, and EDGES is where the borders start (those between
# columns, then those between lines). LEVEL says which of a row's terms comes next; a k-node divides by that term, and
# keeps in EDGES the LEVEL that it had as a leaf.
KIND, LEVEL, FIRST, COUNT, ROOM, DUMMY, EDGES, WEIGHT = range(8)
ACROSS, DOWN = COUNT, ROOM
HIGH, CHILD = 0, 1  # columns of `kids`
# A line of `entries`: the row's rarest rank; the row; its second rarest rank; its third, as ~rank if it has more terms;
# and its box, to be read from `sides`. Two entries to a cache line.
PIVOT, ROW, SECOND, THIRD, XMIN, YMIN, XMAX, YMAX = range(8)
BY_WORDS, BY_PLACE = 1, 2  # flags: how a node may be divided
# Counters in `head`: how much of each arena is in use, and how much of that is dead.
USED_NODES, USED_CUTS, USED_CELLS, USED_EDGES, USED_ENTRIES = range(5)
DEAD = 5  # the same five again
HEAD = 10
_COUNTERS = (USED_NODES, USED_CUTS, USED_CUTS, USED_CELLS, USED_EDGES, USED_ENTRIES)  # of the arrays of a TreeView


class TreeView(NamedTuple):
    """The arrays that a search reads."""

    nodes: np.ndarray  # int32[nodes,8]
    lows: np.ndarray  # int32[cuts]  the lowest rank of a cut
    kids: np.ndarray  # int32[cuts,2]  the highest rank; 2 * child, + 1 if the child continues with a row's next term
    cells: np.ndarray  # int32[cells]  child or NONE; line by line from below
    edges: np.ndarray  # float64[edges]
    entries: np.ndarray  # int32[entries,8]
    sides: np.ndarray  # float32[entries,8]  the same memory


class NodeFacts(NamedTuple):
    """The arrays that only changes read."""

    built: np.ndarray  # int32[nodes]  the node's weight when its parent was divided
    limits: np.ndarray  # int32[nodes]  a leaf with more entries is divided
    flags: np.ndarray  # uint8[nodes]  BY_WORDS, BY_PLACE
    ratios: np.ndarray  # float64[nodes]  how many copies of a row may yet be made below the node
    regions: np.ndarray  # float64[nodes,4]
    head: np.ndarray  # int64[HEAD]


class Tree:
    """The arrays of a tree, which grow on demand."""

    def __init__(self) -> None:
        ints, floats, lines = np.zeros(0, np.int32), np.zeros(0), np.zeros((0, 8), np.int32)
        view = (lines, ints, np.zeros((0, 2), np.int32), ints, floats, lines)
        facts = (ints, ints, np.zeros(0, np.uint8), floats, np.zeros((0, 4)))
        self._set(view, facts, np.zeros(HEAD, np.int64))

    def _set(self, view: Sequence[np.ndarray], facts: Iterable[np.ndarray], head: np.ndarray) -> None:
        """Take over the arrays of a view but `sides`, and those of NodeFacts but `head`."""
        self.view, self.facts = TreeView._make((*view, view[-1].view(np.float32))), NodeFacts._make((*facts, head))

    @property
    def head(self) -> np.ndarray:
        return self.facts.head

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in (*self.view[:-1], *self.facts))

    @property
    def kinds(self) -> list[int]:
        """The number of live leaves, k-nodes and s-nodes. A dead node is an empty leaf."""
        counts = np.bincount(self.view.nodes[: self.head[USED_NODES], KIND], minlength=3)
        counts[LEAF] -= self.head[DEAD + USED_NODES]
        return list(counts.tolist())

    @property
    def copies(self) -> float:
        """Entries per row."""
        nodes = self.view.nodes[: self.head[USED_NODES]]
        entries = int(nodes[nodes[:, KIND] == LEAF, COUNT].sum(dtype=np.int64))
        return entries / max(1, int(nodes[ROOT, WEIGHT]))

    def reserve(self, nodes: int = 0, cuts: int = 0, cells: int = 0, edges: int = 0, entries: int = 0) -> None:
        """Make room for so many more."""
        sizes = (self.head[:DEAD] + (nodes, cuts, cells, edges, entries)).tolist()
        view = [grown(array, sizes[counter]) for array, counter in zip(self.view, _COUNTERS, strict=False)]
        self._set(view, (grown(array, sizes[USED_NODES]) for array in self.facts[:-1]), self.head)

    def state(self) -> dict[str, np.ndarray]:
        view = (array[: self.head[counter]] for array, counter in zip(self.view, _COUNTERS, strict=False))
        facts = (array[: self.head[USED_NODES]] for array in self.facts[:-1])
        names = (*TreeView._fields[:-1], *NodeFacts._fields)
        return {f"tree_{name}": array for name, array in zip(names, (*view, *facts, self.head), strict=True)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        view = [arrays[f"tree_{name}"] for name in TreeView._fields[:-1]]
        self._set(view, (arrays[f"tree_{name}"] for name in NodeFacts._fields[:-1]), arrays["tree_head"])


@kernel
def add_leaf(view, facts, parent, level, limit):
    """Add an empty leaf with the region, flags and copies of its parent; the caller has made room."""
    node = facts.head[USED_NODES]
    facts.head[USED_NODES] += 1
    view.nodes[node] = 0
    view.nodes[node, LEVEL] = level
    view.nodes[node, DUMMY] = NONE
    facts.built[node] = 0
    facts.limits[node] = limit
    facts.flags[node] = facts.flags[parent]
    facts.ratios[node] = facts.ratios[parent]
    facts.regions[node] = facts.regions[parent]
    return node


@kernel
def write_entry(view, at, rows, item):
    """Write an item of ranked rows to entry `at`. A row with fewer than three terms repeats one of them."""
    first, last = rows.starts[item], rows.starts[item + 1] - 1
    second, third = max(first, last - 1), max(first, last - 2)
    entry, sides, box = view.entries[at], view.sides[at], rows.boxes[item]
    entry[PIVOT] = rows.ranks[last]
    entry[ROW] = rows.rows[item]
    entry[SECOND] = rows.ranks[second]
    entry[THIRD] = ~rows.ranks[third] if last - first > 2 else rows.ranks[third]
    sides[XMIN], sides[YMIN] = rounded_down(box[0]), rounded_down(box[1])
    sides[XMAX], sides[YMAX] = -rounded_down(-box[2]), -rounded_down(-box[3])


@inline_kernel
def first_above(values, first, stop, value):
    """The place of the first of the ascending values[first:stop] that is above the value, or stop."""
    while first < stop:
        middle = (first + stop) >> 1
        if values[middle] <= value:
            first = middle + 1
        else:
            stop = middle
    return first


@lean_kernel
def column_of(edges, first, count, value):
    """The column of a value: how many of the ascending borders edges[first : first + count] are not above it.

    Exactness needs only that this is monotone. A box lies in the columns of its two sides and those between; a point
    inside the box lies in one of them.
    """
    return first_above(edges, first, first + count, value) - first


class CellRange(NamedTuple):
    """The first and last column, and the first and last line, of some cells of a grid."""

    left: int
    right: int
    below: int
    above: int


@lean_kernel
def overlapped_cells(nodes, edges, node, box):
    """The cells of an s-node that a box overlaps, as a CellRange."""
    at, across, down = nodes[node, EDGES], nodes[node, ACROSS] - 1, nodes[node, DOWN] - 1
    left, below = column_of(edges, at, across, box[0]), column_of(edges, at + across, down, box[1])
    right = left if box[2] == box[0] else column_of(edges, at, across, box[2])
    above = below if box[3] == box[1] else column_of(edges, at + across, down, box[3])
    return CellRange(left, right, below, above)


@lean_kernel
def cells_of_box(across, down, box):
    """The cells of a grid with these borders that a box overlaps, as a CellRange."""
    left, right = column_of(across, 0, len(across), box[0]), column_of(across, 0, len(across), box[2])
    below, above = column_of(down, 0, len(down), box[1]), column_of(down, 0, len(down), box[3])
    return CellRange(left, right, below, above)


@lean_kernel
def cell_count(cells):
    return (cells.right - cells.left + 1) * (cells.above - cells.below + 1)


@kernel
def covers(box, region):
    return box[0] <= region[0] and box[1] <= region[1] and box[2] >= region[2] and box[3] >= region[3]
