"""R^t++-tree: an R-tree that meets another token of a row at each level.

Paper      rt-tree
Idea       The i-th token of a row stands at its i-th ancestor, in an inverted list there. A row that was met i times
           at depth i is in time; a subtree without one is skipped; a row met as often as it has tokens holds where
           its box overlaps. No text is compared.
Layout     a packed R-tree in flat arrays, the terms of each row in order, one hash table (node, term) -> list, and
           lists of 20 bytes an entry (row, box in float32 rounded outward).
Cost       insert and remove O(height x B + terms); match O(lists read); 47 bytes a row for the tree, 12 + 4 for each
           term in order, 20 and up for each term in a list, about 40 a list.
Deviates   as rt-tree. An entry's box is tested before it is counted, so a row that cannot overlap keeps no subtree
           alive. The root has no lists unless it is a leaf. When the height changes all lists are made anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.geo.space import Space
from nearcast.matching.representative import Representatives
from nearcast.matching.rtree.level_lists import Held, LevelLists
from nearcast.matching.rtree.level_search import search
from nearcast.matching.rtree.row_orders import RowOrders
from nearcast.matching.rtree.tree_method import TreeMethod
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work


class RtPlusPlusTree(TreeMethod):
    name = "rt++-tree"
    kinds = ("match", "rank")
    effort_ceiling = 0.3  # by `df`, the worst order; 0.05 by the default
    checked_with = ("", "b=2 B=4 cells=9", "b=3 B=7 tokens=idf", "b=2 B=5 tokens=df", "b=4 B=9 tokens=random")

    def __init__(
        self,
        store: RowStore,
        space: Space,
        tokens: str = "locality",
        cells: int = 10_000,
        b: int = 25,
        B: int = 50,
    ) -> None:
        super().__init__(store, space, b, B)
        self._representatives = Representatives(store, space, tokens, cells)
        self.orders = RowOrders()
        self.lists = LevelLists()
        self._spare: list[tuple[np.ndarray, np.ndarray]] = []  # zeroed counts and marks, one for each thread at work

    @property
    def _held(self) -> Held:
        return Held(self.store.arrays, self.orders.arrays)

    def build(self, rows: np.ndarray) -> None:
        self._representatives.start(rows)
        self.orders.start(self.store.high)
        self._order(rows)
        super().build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self._representatives.add(rows)
        self._order(rows)
        super().insert(rows)

    def _order(self, rows: np.ndarray) -> None:
        terms, starts = self._representatives.orders(rows)
        self.orders.add(rows, terms, starts, self.store.high)

    def remove(self, rows: np.ndarray) -> None:
        super().remove(rows)
        self._representatives.forget(rows)
        self.orders.remove(int(self.store.arrays.n_terms[rows].sum(dtype=np.int64)))
        if self.orders.is_loose:
            left = np.flatnonzero(self.tree.arrays.leaves >= 0)
            self.orders.pack(left, self.store.arrays.n_terms[left])

    def hang_all(self) -> None:
        self.lists.build(self.tree.arrays, self._held)

    def insert_some(self, rows: np.ndarray, done: int) -> int:
        return self.lists.insert(self.tree.arrays, self._held, rows, done)

    def remove_some(self, rows: np.ndarray, done: int) -> int:
        return self.lists.remove(self.tree.arrays, self._held, rows, done)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        scratch = self._scratch()
        answer = search(self.tree.arrays, self.lists, self._held, messages, scratch)
        self._spare.append(scratch)
        return answer

    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """Zeroed counts and marks, which no other thread has; terms may have come with rows of other structures."""
        n_rows, n_terms = self.store.high, self.store.n_terms
        try:
            counts, marks = self._spare.pop()
        except IndexError:
            counts, marks = np.zeros(n_rows, np.uint16), np.zeros(n_terms, np.uint8)
        return grown(counts, n_rows, fill=0), grown(marks, n_terms, fill=0)

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + self.lists.nbytes + self.orders.nbytes + self._representatives.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        order_arrays, order_header = self.orders.state()
        more = order_arrays | self.lists.state() | self._representatives.state()
        return arrays | more, header | order_header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.orders.restore(arrays, header)
        self.lists.restore(arrays)
        self._representatives.restore(arrays)
