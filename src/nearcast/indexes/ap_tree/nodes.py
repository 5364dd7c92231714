"""The layout of an AP-tree: nodes in flat arrays, what hangs on them in arenas.

A node is a line of eight numbers. A k-node has cuts: intervals of term ranks, disjoint and ascending, a child for each.
An s-node has a grid of cells, a child or none for each. Both may have one child more, the dummy: for rows whose terms
are used up, or whose box covers the node. A leaf has entries: a row with its box and up to three of its terms.

Nothing is given back piece by piece. What is replaced is counted as dead, and all is copied once enough is dead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel, lean_kernel

ROOT, NONE = 0, -1
LEAF, K_NODE, S_NODE = 0, 1, 2
# A line of `nodes`. Leaf: FIRST, COUNT, ROOM are of entries; k-node: of cuts; s-node: FIRST is of cells, ACROSS and
# DOWN say how many there are, EDGES where their borders lie (those between columns, then those between rows).
# LEVEL is which of a row's terms comes next; a k-node cuts by that one, and keeps in EDGES what it was as a leaf.
KIND, LEVEL, FIRST, COUNT, ROOM, DUMMY, EDGES, WEIGHT = range(8)
ACROSS, DOWN = COUNT, ROOM
HIGH, CHILD = 0, 1  # of `kids`
BY_WORDS, BY_PLACE = 1, 2  # flags: how a node may be divided
# Counters in `head`: how much of each arena is in use, and how much of that is dead.
USED_NODES, USED_CUTS, USED_CELLS, USED_EDGES, USED_ENTRIES = range(5)
DEAD = 5  # the same five again
HEAD = 10


class Shape(NamedTuple):
    """What matching reads."""

    nodes: np.ndarray  # int32[nodes,8]
    lows: np.ndarray  # int32[cuts]  the least rank of a cut
    kids: np.ndarray  # int32[cuts,2]  the greatest rank; 2 * child, + 1 where the child goes on with a row's next term
    cells: np.ndarray  # int32[cells]  child, or NONE; row by row from below
    edges: np.ndarray  # float64[edges]
    entries: np.ndarray  # int32[entries,8]  see entries.py
    sides: np.ndarray  # float32[entries,8]  the same memory


class Facts(NamedTuple):
    """What changes need beyond."""

    built: np.ndarray  # int32[nodes]  the node's weight when its parent was divided
    limits: np.ndarray  # int32[nodes]  a leaf with more entries is to be divided
    flags: np.ndarray  # uint8[nodes]  BY_WORDS, BY_PLACE
    ratios: np.ndarray  # float64[nodes]  how many copies of a row may yet be made below the node
    regions: np.ndarray  # float64[nodes,4]
    head: np.ndarray  # int64[HEAD]


class Tree:
    """Holds the arrays and gives them room."""

    def __init__(self) -> None:
        self.shape = Shape(
            np.zeros((0, 8), np.int32),
            np.zeros(0, np.int32),
            np.zeros((0, 2), np.int32),
            np.zeros(0, np.int32),
            np.zeros(0),
            np.zeros((0, 8), np.int32),
            np.zeros((0, 8), np.float32),
        )
        self.facts = Facts(
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
            np.zeros(0, np.uint8),
            np.zeros(0),
            np.zeros((0, 4)),
            np.zeros(HEAD, np.int64),
        )

    @property
    def head(self) -> np.ndarray:
        return self.facts.head

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in (*self.shape[:-1], *self.facts))

    @property
    def kinds(self) -> list[int]:
        """How many leaves, k-nodes and s-nodes are alive. What is dead is an empty leaf."""
        counts = np.bincount(self.shape.nodes[: self.head[USED_NODES], KIND], minlength=3)
        counts[LEAF] -= self.head[DEAD + USED_NODES]
        return list(counts.tolist())

    @property
    def copies(self) -> float:
        """Entries for each row."""
        nodes = self.shape.nodes[: self.head[USED_NODES]]
        entries = int(nodes[nodes[:, KIND] == LEAF, COUNT].sum(dtype=np.int64))
        return entries / max(1, int(nodes[ROOT, WEIGHT]))

    def reserve(self, nodes: int = 0, cuts: int = 0, cells: int = 0, edges: int = 0, entries: int = 0) -> None:
        """Room for so many more."""
        shape, facts, head = self.shape, self.facts, self.facts.head
        n = int(head[USED_NODES]) + nodes
        cut, cell = int(head[USED_CUTS]) + cuts, int(head[USED_CELLS]) + cells
        edge, entry = int(head[USED_EDGES]) + edges, int(head[USED_ENTRIES]) + entries
        held = grown(shape.entries, entry)
        self.shape = Shape(
            grown(shape.nodes, n),
            grown(shape.lows, cut),
            grown(shape.kids, cut),
            grown(shape.cells, cell),
            grown(shape.edges, edge),
            held,
            held.view(np.float32),
        )
        self.facts = Facts(
            grown(facts.built, n),
            grown(facts.limits, n),
            grown(facts.flags, n),
            grown(facts.ratios, n),
            grown(facts.regions, n),
            head,
        )

    def state(self) -> dict[str, np.ndarray]:
        used = self.head[:DEAD].tolist()
        n, cuts, cells, edges, entries = used
        sizes = [n, cuts, cuts, cells, edges, entries, n, n, n, n, n, HEAD]
        arrays = {**self.shape._asdict(), **self.facts._asdict()}
        del arrays["sides"]
        return {f"tree_{name}": array[:size] for (name, array), size in zip(arrays.items(), sizes, strict=True)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        held = {name: arrays[f"tree_{name}"] for name in Shape._fields if name != "sides"}
        self.shape = Shape(**held, sides=held["entries"].view(np.float32))
        self.facts = Facts(*(arrays[f"tree_{name}"] for name in Facts._fields))


@kernel
def add_leaf(shape, facts, parent, level, limit):
    """A new empty leaf below a node, with its region, flags and copies left; the caller has made room."""
    node = facts.head[USED_NODES]
    facts.head[USED_NODES] += 1
    shape.nodes[node] = 0
    shape.nodes[node, LEVEL] = level
    shape.nodes[node, DUMMY] = NONE
    facts.built[node] = 0
    facts.limits[node] = limit
    facts.flags[node] = facts.flags[parent]
    facts.ratios[node] = facts.ratios[parent]
    facts.regions[node] = facts.regions[parent]
    return node


@lean_kernel
def column_of(edges, first, count, value):
    """How many of the ascending edges[first : first + count] are not above the value: monotone, and that is all that
    exactness needs. A box lies in the columns of its two sides and those between, a place in one of them if it is
    inside the box.
    """
    low, high = first, first + count
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - first


@lean_kernel
def columns_of(nodes, edges, node, box):
    """The first and last column, and the first and last row, of the cells that a box overlaps."""
    at, across, down = nodes[node, EDGES], nodes[node, ACROSS] - 1, nodes[node, DOWN] - 1
    left, below = column_of(edges, at, across, box[0]), column_of(edges, at + across, down, box[1])
    right = left if box[2] == box[0] else column_of(edges, at, across, box[2])
    above = below if box[3] == box[1] else column_of(edges, at + across, down, box[3])
    return left, right, below, above


@lean_kernel
def cells_in(columns):
    """How many cells those are."""
    return (columns[1] - columns[0] + 1) * (columns[3] - columns[2] + 1)


@kernel
def covers(box, region):
    return box[0] <= region[0] and box[1] <= region[1] and box[2] >= region[2] and box[3] >= region[3]
