"""IR-tree: an R-tree with an inverted file in each node.

Paper      rt-tree
Idea       The keyword search tree of Cong et al. (PVLDB 2009), extended as the paper does for its comparison: visit a
           node if its box overlaps and its parent's file lists it under a term of the message; in a leaf, count the
           postings of each row.
Layout     a packed R-tree in flat arrays, and one hash table (node, term) -> the entries of the node that have the
           term, one bit each.
Cost       insert and remove O(height x (B + terms)); match O(nodes visited x (B + terms of the message)); 47 bytes a
           row for the tree, about 27 for each (node, term).
Deviates   a list of entries is the bits of one word, so B is at most 62; no weights, which only ranked search needs; a
           node with too few entries merges with a sibling instead of being inserted again.
"""

from __future__ import annotations

from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.indexes.ir_tree.entry_files import MOST_ENTRIES, EntryFiles
from nearcast.indexes.ir_tree.search import search
from nearcast.matching.store import RowArrays, RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.rtree.tree_method import TreeMethod
from nearcast.structures.structure_method import run_search


class IrTree(TreeMethod):
    name = "ir-tree"
    effort_ceiling = 0.1
    annotated_by = EntryFiles

    def __init__(self, store: RowStore, space: Space, b: int = 25, B: int = 50) -> None:
        super().__init__(store, space, b, B)
        if B > MOST_ENTRIES:
            raise InvalidInput(f"B is at most {MOST_ENTRIES} in an ir-tree, not {B}")

    def view(self) -> RowArrays:
        return self.store.arrays

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        """Candidates: the rows whose postings were counted."""
        return run_search(search, (self.tree.arrays, self.annotations.arrays), self.store, messages)
