"""R^t+-tree: an R-tree whose nodes know one token of each row below them.

Paper      rt-tree
Idea       A row matches only where its representative token occurs, so nodes need not know the others: fewer tokens,
           more pruning. The rarest token of the row's neighbourhood prunes best.
Layout     a packed R-tree in flat arrays, the representative of each row, and one hash table (node, term) -> rows below
           that stand with it; for `locality` another one, (cell, term) -> rows.
Cost       insert and remove O(height x B + terms); match O(nodes visited x (B + terms of the message)); 51 bytes a
           row for the tree, about 20 for each (node, representative) and each (cell, term).
Deviates   as rt-tree. A row keeps the representative that it was given; by `locality` equals are told apart by the
           rarest of all; `df` covers greedily when built and takes the most frequent term of a row that comes later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.geo.space import Space
from nearcast.matching.representative import Representatives
from nearcast.matching.rtree.token_search import search
from nearcast.matching.rtree.token_sets import TokenSets
from nearcast.matching.rtree.tree_method import TreeMethod
from nearcast.matching.store import RowStore
from nearcast.matching.term_order import NO_TERM
from nearcast.model import Hits, MessageBatch, Work


class RtPlusTree(TreeMethod):
    name = "rt+-tree"
    kinds = ("match", "rank")
    effort_ceiling = 0.15
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
        self.sets = TokenSets()
        self.token_of_row = np.full(1, NO_TERM, np.int32)  # by row; never empty, which would mean every term

    def build(self, rows: np.ndarray) -> None:
        self._representatives.start(rows)
        self.token_of_row = np.full(max(1, self.store.high), NO_TERM, np.int32)
        self.token_of_row[rows] = self._representatives.cover(rows)
        super().build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self._representatives.add(rows)
        self.token_of_row = grown(self.token_of_row, self.store.high, fill=NO_TERM)
        self.token_of_row[rows] = self._representatives.firsts(rows)
        super().insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        super().remove(rows)
        self._representatives.forget(rows)

    def hang_all(self) -> None:
        self.sets.build(self.tree.arrays, self.store.arrays, self.token_of_row)

    def insert_some(self, rows: np.ndarray, done: int) -> int:
        return self.sets.insert(self.tree.arrays, self.store.arrays, self.token_of_row, rows, done)

    def remove_some(self, rows: np.ndarray, done: int) -> int:
        return self.sets.remove(self.tree.arrays, self.store.arrays, self.token_of_row, rows, done)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return search(self.tree.arrays, self.sets, self.token_of_row, self.store, messages)

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + self.sets.nbytes + self._representatives.nbytes + int(self.token_of_row.nbytes)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        return arrays | self.sets.state() | self._representatives.state() | {"chosen": self.token_of_row}, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.sets.restore(arrays)
        self._representatives.restore(arrays)
        self.token_of_row = arrays["chosen"]
