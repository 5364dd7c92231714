"""R^t+-tree for kind `rank`: an R-tree whose nodes know the prefixes of the rows below them, and bounds on the scores.

Paper      rt-tree
Idea       A row's heaviest terms, without which the others cannot lift it over its threshold, stand for it: one prefix
           for messages that overlap, a shorter one at the root for those that do not. A node is skipped where it does
           not overlap, where the message has no token of its prefixes, or where its bounds say so.
Layout     a packed R-tree, one hash table (node, prefix token) -> rows below, twelve numbers a node; lists at the root
           of rows that words alone may deliver.
Cost       insert and remove O(height x (B + terms)); match O(nodes visited x (B + terms of the message)); 47 bytes a
           row for the tree, about 20 for each (node, prefix token).
Deviates   alpha and threshold are each row's own; terms stand by falling weight (idf, unless other weights are given),
           not by place; equality is delivered; the bounds of rt-tree are asked first.
"""

from __future__ import annotations

from nearcast.structures.ranked_rtree.tokens import PREFIX
from nearcast.structures.ranked_rtree.tree import RankTree


class RtPlusTreeRank(RankTree):
    name = "rt+-tree"
    style = PREFIX
    effort_ceiling = 0.2
    checked_with = ("", "b=2 B=4", "b=3 B=8")
