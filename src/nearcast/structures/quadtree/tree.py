"""One quadtree over all rows, with pivotal terms on its nodes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.nodes import NONE, ROOT
from nearcast.structures.quadtree.pivots import enter_some
from nearcast.structures.quadtree.quadtrees import BY_ROW, QuadOptions, Quadtrees
from nearcast.structures.representative import Representatives
from nearcast.structures.term_order import NO_TERM, rarest_two


class PivotalQuadtree(Quadtrees):
    """Rows of a store by place, with pivotal terms on the nodes.

    `numbers` (int64 by row) give the order of entries in lists. They may change between calls as long as the order of
    the rows in the tree stays the same.
    """

    saved: ClassVar = {"pivotal": "pivots"}

    def __init__(self, store: RowStore, space: Space, options: QuadOptions) -> None:
        super().__init__(store, space, options, 1)
        self._representatives = Representatives(store, space, "df", 1)
        self.pivots = np.full(1, NO_TERM, np.int32)  # by row: the pivotal term, valid while the row is in the tree

    def entry_terms(self, rows: np.ndarray) -> np.ndarray:
        """The term of each row that its entries hold: the rarest, since few messages have it."""
        return rarest_two(self._store, rows)[0]

    def build(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        rows = rows[np.argsort(numbers[rows] if len(numbers) else rows, kind="stable")]
        self.pivots = np.full(max(1, self._store.high), NO_TERM, np.int32)
        self.pivots[rows] = self._representatives.cover(rows)
        self._build(rows, np.array([0, len(rows)], np.int64), self.entry_terms(rows))
        node, place = len(self.arrays.lists.counts) - 1, 0
        while node != NONE:
            self._reserve(0, 1024 + int(self.arrays.size[0]) // 8)
            node, place = enter_some(self.arrays, self.pivots, node, place)

    def insert(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        self.pivots = grown(self.pivots, self._store.high, fill=NO_TERM)
        self.pivots[rows] = self._representatives.firsts(rows)
        self._insert(rows, _only_root(rows), self.entry_terms(rows), numbers)

    def remove(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        """Remove rows, which are still in the store."""
        self._remove(rows, _only_root(rows), numbers)


def _only_root(rows: np.ndarray) -> np.ndarray:
    return np.full(len(rows), ROOT, np.int32)
