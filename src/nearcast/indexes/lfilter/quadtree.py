"""The quadtree of `lfilter`: its lists are in the order of the trie, and show the token that comes first there."""

from __future__ import annotations

import numpy as np

from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.tree import PivotalQuadtree, QuadOptions
from nearcast.structures.trie.token_order import first_terms
from nearcast.structures.trie.trie import Trie


class QuadtreeInOrder(PivotalQuadtree):
    """So a list is sorted by the places of the terms that it shows, which lie beside each other: what belongs to a
    child of the trie's root is found there in a few cache lines, where the rows' numbers are a miss each.
    """

    def __init__(self, store: RowStore, space: Space, options: QuadOptions, trie: Trie) -> None:
        super().__init__(store, space, options)
        self._rows, self._trie = store, trie

    def shown_terms(self, rows: np.ndarray) -> np.ndarray:
        return first_terms(self._rows, self._trie.places, rows)
