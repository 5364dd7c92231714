"""Base class of the rank methods over an R-tree."""

from __future__ import annotations

from typing import ClassVar, cast

from nearcast.geo.space import Space
from nearcast.matching.row_params import RankParams
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.ranked_rtree.annotations import NodeAnnotations
from nearcast.structures.ranked_rtree.search import search
from nearcast.structures.ranked_rtree.terms import RankedRows
from nearcast.structures.rtree.tree import RTree
from nearcast.structures.rtree.tree_method import AnnotatedTree


class RankTree(AnnotatedTree):
    """Subclasses set the style in which rows are filed (see terms.py). Nodes have `b` to `B` entries."""

    kind = "rank"
    takes_termless_rows = True
    style: ClassVar[int]
    effort_ceiling = 0.2  # all rows are read where that is cheaper
    checked_with = ("", "b=2 B=4", "b=3 B=8")
    annotations: NodeAnnotations

    def __init__(self, store: RowStore, space: Space, b: int = 25, B: int = 50) -> None:
        super().__init__(store, space)
        self.tree = RTree(b, B)
        self.annotations = NodeAnnotations()

    def view(self) -> RankedRows:
        return RankedRows(self.store.arrays, cast(RankParams, self.store.params).arrays, self.style)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return search(self.tree.arrays, self.annotations.arrays, self.view(), messages, self.store.n_terms)
