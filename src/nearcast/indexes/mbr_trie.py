"""MBRTrie: a trie of token sets whose nodes know where their rows are.

Paper      lfilter
Idea       Rows with equal sets share a node, sets with equal beginnings the way to it. A message walks down along its
           tokens and leaves out what its box does not touch; what it reaches is asked for its place alone.
Layout     nodes in flat arrays, built level by level, siblings together; children of a node as a run by token; rows of
           a set as a run of 20 bytes each (row, box in float32 rounded outward); a number for each row in the order
           of sets, with gaps, and the range of numbers below each node.
Cost       insert and remove O(tokens x log children), and what moves in a run; match O(nodes reached + rows in their
           lists); 80 bytes a node and 32 a row.
Deviates   The order of tokens is rarest first (the paper: any). A set ends at an inner node too, not at a leaf of its
           own. A child looks its token up in a table, not by binary search. `probe` has the paper's names: "tokens"
           is ProbeTokenSet (children ask the message), "trie" ProbeTrie (tokens ask the children), "cost" the cheaper
           one for each node. Removal cleans up; there are no marks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.trie.probe import PROBES, trie_view
from nearcast.structures.trie.search import search
from nearcast.structures.trie.trie import Trie


class MbrTrie(Method):
    name = "mbr-trie"
    paper = "lfilter"
    checked_with = ("", "probe=tokens gap=1", "probe=trie gap=3", "gap=2")

    def __init__(self, store: RowStore, space: Space, probe: str = "cost", gap: int = 1 << 20) -> None:
        super().__init__(store, space)
        if probe not in PROBES:
            raise InvalidInput(f"probe is one of {', '.join(PROBES)}; it is {probe}")
        self._probe = PROBES[probe]
        self.trie = Trie(store, gap)
        self._spare: list[np.ndarray] = []  # zeroed spots, one for each thread at work

    def build(self, rows: np.ndarray) -> None:
        self.trie.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self.trie.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.trie.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        held = trie_view(self.trie.arrays, self.trie.places, self.store.arrays.boxes)
        spots = self._spare.pop() if self._spare else np.zeros(0, np.int32)
        spots = grown(spots, len(self.trie.places), fill=0)
        answer = search(held, messages, self._probe, spots)
        self._spare.append(spots)
        return answer

    @property
    def nbytes(self) -> int:
        return self.trie.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.trie.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.trie.restore(arrays)
