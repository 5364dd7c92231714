"""MBRTrie: a trie of token sets whose nodes know the box around their rows.

Paper      lfilter
Idea       Rows with equal token sets share a node, and sets with equal beginnings share the path to it. A message
           walks down along its tokens and skips nodes that its box does not touch. All tokens of a reached row are in
           the message, so only the row's place is tested.
Layout     nodes in flat arrays, built level by level, siblings together; the children of a node as a run sorted by
           token; the rows of a set as a run of 20 bytes each (row, float32 box rounded outward); a number for each row
           in the order of sets, with gaps, and the range of numbers below each node.
Cost       insert and remove O(tokens x log children), and what moves in a run; match O(nodes reached + rows in their
           lists); 80 bytes a node and 32 a row.
Deviates   Sets are read from the rarest token on (the paper allows any order). A set may end at an inner node; it
           needs no leaf of its own. A child looks its token up in a table, not by binary search. `probe` has the
           paper's names: "tokens" is ProbeTokenSet (look the children up in the message), "trie" is ProbeTrie (look
           the tokens up among the children), "cost" takes the cheaper one at each node. A removal frees memory at once
           instead of marking.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.scratch import ScratchPool
from nearcast.structures.structure_method import StructureMethod, run_kernel
from nearcast.structures.trie.probe import PROBES, trie_view
from nearcast.structures.trie.search import search_trie
from nearcast.structures.trie.trie import Trie


class MbrTrie(StructureMethod):
    name = "mbr-trie"
    paper = "lfilter"
    checked_with = ("", "probe=tokens gap=1", "probe=trie gap=3", "gap=2")
    structure: Trie

    def __init__(self, store: RowStore, space: Space, probe: str = "cost", gap: int = 1 << 20) -> None:
        super().__init__(store, space)
        if probe not in PROBES:
            raise InvalidInput(f"probe is one of {', '.join(PROBES)}; it is {probe}")
        self._probe = PROBES[probe]
        self.structure = Trie(store, gap)
        self._positions = ScratchPool(lambda: np.zeros(0, np.int32))

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        trie = self.structure
        view = trie_view(trie.arrays, trie.ranks, self.store.arrays.boxes)
        with self._positions.borrow(lambda zeros: grown(zeros, len(trie.ranks), fill=0)) as positions:
            return run_kernel(search_trie, messages, view, messages, self._probe, positions)
