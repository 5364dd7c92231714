"""R^t+-tree: an R-tree whose nodes know one token of each row below them.

Paper      rt-tree
Idea       A row matches only where its representative token occurs, so nodes need not know the others: fewer tokens,
           more pruning. The rarest token of the row's neighbourhood prunes best.
Layout     a packed R-tree in flat arrays, the representative of each row, by row and beside it in its leaf, and one
           hash table (node, term) -> rows below that stand with it; for `locality` another one, (cell, term) -> rows.
Cost       insert and remove O(height x B + terms); match O(nodes visited x (B + terms of the message)); 57 bytes a
           row for the tree, about 20 for each (node, representative) and each (cell, term).
Deviates   as rt-tree. A row keeps the representative that it was given; by `locality` equals are told apart by the
           rarest of all; `df` covers greedily when built and takes the most frequent term of a row that comes later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.indexes.rt_plus_tree.rank import RtPlusTreeRank as RtPlusTreeRank
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.rtree.represented import RepresentedTree
from nearcast.structures.rtree.term_search import search
from nearcast.structures.rtree.term_sets import EVERY_TERM, Chosen, TokenSets
from nearcast.structures.term_order import NO_TERM


class RtPlusTree(RepresentedTree):
    name = "rt+-tree"
    kinds = ("match", "rank")
    effort_ceiling = 0.15

    def start(self) -> None:
        self.sets = TokenSets()
        self.chosen = EVERY_TERM._replace(of_rows=np.full(1, NO_TERM, np.int32))  # never empty: that is every term

    def build(self, rows: np.ndarray) -> None:
        self._representatives.start(rows)
        of_rows = np.full(max(1, self.store.high), NO_TERM, np.int32)
        of_rows[rows] = self._representatives.cover(rows)
        self.chosen = EVERY_TERM._replace(of_rows=of_rows)
        super().build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self._representatives.add(rows)
        of_rows = grown(self.chosen.of_rows, self.store.high, fill=NO_TERM)
        of_rows[rows] = self._representatives.firsts(rows)
        self.chosen = self.chosen._replace(of_rows=of_rows)
        super().insert(rows)

    def hang_all(self) -> None:
        self.chosen = self.chosen.sized(self.tree.arrays)
        self.sets.build(self.tree.arrays, self.store.arrays, self.chosen)

    def insert_some(self, rows: np.ndarray, done: int) -> int:
        self.chosen = self.chosen.sized(self.tree.arrays)
        return self.sets.insert(self.tree.arrays, self.store.arrays, self.chosen, rows, done)

    def remove_some(self, rows: np.ndarray, done: int) -> int:
        return self.sets.remove(self.tree.arrays, self.store.arrays, self.chosen, rows, done)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return search(self.tree.arrays, self.sets, self.chosen, self.store, messages)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.sets.nbytes + self.chosen.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        chosen = {f"chosen_{name}": array for name, array in self.chosen._asdict().items()}
        return arrays | self.sets.state() | chosen, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.sets.restore(arrays)
        self.chosen = Chosen(*(arrays[f"chosen_{name}"] for name in Chosen._fields))
