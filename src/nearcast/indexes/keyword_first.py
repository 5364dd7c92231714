"""Keyword first: lists by the rarest term.

Paper      baseline; the keyword-first competitor of all four papers.
Idea       File each row under its rarest term only. A message reads the lists of its terms and filters by box.
Layout     one posting list a term; an entry has the row, its box in float32 rounded outward, and its second rarest
           term.
Cost       insert O(terms of the row); match O(length of the message's lists); 32 bytes a row and 16 a term.
Deviates   the papers scan ids and fetch each subscription; here an entry contains the box and a second term.
"""

from __future__ import annotations

from nearcast.geo.space import Space
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.keyword_lists import KeywordLists, KeywordListsView
from nearcast.structures.structure_method import StructureMethod


class KeywordFirst(StructureMethod):
    name = "keyword-first"
    paper = "baseline"
    cost_ns = (60.0, 2.2)
    effort_ceiling = 0.1
    changes_in_place = False
    structure: KeywordLists

    def __init__(self, store: RowStore, space: Space) -> None:
        super().__init__(store, space)
        self.structure = KeywordLists(store)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self.searcher(self.store.view()).match(messages)

    def searcher(self, store: StoreView) -> KeywordListsView:
        return KeywordListsView(self.structure.arrays, store)
