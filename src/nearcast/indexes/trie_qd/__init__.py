"""Trie-Qd: a trie of token sets, and a quadtree over the boxes of each set that many rows have.

Paper      ap-tree
Idea       Tokens first: a message walks down the trie along its tokens, and all tokens of a reached set are in the
           message. Rows with the same set are then separated by place.
Layout     The trie of `mbr-trie` has the rows of short sets. Of a set with `tau_num` rows or more it has one row, the
           stand-in, with a box around everything; a search that reaches it continues in the quadtree of the set, which
           has all its rows. The nodes of all quadtrees are in flat arrays, their entries of 24 bytes in one arena.
Cost       insert and remove O(tokens x log children + copies x (depth + entries of a list)); match O(nodes reached in
           trie and quadtrees + rows in their lists); 80 bytes a node of the trie, 36 a row, 24 an entry, 60 a cell.
Deviates   Sets of fewer than `tau_num` rows stay plain lists in the trie. Nodes of the trie know the box around their
           rows, as in mbr-trie, and are skipped where the message is elsewhere; the paper's trie has no boxes.
"""

from __future__ import annotations

from nearcast.indexes.trie_qd.search import LongSets, search
from nearcast.indexes.trie_qd.sets import SetQuads
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.quadtree.quadtrees import QuadtreeMethod
from nearcast.structures.structure_method import run_kernel
from nearcast.structures.trie.probe import trie_view


class TrieQd(QuadtreeMethod):
    name = "trie-qd"
    paper = "ap-tree"
    checked_with = ("", "tau_num=2", "tau_num=1 copies=1 depth=5", "tau_num=5 copies=16 tau_area=0.01")
    structure_type = SetQuads
    structure: SetQuads

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        sets, trie = self.structure, self.structure.trie
        view = trie_view(trie.arrays, trie.ranks, self.store.arrays.boxes)
        long_sets = LongSets(sets.arrays, trie.homes, sets.roots, self.store.arrays)
        with sets.scratch.sized(len(trie.ranks), self.store.n_terms) as scratch:
            return run_kernel(search, messages, view, long_sets, messages, scratch)
