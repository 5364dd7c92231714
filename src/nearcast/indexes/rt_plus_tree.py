"""R^t+-tree: an R-tree whose nodes know one term of each row below them.

Paper      rt-tree
Idea       A row matches only where its representative term occurs, so nodes need not know its other terms: fewer terms
           prune more. The term that is rarest in the row's neighbourhood prunes best. Kind `rank`: a row is
           represented by its heaviest terms, without which the other terms cannot lift it over its threshold: one
           prefix for messages that overlap it, and a shorter one, at the root, for messages that do not.
Layout     a packed R-tree in flat arrays, the representative of each row, by row and beside the row in its leaf, and
           one hash table (node, term) -> rows below that it represents; for `locality` another one, (cell, term) ->
           rows. Kind `rank`: the table (node, prefix term) -> rows below, twelve numbers a node, and lists at the root
           of the rows that words alone may deliver.
Cost       insert and remove O(height x B + terms); match O(nodes visited x (B + terms of the message)); 57 bytes a
           row for the tree, about 20 for each (node, representative) and each (cell, term).
Deviates   as rt-tree. A row keeps its representative until it is removed; `locality` breaks ties by the frequency among
           all rows; `df` covers greedily at a build, and takes the most frequent term of a row that is inserted later.
           Kind `rank`: each row has its own alpha and threshold; prefixes follow falling weight (idf, unless other
           weights are given), not place; the bounds of rt-tree are tested first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.ranked_rtree.terms import PREFIX
from nearcast.structures.ranked_rtree.tree import RankTree
from nearcast.structures.rtree.term_search import search
from nearcast.structures.rtree.term_sets import EVERY_TERM, Chosen, TermRows, TermSets
from nearcast.structures.rtree.tree_method import RepresentedTree
from nearcast.structures.term_order import NO_TERM


class RtPlusTree(RepresentedTree):
    name = "rt+-tree"
    effort_ceiling = 0.15
    annotated_by = TermSets

    def make_empty(self) -> None:
        self.chosen = EVERY_TERM._replace(of_rows=np.full(1, NO_TERM, np.int32))  # not empty: that means every term

    def view(self) -> TermRows:
        self.chosen = self.chosen.sized(self.tree.arrays)
        return TermRows(self.store.arrays, self.chosen)

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

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        view = TermRows(self.store.arrays, self.chosen)
        return search(self.tree.arrays, self.annotations.arrays, view, self.store.n_terms, messages)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.chosen.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        return arrays | {f"chosen_{name}": array for name, array in self.chosen._asdict().items()}, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.chosen = Chosen(*(arrays[f"chosen_{name}"] for name in Chosen._fields))


class RtPlusTreeRank(RankTree):
    name = "rt+-tree"
    style = PREFIX
