"""PT-Quadtree: a quadtree over boxes whose nodes know one pivotal token of each row below them.

Paper      lfilter
Idea       A point is in one cell a level. A cell is skipped where no pivotal token of it occurs in the message; a token
           that all four quarters have is asked for once, for all of them.
Layout     nodes in flat arrays, lists of (row, rarest term, float32 box) in one arena, one hash table (node, token) ->
           how often; the pivotal token of each row.
Cost       insert and remove O(copies x (depth + entries of a list)); match O(nodes visited x tokens + entries of their
           lists); 24 bytes an entry, about 20 for each (node, token).
Deviates   a row has one pivotal token for all its leaves, by one greedy cover; lists are pushed down to where a row
           needs at most `copies` cells, not always to the leaves; entries show the rarest term, which most rows lack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.search import quadtree_view, search
from nearcast.structures.quadtree.tree import PivotalQuadtree, QuadOptions

_LISTS = ("leaf", "mx-cif")


class PtQuadtree(Method):
    name = "pt-quadtree"
    paper = "lfilter"
    effort_ceiling = 0.15
    checked_with = ("", "tau_num=2 copies=4", "tau_num=1 lists=mx-cif", "tau_num=3 tau_area=0.01 copies=64", "depth=2")

    def __init__(
        self,
        store: RowStore,
        space: Space,
        lists: str = "leaf",
        tau_num: int = QuadOptions().tau_num,
        tau_area: float = QuadOptions().tau_area,
        depth: int = QuadOptions().depth,
        copies: int = QuadOptions().copies,
    ) -> None:
        super().__init__(store, space)
        if lists not in _LISTS:
            raise InvalidInput(f"lists is one of {', '.join(_LISTS)}, not {lists!r}")
        self.tree = PivotalQuadtree(
            store, space, QuadOptions(tau_num, tau_area, depth, copies if lists == "leaf" else 1)
        )

    def build(self, rows: np.ndarray) -> None:
        self.tree.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self.tree.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.tree.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        marks = np.zeros(self.store.n_terms, np.uint8)
        starts = np.zeros(messages.size + 1, np.int64)
        rows, nodes, seen = search(quadtree_view(self.tree.arrays), self.store.arrays, messages, marks, starts)
        return Hits(rows, starts), Work(nodes, seen, len(rows))

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.tree.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.tree.restore(arrays)
