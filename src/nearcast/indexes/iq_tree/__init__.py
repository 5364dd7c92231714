"""IQ-Tree: a quadtree whose rows lie in the cells that a cost model picks, in each cell under their rarest word.

Paper      ap-tree
Idea       Place first: a message reads the cells at its place, of every level, and in each the lists of its tokens. A
           row lies in few large cells where its rarest token is seldom met, in many small ones where it often is.
Layout     nodes in flat arrays, one hash table (node, term) -> list, lists of (row, second rarest term, float32 box) in
           one arena; the term of each row and how often that is met.
Cost       insert and remove O(cells x depth + entries of a list); match O(levels x tokens + entries met); 24 bytes an
           entry, about 40 a list, 60 a node.
Deviates   The cost model is another paper's, and cited only; ours: a cell costs a row one copy, and one verification
           for each of `horizon` messages that has its rarest token and is in the cell; the cheapest cells are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.geo.space import Space
from nearcast.indexes.iq_tree.search import search
from nearcast.indexes.iq_tree.tree import CellTree
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work


class IqTree(Method):
    name = "iq-tree"
    paper = "ap-tree"
    effort_ceiling = 0.1
    checked_with = ("", "horizon=1", "horizon=50 depth=2", "horizon=20000 depth=5", "horizon=5000 depth=24")

    def __init__(self, store: RowStore, space: Space, horizon: int = 3_000, depth: int = 16) -> None:
        super().__init__(store, space)
        self.tree = CellTree(store, space, horizon, depth)

    def expect(self, messages: MessageBatch) -> None:
        self.tree.expect(messages)

    @property
    def expected(self) -> MessageBatch | None:
        return self.tree.sample

    def build(self, rows: np.ndarray) -> None:
        self.tree.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self.tree.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.tree.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        marks = np.zeros(self.store.n_terms, np.uint8)
        starts = np.zeros(messages.size + 1, np.int64)
        rows, nodes, seen = search(self.tree.arrays, self.store.arrays, messages, marks, starts)
        return Hits(rows, starts), Work(nodes, seen, len(rows))

    @property
    def plan(self) -> str:
        """What the tree is made of."""
        nodes, lists, entries = self.tree.counts
        return f"{self.name}: {nodes:,} nodes, {lists:,} lists, {entries:,} entries"

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.tree.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.tree.restore(arrays)
