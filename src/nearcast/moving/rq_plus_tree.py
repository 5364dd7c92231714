"""RQ+-tree: lists by rarest term, each with a quadtree, for rows and for messages.

Paper      ap-tree
Idea       Words first: a quadtree for each term; a row is in the cells of the finest level with at most four of them.
Layout     a hash table from (term, level, cell) to two lists, of rows and of messages; an entry is 16 bytes.
Cost       a move O(cells of both boxes, and the messages under the row's rarest term in those that change); an arrival
           O(its terms x levels), and as many copies.
Deviates   The level of a row (0 to 6) follows from its size, not from a cost model of the workload.
"""

from __future__ import annotations

from nearcast.moving.cell_copies import CellCopies


class RqPlusTree(CellCopies):
    name = "rq+-tree"
    side = 1
    finest = 6
    words_first = True
