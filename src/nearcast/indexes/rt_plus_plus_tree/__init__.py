"""R^t++-tree: an R-tree that tests another term of a row at each level.

Paper      rt-tree
Idea       The i-th term of a row is in an inverted list of its i-th ancestor. A row that was found i times at depth i
           is on schedule; a subtree without such a row is skipped; a row that was found as often as it has terms
           matches if its box overlaps. Kind `rank`: the i-th term of a row's near prefix is in a list of its i-th
           ancestor. A row is scored where its heaviest term in the message is listed; a subtree is skipped if its rows,
           without the heavier terms, cannot reach their thresholds.
Layout     a packed R-tree in flat arrays, the terms of each row in order, one hash table (node, term) -> list, and
           lists with 20 bytes an entry (row, box in float32 rounded outward); a single row lies in the table. Kind
           `rank`: the same lists and twelve numbers a node; rows that words alone may deliver are listed at the root.
Cost       insert and remove O(height x B + terms); match O(lists read); 47 bytes a row for the tree, 8 + 4 for each
           term in order, about 19 a list, and for a list of several rows 40 more and 20 for each entry.
Deviates   as rt-tree. The box of an entry is tested before the entry is counted, so a row that cannot overlap keeps no
           subtree alive. A row on schedule leads to its own child only, and its next term is tested there where the
           lists would take longer (search.py). The root has no lists unless it is a leaf. All lists are rebuilt when
           the height changes. Kind `rank`: a row is scored at once from its few terms instead of adding up what is
           found level by level; the paper's rule that skips a subtree without a row found misses rows whose first terms
           are not found, so bounds decide instead (proof in ranked_rtree/level_search.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.indexes.rt_plus_plus_tree.level_lists import LevelLists, OrderedRows, RowOrders
from nearcast.indexes.rt_plus_plus_tree.search import Scratch, search
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.ranked_rtree.terms import LEVELS
from nearcast.structures.ranked_rtree.tree import RankTree
from nearcast.structures.rtree.tree_method import RepresentedTree
from nearcast.structures.scratch import ScratchPool


class RtPlusPlusTree(RepresentedTree):
    name = "rt++-tree"
    effort_ceiling = 0.3  # by `df`, the worst order; 0.05 by the default
    annotated_by = LevelLists

    def make_empty(self) -> None:
        self.orders = RowOrders()
        self._scratch = ScratchPool(Scratch.empty)

    def view(self) -> OrderedRows:
        return OrderedRows(self.store.arrays, self.orders.arrays)

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

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        with self._scratch.borrow(self._fitted) as scratch:
            return search(self.tree.arrays, self.annotations.arrays, self.view(), messages, scratch)

    def _fitted(self, scratch: Scratch) -> Scratch:
        """With room for all rows, nodes and terms; rows of other structures may have brought more terms."""
        return scratch.sized(self.store.high, len(self.tree.arrays.counts), self.store.n_terms)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.orders.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        order_arrays, order_header = self.orders.state()
        return arrays | order_arrays, header | order_header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.orders.restore(arrays, header)


class RtPlusPlusTreeRank(RankTree):
    name = "rt++-tree"
    style = LEVELS
