"""R^t-tree: an R-tree whose nodes know all terms of the rows below them.

Paper      rt-tree
Idea       Skip a node if its box misses the message, or if no row below it has a term of the message; compare the rows
           of the remaining leaves exactly. Kind `rank`: also skip a node if no row below it can reach its threshold.
           The overlap of the node over the smallest area below it bounds place; the weight of the message's terms in
           the node over the smallest own weight below it bounds words.
Layout     a packed R-tree in flat arrays, and one hash table (node, term) -> rows below that have it. Kind `rank`: also
           twelve numbers a node, and lists at the root of the rows that words alone may deliver.
Cost       insert and remove O(height x (B + terms)); match O(nodes visited x (B + terms of the message)); 47 bytes a
           row for the tree, about 20 for each (node, term).
Deviates   boxes overlap by intervals, not by a vertex of one in the other; a node with too few entries merges with a
           sibling instead of being inserted again; a long message tests the rows of a leaf instead of its set, which
           gives the same answer. Kind `rank`: each row has its own alpha and threshold, so a node keeps the largest
           surplus over the threshold at the four corners of (place, words) instead of one alpha
           (ranked_rtree/bounds.py); a score equal to the threshold is delivered.
"""

from __future__ import annotations

from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.ranked_rtree.terms import EVERY
from nearcast.structures.ranked_rtree.tree import RankTree
from nearcast.structures.rtree.term_search import search
from nearcast.structures.rtree.term_sets import EVERY_TERM, TermRows, TermSets
from nearcast.structures.rtree.tree_method import TreeMethod


class RtTree(TreeMethod):
    name = "rt-tree"
    effort_ceiling = 0.2
    annotated_by = TermSets

    def view(self) -> TermRows:
        return TermRows(self.store.arrays, EVERY_TERM)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return search(self.tree.arrays, self.annotations.arrays, self.view(), self.store.n_terms, messages)


class RtTreeRank(RankTree):
    name = "rt-tree"
    style = EVERY
