"""RQ-Tree: a list for each word, a row under its rarest one, and a quadtree over the boxes of each list.

Paper      ap-tree
Idea       Words first: a message reads the lists of its tokens alone, and in long ones the cells at its place.
Layout     the root of each term, nodes of all trees in flat arrays, lists of (row, second rarest term, float32 box) in
           one arena; the term of each row.
Cost       insert and remove O(copies x (depth + entries of a list)); match O(tokens + nodes and entries met); 24 bytes
           an entry, 60 a node.
Deviates   The cost model that places boxes in cells is another paper's; here a box lies at the deepest level where it
           needs at most `copies` cells, and a list of fewer than `tau_num` rows stays plain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.geo.space import Space
from nearcast.indexes.rq_tree.forest import QuadForest, search_forest
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.growth import QuadOptions


class RqTree(Method):
    name = "rq-tree"
    paper = "ap-tree"
    effort_ceiling = 0.05
    checked_with = ("", "tau_num=2", "tau_num=1 copies=1 depth=5", "tau_num=5 copies=16 tau_area=0.01")

    def __init__(
        self,
        store: RowStore,
        space: Space,
        tau_num: int = 64,
        tau_area: float = QuadOptions().tau_area,
        depth: int = QuadOptions().depth,
        copies: int = QuadOptions().copies,
    ) -> None:
        super().__init__(store, space)
        self.forest = QuadForest(store, space, QuadOptions(tau_num, tau_area, depth, copies))

    def build(self, rows: np.ndarray) -> None:
        self.forest.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self.forest.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.forest.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        marks = np.zeros(self.store.n_terms, np.uint8)
        starts = np.zeros(messages.size + 1, np.int64)
        forest, store = self.forest, self.store.arrays
        rows, nodes, seen = search_forest(forest.arrays, forest.roots, store, messages, marks, starts)
        return Hits(rows, starts), Work(nodes, seen, len(rows))

    @property
    def nbytes(self) -> int:
        return self.forest.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.forest.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.forest.restore(arrays)
