"""SS-index, KK-index, IQ+-tree and RQ+-tree: lists by cell and rarest term, for rows and for messages.

Paper      ap-tree
Idea       Rows and messages lie in the lists of (cell, term): of one grid of 40 x 40 cells, or of the finest quadtree
           level on which a row has at most four cells. Place first looks at all terms of a cell, words first at all
           cells of a term.
Layout     a hash table from (level, cell, term) to two lists, of rows and of messages; an entry is 16 bytes.
Cost       a move O(cells of both boxes, and the messages under the row's rarest term in those that change); an arrival
           O(its terms x levels), and as many copies.
Deviates   The directories of all cells, or of all terms, are one hash table. The level of a row (0 to 6) follows from
           its size, not from a cost model of the workload.
"""

from __future__ import annotations

from nearcast.moving.cell_copies import CellCopies

GRID_SIDE = 40
FINEST_LEVEL = 6


class SsIndex(CellCopies):
    """A grid, and lists by rarest term in each cell."""

    name = "ss-index"
    side, finest, words_first = GRID_SIDE, 0, False


class KkIndex(CellCopies):
    """Lists by rarest term, each with a grid."""

    name = "kk-index"
    side, finest, words_first = GRID_SIDE, 0, True


class IqPlusTree(CellCopies):
    """A quadtree, and lists by rarest term in each cell."""

    name = "iq+-tree"
    side, finest, words_first = 1, FINEST_LEVEL, False


class RqPlusTree(CellCopies):
    """Lists by rarest term, each with a quadtree."""

    name = "rq+-tree"
    side, finest, words_first = 1, FINEST_LEVEL, True
