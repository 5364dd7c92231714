"""What each term is expected to cost in a walk of the trie, for messages of a few lengths.

A walk reaches a node when the tokens on its way are in the message and its box overlaps. Given the first token, the
others are taken to be there independently, each as often as its share of all tokens says; a box as often as its share
of the space says. So one pass from the last nodes to the root tells the cost below every node, and the table keeps it
for the root's children. A message adds up what its own terms cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import with_room
from nearcast.arrays.jit import kernel
from nearcast.indexes.lfilter.costs import CHILD, NODE, ROW
from nearcast.indexes.lfilter.estimate import usual_point
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.nodes import QuadtreeArrays
from nearcast.structures.trie.nodes import FIRST_CHILD, N_CHILDREN, N_ROWS, ROOT
from nearcast.structures.trie.trie import Trie

LENGTHS = np.array([4.0, 16.0, 64.0, 256.0, 1024.0])
"""Tokens of the messages that the table knows; between two of them it is a straight line."""
_PRICES = (CHILD, NODE, ROW)
_SIDE = 0.05  # of the space: the side of a message, when boxes are asked whether they overlap


class Model(NamedTuple):
    """What the cost model knows of the rows."""

    loads: np.ndarray  # float32[n_terms, n_lengths]
    marked: np.ndarray  # float64[n_lengths]  how likely a message of each length has the rarest term of a row
    usual: tuple[float, float]  # lists and entries of the quadtree that a point meets, on average over the space


class Loads:
    """Made anew when a quarter of the rows have changed: what it says is rough, and need not be newer."""

    def __init__(self) -> None:
        self.model = Model(np.zeros((0, len(LENGTHS)), np.float32), np.zeros(len(LENGTHS)), (0.0, 0.0))
        self._due = 0

    @property
    def nbytes(self) -> int:
        return int(self.model.loads.nbytes)

    def note(self, changes: int, store: RowStore, trie: Trie, quad: QuadtreeArrays) -> None:
        """So many rows came or went."""
        self._due -= changes
        if self._due < 0:
            self.learn(store, trie, quad)

    def learn(
        self, store: RowStore, trie: Trie, quad: QuadtreeArrays, prices: tuple[float, float, float] = _PRICES
    ) -> None:
        """From the rows as they are. Prices: of a child, a node, a row."""
        frequencies = np.zeros(len(trie.places))
        known = min(len(trie.places), store.n_terms)
        frequencies[trie.places[:known]] = store.frequencies[:known]
        shares = frequencies / max(1.0, float(frequencies.sum()))
        order = _from_the_root(trie.arrays)
        by_place, marked = np.zeros((len(trie.places), len(LENGTHS)), np.float32), np.zeros(len(LENGTHS))
        for k, length in enumerate(LENGTHS):
            chances = (-np.expm1(-length * shares)).astype(np.float32)
            marked[k] = _add_up(trie.arrays, order, chances, length, prices, by_place[:, k])
        self.model = Model(by_place[trie.places], marked, usual_point(quad))
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


@kernel
def _from_the_root(trie):
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
    """The cost of a walk below each of the root's children, by its token; return the chance to meet a row's rarest."""
    spans, boxes, parents, tokens, rows = trie.spans, trie.boxes, trie.parents, trie.tokens, trie.spans[:, N_ROWS]
    costs, met = np.zeros(len(parents), np.float32), 0.0
    child_price, node_price, row_price = prices
    width, height = boxes[ROOT, 2] - boxes[ROOT, 0], boxes[ROOT, 3] - boxes[ROOT, 1]
    for k in range(len(order) - 1, 0, -1):
        node = order[k]
        across = min(1.0, (boxes[node, 2] - boxes[node, 0]) / width + _SIDE) if width > 0 else 1.0
        up = min(1.0, (boxes[node, 3] - boxes[node, 1]) / height + _SIDE) if height > 0 else 1.0
        kids = np.float64(spans[node, N_CHILDREN])
        looks = min(kids, length * (1 + np.log2(1 + kids)))
        own = node_price + child_price * looks + row_price * rows[node]
        cost = child_price + across * up * (own + costs[node])
        if parents[node] == ROOT:
            out[tokens[node]] = cost
            met += trie.below[node] * chances[tokens[node]]
        else:
            costs[parents[node]] += chances[tokens[node]] * cost
    return met / max(1, trie.below[ROOT])
