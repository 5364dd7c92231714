"""R^t++-tree: an R-tree that meets another token of a row at each level.

Paper      rt-tree
Idea       The i-th token of a row stands at its i-th ancestor, in an inverted list there. A row that was met i times
           at depth i is in time; a subtree without one is skipped; a row met as often as it has tokens holds where
           its box overlaps.
Layout     a packed R-tree in flat arrays, the terms of each row in order, one hash table (node, term) -> list, and
           lists of 20 bytes an entry (row, box in float32 rounded outward); one row alone lies in the table.
Cost       insert and remove O(height x B + terms); match O(lists read); 47 bytes a row for the tree, 8 + 4 for each
           term in order, about 19 a list, 40 more and 20 for each entry where it has several.
Deviates   as rt-tree. An entry's box is tested before it is counted, so a row that cannot overlap keeps no subtree
           alive. A row in time leads to its own child alone, and is asked for its next token there where the lists
           would take longer (level_search.py). The root has no lists unless it is a leaf. When the height changes all
           lists are made anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.indexes.rt_plus_plus_tree.level_lists import Held, LevelLists
from nearcast.indexes.rt_plus_plus_tree.rank import RtPlusPlusTreeRank as RtPlusPlusTreeRank
from nearcast.indexes.rt_plus_plus_tree.row_orders import RowOrders
from nearcast.indexes.rt_plus_plus_tree.search import Scratch, search
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.rtree.represented import RepresentedTree


class RtPlusPlusTree(RepresentedTree):
    name = "rt++-tree"
    effort_ceiling = 0.3  # by `df`, the worst order; 0.05 by the default

    def start(self) -> None:
        self.orders = RowOrders()
        self.lists = LevelLists()
        self._spare: list[Scratch] = []  # one for each thread at work

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

    def _scratch(self) -> Scratch:
        """One that no other thread has; terms may have come with rows of other structures."""
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = Scratch.empty()
        return scratch.sized(self.store.high, len(self.tree.arrays.counts), self.store.n_terms)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.lists.nbytes + self.orders.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        order_arrays, order_header = self.orders.state()
        return arrays | order_arrays | self.lists.state(), header | order_header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.orders.restore(arrays, header)
        self.lists.restore(arrays)
