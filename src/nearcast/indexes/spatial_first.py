"""Spatial first: lists by place.

Paper      baseline; the spatial-first competitor of all four papers.
Idea       File each row under one cell of a hierarchy of grids. A message reads the few cells whose rows may reach it
           and filters by terms.
Layout     a loose grid (cell -> list) and one posting list a cell; an entry has the row, its box in float32 rounded
           outward, and its rarest term.
Cost       insert O(1); match O(cells of 17 levels + their entries); 32 bytes a row and 30 a cell.
Deviates   the papers use an R-tree; a grid by box size prunes as much without a tree to descend, and takes inserts.
"""

from __future__ import annotations

from nearcast.geo.space import Space
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.spatial_lists import SpatialLists, SpatialListsView
from nearcast.structures.structure_method import StructureMethod


class SpatialFirst(StructureMethod):
    name = "spatial-first"
    paper = "baseline"
    cost_ns = (100.0, 3.0)
    effort_ceiling = 0.2
    changes_in_place = False
    structure: SpatialLists

    def __init__(self, store: RowStore, space: Space) -> None:
        super().__init__(store, space)
        self.structure = SpatialLists(store, space)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self.searcher(self.store.view()).match(messages)

    def searcher(self, store: StoreView) -> SpatialListsView:
        return self.structure.view(store)
