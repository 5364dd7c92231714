"""What the rank methods over a tree have in common: what hangs on its nodes follows, and is searched."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np

from nearcast.geo.space import Space
from nearcast.matching.row_params import RankParams
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.ranked_rtree.annotations import Hung
from nearcast.structures.ranked_rtree.level_search import search as search_lists
from nearcast.structures.ranked_rtree.search import search as search_sets
from nearcast.structures.ranked_rtree.tokens import LEVELS, RankedRows
from nearcast.structures.rtree.tree import RTree
from nearcast.structures.rtree.tree_method import OnTree


class RankTree(OnTree):
    """Subclasses say with which tokens rows stand (rank_tokens.py). Nodes have `b` to `B` entries."""

    kind = "rank"
    takes_termless_rows = True
    style: ClassVar[int]

    def __init__(self, store: RowStore, space: Space, b: int = 25, B: int = 50) -> None:
        super().__init__(store, space)
        self.tree = RTree(b, B)
        self.hung = Hung()

    @property
    def held(self) -> RankedRows:
        return RankedRows(self.store.arrays, cast(RankParams, self.store.params).arrays, self.style)

    def hang_all(self) -> None:
        self.hung.build(self.tree.arrays, self.held)

    def insert_some(self, rows: np.ndarray, done: int) -> int:
        return self.hung.insert(self.tree.arrays, self.held, rows, done)

    def remove_some(self, rows: np.ndarray, done: int) -> int:
        return self.hung.remove(self.tree.arrays, self.held, rows, done)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        search = search_lists if self.style == LEVELS else search_sets
        return search(self.tree.arrays, self.hung, self.held, messages, self.store.n_terms)

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + self.hung.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        return arrays | self.hung.state(), header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.hung.restore(arrays)
