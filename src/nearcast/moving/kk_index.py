"""KK-index: lists by rarest term, each with a grid, for rows and for messages.

Paper      ap-tree
Idea       Words first: a ranked-key list for each term, each divided by a grid of 40 x 40 cells.
Layout     a hash table from (term, cell) to two lists, of rows and of messages; an entry is 16 bytes.
Cost       a move O(cells of both boxes, and the messages under the row's rarest term in those that change); an arrival
           O(its terms), and as many copies.
Deviates   The grids of all terms are one hash table.
"""

from __future__ import annotations

from nearcast.moving.cell_copies import CellCopies


class KkIndex(CellCopies):
    name = "kk-index"
    side = 40
    finest = 0
    words_first = True
