"""PT-Quadtree: a quadtree over boxes whose nodes know the pivotal tokens of the rows below them, one for each row.

Paper      lfilter
Idea       A point lies in one cell of each level. A cell is skipped if the message has none of its pivotal tokens; a
           token that all four quarters have is looked up once for all of them.
Layout     nodes in flat arrays; lists of (row, rarest term, float32 box) in one arena; one hash table (node, pivotal
           term) -> count; the pivotal term of each row.
Cost       insert and remove O(copies x (depth + entries of a list)); match O(nodes visited x tokens + entries of their
           lists); 24 bytes an entry, about 20 for each (node, token).
Deviates   A row has one pivotal token for all its leaves, from one greedy cover. Rows move down only to the level
           where they need at most `copies` cells, not always to the leaves. Entries hold the row's rarest term, which
           few messages have.
"""

from __future__ import annotations

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.quadtrees import PivotalQuadtree, QuadOptions
from nearcast.structures.quadtree.search import quadtree_view, search
from nearcast.structures.structure_method import StructureMethod, run_search

_LISTS = ("leaf", "mx-cif")


class PtQuadtree(StructureMethod):
    name = "pt-quadtree"
    paper = "lfilter"
    effort_ceiling = 0.15
    checked_with = ("", "tau_num=2 copies=4", "tau_num=1 lists=mx-cif", "tau_num=3 tau_area=0.01 copies=64", "depth=2")
    structure: PivotalQuadtree

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
        options = QuadOptions(tau_num, tau_area, depth, copies if lists == "leaf" else 1)
        self.structure = PivotalQuadtree(store, space, options)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return run_search(search, (quadtree_view(self.structure.arrays),), self.store, messages)
