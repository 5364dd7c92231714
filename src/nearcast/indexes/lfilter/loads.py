"""The load of each term: what it is expected to cost in a walk of the trie, for messages of a few lengths.

A node is reached when the terms on its path are in the message and its box overlaps. Given the first term, the others
are assumed to occur independently, by their shares of all terms; a box overlaps by its share of the space. One pass
from the last nodes to the root computes the cost below every node; the table keeps it for the root's children.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.indexes.lfilter.costs import CHILD, NODE, ROW
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.nodes import GONE, USED, QuadtreeArrays
from nearcast.structures.trie.layout import FIRST_CHILD, N_CHILDREN, N_ROWS, ROOT
from nearcast.structures.trie.trie import Trie

LENGTHS = np.array([4.0, 16.0, 64.0, 256.0, 1024.0])
"""The message lengths in terms of the table's columns; values between them are interpolated."""
_SIDE = 0.05  # the assumed side of a message as a share of the space


class Prices(NamedTuple):
    """The nanoseconds of a child read, a node reached and a row read."""

    child: float = CHILD
    node: float = NODE
    row: float = ROW


_PRICES = Prices()


class Model(NamedTuple):
    """The statistics of the rows that the cost model reads."""

    loads: np.ndarray  # float32[n_terms, n_lengths]
    marked: np.ndarray  # float64[n_lengths]  the probability that a message has the rarest term of a row
    usual: tuple[float, float]  # lists and entries of the quadtree that a point reads, on average over the space


class Loads:
    """The cost model's statistics, computed again when a quarter of the rows have changed, since they are rough."""

    def __init__(self) -> None:
        self.model = Model(np.zeros((0, len(LENGTHS)), np.float32), np.zeros(len(LENGTHS)), (0.0, 0.0))
        self._due = 0

    @property
    def nbytes(self) -> int:
        return int(self.model.loads.nbytes)

    def note(self, changes: int, store: RowStore, trie: Trie, quad: QuadtreeArrays) -> None:
        """Count inserted or removed rows, and compute the statistics again when due."""
        self._due -= changes
        if self._due < 0:
            self.learn(store, trie, quad)

    def learn(self, store: RowStore, trie: Trie, quad: QuadtreeArrays, prices: Prices = _PRICES) -> None:
        """Compute the statistics from the rows."""
        frequencies = np.zeros(len(trie.ranks))
        known = min(len(trie.ranks), store.n_terms)
        frequencies[trie.ranks[:known]] = store.frequencies[:known]
        shares = frequencies / max(1.0, float(frequencies.sum()))
        order = _parents_first(trie.arrays)
        by_rank, marked = np.zeros((len(trie.ranks), len(LENGTHS)), np.float32), np.zeros(len(LENGTHS))
        for k, length in enumerate(LENGTHS):
            chances = (-np.expm1(-length * shares)).astype(np.float32)
            marked[k] = _add_up(trie.arrays, order, chances, length, prices, by_rank[:, k])
        self.model = Model(by_rank[trie.ranks], marked, _lists_of_average_point(quad))
        self._due = int(trie.arrays.below[ROOT]) // 4

    def state(self) -> dict[str, np.ndarray]:
        return {
            "loads": self.model.loads,
            "loads_marked": self.model.marked,
            "loads_usual": np.array(self.model.usual),
            "loads_due": np.array([self._due], np.int64),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        usual = arrays["loads_usual"]
        self.model = Model(arrays["loads"], arrays["loads_marked"], (float(usual[0]), float(usual[1])))
        self._due = int(arrays["loads_due"][0])


def _lists_of_average_point(quad: QuadtreeArrays) -> tuple[float, float]:
    """The number of lists and entries that a point reads, on average over the space."""
    levels = quad.nodes.levels[: quad.nodes.head[USED]]
    shares, counts = np.where(levels == GONE, 0.0, 0.25**levels), quad.lists.counts[: len(levels)]
    return float(shares[counts > 0].sum()), float((shares * counts).sum())


@kernel
def _parents_first(trie):
    """All nodes, parents before children."""
    order, n, at = np.empty(64, np.int32), 1, 0
    order[0] = ROOT
    while at < n:
        first, count = np.int64(trie.spans[order[at], FIRST_CHILD]), np.int64(trie.spans[order[at], N_CHILDREN])
        at += 1
        order = with_room(order, n, count)
        for place in range(first, first + count):
            order[n] = trie.children[place, 1]
            n += 1
    return order[:n]


@kernel
def _add_up(trie, order, chances, length, prices, out):
    """Write the cost of a walk below each child of the root to out[rank of the child].

    Return the probability that a message has the rarest term of a row.
    """
    spans, boxes, parents, ranks, rows = trie.spans, trie.boxes, trie.parents, trie.ranks, trie.spans[:, N_ROWS]
    costs, marked = np.zeros(len(parents), np.float32), 0.0
    width, height = boxes[ROOT, 2] - boxes[ROOT, 0], boxes[ROOT, 3] - boxes[ROOT, 1]
    for k in range(len(order) - 1, 0, -1):
        node = order[k]
        across = min(1.0, (boxes[node, 2] - boxes[node, 0]) / width + _SIDE) if width > 0 else 1.0
        up = min(1.0, (boxes[node, 3] - boxes[node, 1]) / height + _SIDE) if height > 0 else 1.0
        n_children = np.float64(spans[node, N_CHILDREN])
        reads = min(n_children, length * (1 + np.log2(1 + n_children)))
        own = prices.node + prices.child * reads + prices.row * rows[node]
        cost = prices.child + across * up * (own + costs[node])
        if parents[node] == ROOT:
            out[ranks[node]] = cost
            marked += trie.below[node] * chances[ranks[node]]
        else:
            costs[parents[node]] += chances[ranks[node]] * cost
    return marked / max(1, trie.below[ROOT])
