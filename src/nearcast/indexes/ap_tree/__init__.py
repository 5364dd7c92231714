"""AP-tree: each node divides its rows by words or by place, whichever a cost model says is cheaper.

Paper      ap-tree
Idea       Order the terms by falling frequency. Divide the rows of a node into cuts of the next term, or into the cells
           of a grid, whichever leaves fewer rows to verify for an expected message. Continue until a leaf has theta_p
           rows.
Layout     nodes of 32 bytes, cuts of 12, cells of 4; an entry of a leaf has the row, its float32 box rounded outward,
           and its three rarest terms: 32 bytes.
Cost       insert and remove O(copies x depth x log f); match O(cuts and cells hit, and the entries of their leaves);
           about 32 bytes a copy and 90 a node; at most `copies` copies of a row on average.
Deviates   A cut of several terms may be divided by the same term again. Rows that do not differ in a term skip it. A
           grid has fewer than f cells where f would make too many copies. See docs/explanation/ap-tree.md.

layout.py describes the arrays. A build uses cuts.py and cells.py (the two kinds of division), division.py (the choice)
and build.py. A change uses route.py (where a row belongs) and change.py; pack.py copies a loose tree. search.py
and view.py match.
"""

from __future__ import annotations

import math

import numpy as np

from nearcast.geo.space import Space
from nearcast.indexes.ap_tree.division import Settings
from nearcast.indexes.ap_tree.layout import K_NODE, LEAF, S_NODE
from nearcast.indexes.ap_tree.search import Scratch
from nearcast.indexes.ap_tree.tree import ApTreeStore
from nearcast.indexes.ap_tree.view import ApTreeView, PointMemory
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.expected_messages import SampledMethod
from nearcast.structures.scratch import ZeroedPool


class ApTree(SampledMethod):
    name = "ap-tree"
    paper = "ap-tree"
    effort_ceiling = 0.3
    checked_with = (
        "",
        "f=3 theta_p=2",
        "f=4 theta_p=3 partition=dp",
        "f=5 theta_p=2 priority=keyword",
        "f=4 theta_p=3 priority=space copies=8",
    )
    structure: ApTreeStore

    def __init__(  # noqa: PLR0913  options: the contract reads their names and defaults from here
        self,
        store: RowStore,
        space: Space,
        f: int = 200,
        theta_p: int = 40,
        partition: str = "hr",
        priority: str = "cost",
        copies: float = 4.0,
        theta_kl: float = 0.001,
        rebuild: bool = True,
    ) -> None:
        super().__init__(store, space)
        settings = Settings(f, theta_p, partition, priority, copies, theta_kl, rebuild)
        self.structure = ApTreeStore(store, space, settings)
        if not rebuild:
            self.rebuild_growth = math.inf  # of this one: it keeps its first division for ever
        self._scratch, self._memory = ZeroedPool(Scratch, np.uint64, np.uint64), PointMemory()

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self.searcher(self.store.view()).match(messages)

    def searcher(self, store: StoreView) -> ApTreeView:
        return ApTreeView(self.structure.tree.view, self.structure.ranks, store, self._scratch, self._memory)

    @property
    def plan(self) -> str:
        """The number of nodes of each kind, and the work done to keep the division fit."""
        kinds, done = self.structure.tree.kinds, self.structure.done
        return (
            f"{self.name}: {kinds[K_NODE]:,} k-nodes, {kinds[S_NODE]:,} s-nodes, {kinds[LEAF]:,} leaves, "
            f"{self.structure.tree.copies:.2f} entries a row; {done.splits:,} splits, {done.collapses:,} collapses, "
            f"{done.rebuilds:,} nodes of {done.rebuilt_rows:,} rows built anew for drift"
        )
