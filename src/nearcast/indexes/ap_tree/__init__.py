"""AP-tree: rows divided by words or by place, node by node, as a cost model says.

Paper      ap-tree
Idea       Order the terms by falling frequency. Divide the rows of a node into cuts of the next term, or into the cells
           of a grid, whichever leaves fewer rows to verify for a message that is likely to come; go on until a leaf
           has theta_p rows.
Layout     nodes of 32 bytes, cuts of 12, cells of 4; an entry of a leaf holds the row, its box in float32 rounded
           outward, and its three rarest terms: 32 bytes.
Cost       insert and remove O(copies x depth x log f); match O(cuts and cells hit, and the entries of their leaves);
           about 32 bytes a copy and 90 a node; at most `copies` copies of a row on average.
Deviates   a cut of several terms may be cut again by the same term; rows without a difference skip a term; a grid has
           fewer cells where f would make too many copies; see docs/ap-tree.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.geo.space import Space
from nearcast.indexes.ap_tree.division import Settings
from nearcast.indexes.ap_tree.nodes import K_NODE, LEAF, S_NODE
from nearcast.indexes.ap_tree.search import match_tree
from nearcast.indexes.ap_tree.single import PointMatcher
from nearcast.indexes.ap_tree.tree import ApTreeStore
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work


class ApTree(Method):
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
        self.keeper = ApTreeStore(store, space, Settings(f, theta_p, partition, priority, copies, theta_kl, rebuild))
        if not rebuild:
            self.rebuild_growth = math.inf  # of this one: it keeps its first division for ever
        self._spare: list[tuple[np.ndarray, np.ndarray]] = []  # zeroed bits, one pair for each thread at work
        self._point_matcher = PointMatcher()

    def expect(self, messages: MessageBatch) -> None:
        self.keeper.expect(messages)

    @property
    def expected(self) -> MessageBatch | None:
        return self.keeper.sample

    def build(self, rows: np.ndarray) -> None:
        self.keeper.start(rows)
        self._point_matcher = PointMatcher()

    def insert(self, rows: np.ndarray) -> None:
        self.keeper.insert(rows)
        self._point_matcher = PointMatcher()

    def remove(self, rows: np.ndarray) -> None:
        self.keeper.remove(rows)
        self._point_matcher = PointMatcher()

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        starts = np.zeros(messages.size + 1, np.int64)
        scratch = self._scratch()
        by_term = self.keeper.ranks.by_term
        rows, nodes, seen = match_tree(self.keeper.tree.shape, self.store.arrays, by_term, messages, scratch, starts)
        self._spare.append(scratch)
        return Hits(rows, starts), Work(nodes, seen, len(rows))

    def match_point(self, terms: np.ndarray, x: float, y: float) -> tuple[np.ndarray, int, int]:
        if JIT_DISABLED:  # plain Python cannot read memory by address
            return super().match_point(terms, x, y)
        return self._point_matcher.match(self.keeper, self.store, terms, x, y)

    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """A zeroed bit for each rank and for each row, which no other thread has."""
        n_ranks, n_rows = (self.keeper.ranks.count >> 6) + 1, (self.store.high >> 6) + 1
        try:
            bits, seen = self._spare.pop()
        except IndexError:
            bits, seen = np.zeros(n_ranks, np.uint64), np.zeros(n_rows, np.uint64)
        return grown(bits, n_ranks, fill=0), grown(seen, n_rows, fill=0)

    @property
    def plan(self) -> str:
        """What the tree is made of, and what was done to keep it in shape."""
        kinds, done = self.keeper.tree.kinds, self.keeper.done
        return (
            f"{self.name}: {kinds[K_NODE]:,} k-nodes, {kinds[S_NODE]:,} s-nodes, {kinds[LEAF]:,} leaves, "
            f"{self.keeper.tree.copies:.2f} entries a row; {done.splits:,} splits, {done.collapses:,} collapses, "
            f"{done.rebuilds:,} nodes of {done.rebuilt_rows:,} rows built anew for drift"
        )

    @property
    def nbytes(self) -> int:
        return self.keeper.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.keeper.state()

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.keeper.restore(arrays, header)
        self._point_matcher = PointMatcher()
