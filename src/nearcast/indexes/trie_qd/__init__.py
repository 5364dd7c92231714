"""Trie-Qd: a trie of token sets, and a quadtree over the boxes of each set that many rows have.

Paper      ap-tree
Idea       Words alone first: a message walks down the trie along its tokens; what it reaches has all of them. Rows with
           the same set are then told apart by place.
Layout     the trie of `mbr-trie`; of a set of `tau_num` rows or more it has one row, with a box around everything, and
           the others are in a quadtree of that set: the nodes of all in flat arrays, entries of 24 bytes in one arena.
Cost       insert and remove O(tokens x log children + copies x (depth + entries of a list)); match O(nodes reached in
           trie and quadtrees + rows in their lists); 80 bytes a node of the trie, 36 a row, 24 an entry, 60 a cell.
Deviates   Sets of fewer than `tau_num` rows stay plain lists in the trie. Nodes of the trie know the boxes below them,
           as those of mbr-trie do, and are left out where the message is elsewhere; the paper's know none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.geo.space import Space
from nearcast.indexes.trie_qd.search import LongSets, search
from nearcast.indexes.trie_qd.sets import SetQuads
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.growth import QuadOptions
from nearcast.structures.trie.probe import trie_view

_GAP = 1 << 20  # between the numbers of rows in the trie, which nobody asks for here


class TrieQd(Method):
    name = "trie-qd"
    paper = "ap-tree"
    checked_with = ("", "tau_num=2", "tau_num=1 copies=1 depth=5", "tau_num=5 copies=16 tau_area=0.01")

    def __init__(
        self,
        store: RowStore,
        space: Space,
        tau_num: int = 64,
        tau_area: float = QuadOptions().tau_area,
        depth: int = QuadOptions().depth,
        copies: int = QuadOptions().copies,
    ) -> None:
        super().__init__(store, space)
        self.sets = SetQuads(store, space, QuadOptions(tau_num, tau_area, depth, copies), _GAP)
        self._spare: list[tuple[np.ndarray, np.ndarray]] = []  # zeroed spots and marks, a pair for each thread at work

    def build(self, rows: np.ndarray) -> None:
        self.sets.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self.sets.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.sets.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        trie = self.sets.trie
        held, rows = trie_view(trie.arrays, trie.places, self.store.arrays.boxes), self.store.arrays
        scratch = self._scratch()
        answer = search(held, LongSets(self.sets.arrays, trie.homes, self.sets.roots, rows), messages, scratch)
        self._spare.append(scratch)
        return answer

    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """A zeroed spot for each place of a token and a mark for each term, which no other thread has."""
        n_places, n_terms = len(self.sets.trie.places), self.store.n_terms
        try:
            spots, marks = self._spare.pop()
        except IndexError:
            spots, marks = np.zeros(n_places, np.int32), np.zeros(n_terms, np.uint8)
        return grown(spots, n_places, fill=0), grown(marks, n_terms, fill=0)

    @property
    def nbytes(self) -> int:
        return self.sets.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.sets.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.sets.restore(arrays)
