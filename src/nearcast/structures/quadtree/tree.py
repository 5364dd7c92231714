"""One quadtree over all rows, with pivotal tokens on its nodes."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.growth import QuadOptions, Quadtrees
from nearcast.structures.quadtree.nodes import NONE, ROOT, RowColumns
from nearcast.structures.quadtree.pivots import enter_some
from nearcast.structures.quadtree.room import with_entries
from nearcast.structures.representative import Representatives
from nearcast.structures.term_order import NO_TERM, rarest_two

__all__ = ["BY_ROW", "PivotalQuadtree", "QuadOptions"]

BY_ROW = np.zeros(0, np.int64)
"""In place of numbers: lists are in the order of rows."""


class PivotalQuadtree(Quadtrees):
    """Rows of a store, by place, with pivotal tokens on the nodes.

    `numbers` (int64 by row) give the order of lists; they may change between calls as long as the order of rows that
    are in the tree stays as it is.
    """

    def __init__(self, store: RowStore, space: Space, options: QuadOptions) -> None:
        super().__init__(store, space, options, 1)
        self._pivots = Representatives(store, space, "df", 1)
        self.tokens = np.full(1, NO_TERM, np.int32)  # by row: the pivotal token, for as long as the row is here

    def shown_terms(self, rows: np.ndarray) -> np.ndarray:
        """The term of each row that its entries show: one that few messages have."""
        return rarest_two(self._store, rows)[0]

    def build(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        """Start anew with these rows."""
        rows = rows[np.argsort(numbers[rows] if len(numbers) else rows, kind="stable")]
        self.tokens = np.full(max(1, self._store.high), NO_TERM, np.int32)
        self.tokens[rows] = self._pivots.cover(rows)
        self._build(rows, np.array([0, len(rows)], np.int64), self.shown_terms(rows))
        node, place = len(self.arrays.lists.counts) - 1, 0
        while node != NONE:
            self.arrays = with_entries(self.arrays, 0, 1024 + int(self.arrays.size[0]) // 8)
            node, place = enter_some(self.arrays, self.tokens, node, place)

    def insert(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        self.tokens = grown(self.tokens, self._store.high, fill=NO_TERM)
        self.tokens[rows] = self._pivots.firsts(rows)
        self._insert(rows, _one_root(rows), self.shown_terms(rows), self._held(numbers))

    def remove(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        """Forget rows, which are still in the store."""
        self._remove(rows, _one_root(rows), self._held(numbers))

    def _held(self, numbers: np.ndarray) -> RowColumns:
        return RowColumns(self._store.arrays.boxes, self.tokens, numbers)

    def state(self) -> dict[str, np.ndarray]:
        return super().state() | {"pivotal": self.tokens}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.tokens = arrays["pivotal"]


def _one_root(rows: np.ndarray) -> np.ndarray:
    return np.full(len(rows), ROOT, np.int32)
