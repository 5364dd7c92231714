"""R^t-tree for kind `rank`: an R-tree whose nodes know all tokens below them, and bounds on the scores.

Paper      rt-tree
Idea       Bound place by the overlap of a node over the smallest area below it, words by the weight of the message's
           terms among its tokens over the smallest own weight; skip the node where no row can reach its threshold by
           both.
Layout     a packed R-tree, one hash table (node, term) -> rows below that have it, twelve numbers a node; lists at the
           root of rows that words alone may deliver.
Cost       insert and remove O(height x (B + terms)); match O(nodes visited x (B + terms of the message)); 47 bytes a
           row for the tree, about 20 for each (node, term).
Deviates   alpha and threshold are each row's own, so a node keeps the best surplus over the threshold at the four
           corners of (place, words) instead of one alpha (rank_bounds.py); equality is delivered; otherwise as for kind
           `match`.
"""

from __future__ import annotations

from nearcast.structures.ranked_rtree.tokens import EVERY
from nearcast.structures.ranked_rtree.tree import RankTree


class RtTreeRank(RankTree):
    name = "rt-tree"
    style = EVERY
    effort_ceiling = 0.2
    checked_with = ("", "b=2 B=4", "b=3 B=8")
