"""IQ-Tree: a quadtree in which a cost model picks the cells of each row; a cell files rows under their rarest token.

Paper      ap-tree
Idea       Place first: a message visits the cells at its place on every level, and in each the lists of its tokens. A
           row with a rare token lies in few large cells, a row with a frequent token in many small ones, which follow
           its box closely.
Layout     nodes in flat arrays; one hash table (node, term) -> list; lists of (row, second rarest term, float32 box) in
           one arena; for each row its rarest term and how often messages are expected to have it.
Cost       insert and remove O(cells x depth + entries of a list); match O(levels x tokens + entries read); 24 bytes an
           entry, about 40 a list, 60 a node.
Deviates   The paper only cites another paper's cost model. Ours: a cell costs a row 1 for the copy, and 1 for each of
           `horizon` messages that is in the cell and has the row's rarest token. A row takes the cheapest cells.
"""

from __future__ import annotations

from nearcast.geo.space import Space
from nearcast.indexes.iq_tree.search import search
from nearcast.indexes.iq_tree.tree import CellTree
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.expected_messages import SampledMethod
from nearcast.structures.structure_method import run_search


class IqTree(SampledMethod):
    name = "iq-tree"
    paper = "ap-tree"
    effort_ceiling = 0.1
    checked_with = ("", "horizon=1", "horizon=50 depth=2", "horizon=20000 depth=5", "horizon=5000 depth=24")
    structure: CellTree

    def __init__(self, store: RowStore, space: Space, horizon: int = 3_000, depth: int = 16) -> None:
        super().__init__(store, space)
        self.structure = CellTree(store, space, horizon, depth)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return run_search(search, (self.structure.arrays,), self.store, messages)

    @property
    def plan(self) -> str:
        nodes, lists, entries = self.structure.counts
        return f"{self.name}: {nodes:,} nodes, {lists:,} lists, {entries:,} entries"
