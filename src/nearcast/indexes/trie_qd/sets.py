"""The structure of `trie-qd`: rows of short term sets in a trie, rows of long sets in quadtrees."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct, starts_of
from nearcast.geo.space import Space
from nearcast.indexes.trie_qd.search import Scratch
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.cells import FINEST
from nearcast.structures.quadtree.list_scan import add_nodes_below
from nearcast.structures.quadtree.quadtrees import QuadOptions, Quadtrees
from nearcast.structures.scratch import ZeroedPool
from nearcast.structures.trie.build import RowSets
from nearcast.structures.trie.layout import FIRST_ROW, N_ROWS, NONE, ROOT, child_of
from nearcast.structures.trie.trie import Trie, rank_sets

_LAST = (1 << FINEST) - 1  # the last column and line
_GAP = 1 << 20  # between the numbers of rows in the trie, which no search reads here


class StandInTrie(Trie):
    """A trie in which a row of a long set has a box around everything and stands in for its whole set."""

    def __init__(self, store: RowStore, gap: int) -> None:
        super().__init__(store, gap)
        self.homes = np.zeros(0, np.int32)  # by row: the number of its set if the set is long, or NONE

    def extend(self) -> None:
        """Add rows and terms that are new in the store: rows of no long set, and terms rarer than all before."""
        self.homes = grown(self.homes, self._store.high, fill=NONE)
        self.rank_new_terms()

    def _sets(self, rows: np.ndarray) -> RowSets:
        sets = super()._sets(rows)
        sets.boxes[self.homes[rows] != NONE] = (-np.inf, -np.inf, np.inf, np.inf)
        return sets

    def sets_of(self, rows: np.ndarray) -> np.ndarray:
        """int32: the number of each row's set if the set is long, or NONE. The rows need not be in the trie."""
        out = np.empty(len(rows), np.int32)
        _sets_of(self.arrays, self.homes, *rank_sets(self._store, self.ranks, rows), out)
        return out

    def rows_of(self, node: int) -> np.ndarray:
        """A copy of the list of a node."""
        first, count = self.arrays.spans[node, FIRST_ROW], self.arrays.spans[node, N_ROWS]
        return np.array(self.arrays.rows[first : first + count])


@kernel
def _sets_of(trie, homes, ranks, starts, out):
    for i in range(len(out)):
        node, k = np.int64(ROOT), starts[i]
        while node != NONE and k < starts[i + 1]:
            node, k = np.int64(child_of(trie, node, ranks[k])), k + 1
        out[i] = NONE
        if node != NONE and trie.spans[node, N_ROWS] > 0:
            out[i] = homes[trie.rows[trie.spans[node, FIRST_ROW]]]


class SetQuads(Quadtrees):
    """The trie, and a quadtree for each set of `tau_num` rows or more. No search reads the terms of their entries.

    A set with fewer than half as many rows moves back to the trie (half, so that a row that comes and goes does not
    move its set each time). Its number and root are used again.
    """

    saved: ClassVar = {name: name for name in ("members", "stand_ins", "roots")}

    def __init__(self, store: RowStore, space: Space, options: QuadOptions) -> None:
        super().__init__(store, space, options, 0)
        self.trie = StandInTrie(store, _GAP)
        self.scratch = ZeroedPool(Scratch, np.int32, np.uint8)
        self._number_sets(np.zeros(0, np.int64), np.zeros(0, np.int32))

    def _number_sets(self, counts: np.ndarray, stand_ins: np.ndarray) -> None:
        """Number long sets with these counts of rows, whose roots are the first nodes."""
        self.members = counts.astype(np.int32)  # by set: how many rows it has
        self.stand_ins = stand_ins  # by set: its row in the trie, or NONE
        self.roots = np.arange(len(counts), dtype=np.int32)  # by set
        self._free: list[int] = []  # numbers of sets without rows

    def build(self, rows: np.ndarray) -> None:
        """Build the trie of all rows, which counts the rows of each set; then move long sets to quadtrees."""
        trie = self.trie
        trie.homes = np.full(self._store.high, NONE, np.int32)
        trie.build(rows)
        leaves = trie.arrays.leaves[rows]
        is_long = trie.arrays.spans[leaves, N_ROWS] >= self._options.tau_num
        order = np.lexsort((rows[is_long], leaves[is_long]))
        members, leaves = rows[is_long][order], leaves[is_long][order]
        counts = np.diff(np.append(np.flatnonzero(np.diff(leaves, prepend=NONE)), len(leaves)))
        starts = starts_of(counts)
        self._build(members, starts, self.entry_terms(members))
        self._number_sets(counts, members[starts[:-1]])
        trie.homes[members] = np.repeat(self.roots, counts)
        if len(members):
            trie.build(np.concatenate([rows[~is_long], self.stand_ins]))

    def insert(self, rows: np.ndarray) -> None:
        trie = self.trie
        trie.extend()
        sets = trie.sets_of(rows)
        self._insert_into_sets(rows[sets != NONE], sets[sets != NONE])
        others = rows[sets == NONE]
        trie.insert(others)
        leaves = distinct(trie.arrays.leaves[others])
        for node in leaves[trie.arrays.spans[leaves, N_ROWS] >= self._options.tau_num].tolist():
            self._move_to_quadtree(trie.rows_of(node))

    def remove(self, rows: np.ndarray) -> None:
        """Remove rows, which are still in the store."""
        sets = self.trie.homes[rows]
        self.trie.remove(rows[sets == NONE])
        removed, sets = rows[sets != NONE], sets[sets != NONE]
        self._remove(removed, self.roots[sets])
        np.subtract.at(self.members, sets, 1)
        is_short = 2 * self.members[sets] < self._options.tau_num
        for number in distinct(sets[~is_short & (self.stand_ins[sets] == removed)]).tolist():
            self._replace_stand_in(number, int(self._rows_of(number)[0]))
        for number in distinct(sets[is_short]).tolist():
            self._move_to_trie(number)
        self.trie.homes[removed] = NONE

    def _insert_into_sets(self, rows: np.ndarray, sets: np.ndarray) -> None:
        self.trie.homes[rows] = sets
        np.add.at(self.members, sets, 1)
        self._insert(rows, self.roots[sets], self.entry_terms(rows))

    def _move_to_quadtree(self, rows: np.ndarray) -> None:
        """Move all rows of a set from the trie to a quadtree, and make the first of them the stand-in."""
        self.trie.remove(rows)
        if not self._free:
            self._add_sets(4 + len(self.members) // 8)
        number = self._free.pop()
        self._insert_into_sets(rows, np.full(len(rows), number, np.int32))
        self._replace_stand_in(number, int(rows[0]))

    def _add_sets(self, n: int) -> None:
        """Add numbers and roots for n more sets."""
        first = len(self.members)
        self.roots = np.concatenate([self.roots, self._add_roots(n)])
        self.members = np.concatenate([self.members, np.zeros(n, np.int32)])
        self.stand_ins = np.concatenate([self.stand_ins, np.full(n, NONE, np.int32)])
        self._free += range(first, first + n)

    def _replace_stand_in(self, number: int, row: int) -> None:
        """Make a row, or NONE, the stand-in of a set."""
        own = self.stand_ins[number : number + 1]
        if own[0] != NONE:
            self.trie.remove(own)
        own[0] = row
        if row != NONE:
            self.trie.insert(own)

    def _move_to_trie(self, number: int) -> None:
        """Move the remaining rows of a set back to the trie."""
        rows = self._rows_of(number)
        self._replace_stand_in(number, NONE)
        self._remove(rows, np.full(len(rows), self.roots[number]))
        self.members[number] = 0
        self._free.append(number)
        self.trie.homes[rows] = NONE
        self.trie.insert(rows)

    def _rows_of(self, number: int) -> np.ndarray:
        """The rows of a long set, ascending."""
        lists, root = self.arrays.lists, np.full(64, self.roots[number])
        nodes, n = add_nodes_below(self.arrays.nodes, (0, 0, _LAST, _LAST), root, 1)
        spans = zip(lists.offsets[nodes[:n]].tolist(), lists.counts[nodes[:n]].tolist(), strict=True)
        return distinct(np.concatenate([lists.rows[first : first + count] for first, count in spans]))

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return super().state()[0] | self.trie.state()[0] | {"homes": self.trie.homes}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.trie.restore(arrays, header)
        self.trie.homes = arrays["homes"]
        self._free = np.flatnonzero(self.members == 0).tolist()
