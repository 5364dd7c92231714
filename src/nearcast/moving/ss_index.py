"""SS-index: a grid, and lists by rarest term in each cell, for rows and for messages.

Paper      ap-tree
Idea       Place first: a grid of 40 x 40 cells, each with ranked-key lists of rows and of messages.
Layout     a hash table from (cell, term) to two lists, of rows and of messages; an entry is 16 bytes.
Cost       a move O(cells of both boxes, and the messages under the row's rarest term in those that change); an arrival
           O(its terms), and as many copies.
Deviates   The directories of all cells are one hash table.
"""

from __future__ import annotations

from nearcast.moving.cell_copies import CellCopies


class SsIndex(CellCopies):
    name = "ss-index"
    side = 40
    finest = 0
    words_first = False
