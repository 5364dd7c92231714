"""The quadtree of `lfilter`: its lists are in the order of the trie's rows."""

from __future__ import annotations

import numpy as np

from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.tree import PivotalQuadtree, QuadOptions
from nearcast.structures.trie.term_ranks import rarest_terms
from nearcast.structures.trie.trie import Trie


class QuadtreeInTrieOrder(PivotalQuadtree):
    """A quadtree whose entries hold the term that leads from the trie's root to their row.

    A list is thus sorted by the ranks of these terms. The entries that belong to a child of the trie's root are found
    by their terms in a few cache lines; finding them by the rows' numbers would take a cache miss each.
    """

    def __init__(self, store: RowStore, space: Space, options: QuadOptions, trie: Trie) -> None:
        super().__init__(store, space, options)
        self._trie = trie

    def entry_terms(self, rows: np.ndarray) -> np.ndarray:
        return rarest_terms(self._store, self._trie.ranks, rows)
