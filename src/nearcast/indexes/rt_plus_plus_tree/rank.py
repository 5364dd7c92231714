"""R^t++-tree for kind `rank`: an R-tree that meets another token of a row at each level, and bounds on the scores.

Paper      rt-tree
Idea       The i-th token of a row's near prefix stands at its i-th ancestor, in a list there. A row is judged where its
           heaviest term found stands; a subtree is skipped where its rows, their heavier terms missed, cannot reach
           their thresholds. Rows that may be delivered wherever the message is stand at the root.
Layout     a packed R-tree, one hash table (node, token) -> list, lists of 20 bytes an entry (row, rounded box), twelve
           numbers a node.
Cost       insert and remove O(height x B + terms); match O(nodes visited x terms of the message + entries read); 47
           bytes a row for the tree, 20 and up for each prefix token, about 40 a list.
Deviates   a row is scored at once by its few terms instead of adding up what is found level by level; the rule of the
           text that a subtree without a row met is skipped misses rows whose first tokens are not found: bounds decide
           instead (the proof is in rank_level_search.py). Far prefixes, which place cannot prune, stand at the root.
"""

from __future__ import annotations

from nearcast.structures.ranked_rtree.tokens import LEVELS
from nearcast.structures.ranked_rtree.tree import RankTree


class RtPlusPlusTreeRank(RankTree):
    name = "rt++-tree"
    style = LEVELS
    effort_ceiling = 0.2  # all rows are read where that is cheaper
    checked_with = ("", "b=2 B=4", "b=3 B=8")
