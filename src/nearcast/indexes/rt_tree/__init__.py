"""R^t-tree: an R-tree whose nodes know all tokens below them.

Paper      rt-tree
Idea       Skip a node when its box misses the message or when its tokens share none with the message; verify the rows
           of the leaves that are left.
Layout     a packed R-tree in flat arrays, and one hash table (node, term) -> rows below that have it.
Cost       insert and remove O(height x (B + terms)); match O(nodes visited x (B + terms of the message)); 47 bytes a
           row for the tree, about 20 for each (node, term).
Deviates   boxes overlap by intervals, not by a vertex of one in the other; nodes with too few entries join a sibling
           instead of being inserted again; a long message asks a leaf's rows instead of its set, which is the same
           question.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.geo.space import Space
from nearcast.indexes.rt_tree.rank import RtTreeRank as RtTreeRank
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.rtree.term_search import search
from nearcast.structures.rtree.term_sets import EVERY_TERM, TokenSets
from nearcast.structures.rtree.tree_method import TreeMethod


class RtTree(TreeMethod):
    name = "rt-tree"
    kinds = ("match", "rank")
    effort_ceiling = 0.2
    checked_with = ("", "b=2 B=4", "b=3 B=8")

    def __init__(self, store: RowStore, space: Space, b: int = 25, B: int = 50) -> None:
        super().__init__(store, space, b, B)
        self.sets = TokenSets()

    def hang_all(self) -> None:
        self.sets.build(self.tree.arrays, self.store.arrays, EVERY_TERM)

    def insert_some(self, rows: np.ndarray, done: int) -> int:
        return self.sets.insert(self.tree.arrays, self.store.arrays, EVERY_TERM, rows, done)

    def remove_some(self, rows: np.ndarray, done: int) -> int:
        return self.sets.remove(self.tree.arrays, self.store.arrays, EVERY_TERM, rows, done)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return search(self.tree.arrays, self.sets, EVERY_TERM, self.store, messages)

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + self.sets.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        return arrays | self.sets.state(), header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.sets.restore(arrays)
