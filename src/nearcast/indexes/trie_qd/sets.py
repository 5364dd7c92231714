"""Rows by token set: those of short sets in the trie, those of long sets in quadtrees."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct, starts_of
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.cells import FINEST
from nearcast.structures.quadtree.growth import QuadOptions, Quadtrees
from nearcast.structures.quadtree.met_lists import met_below
from nearcast.structures.quadtree.nodes import RowColumns
from nearcast.structures.quadtree.room import with_roots
from nearcast.structures.quadtree.tree import BY_ROW
from nearcast.structures.term_order import rarest_two
from nearcast.structures.trie.build import Sets
from nearcast.structures.trie.nodes import FIRST_ROW, N_ROWS, NONE, ROOT, child_of
from nearcast.structures.trie.token_order import places_with, token_sets
from nearcast.structures.trie.trie import Trie

_NO_TOKENS = np.zeros(0, np.int32)
_LAST = (1 << FINEST) - 1  # column and line


class StandInTrie(Trie):
    """A trie in which rows of long sets are around everything: each stands in for its whole set."""

    def __init__(self, store: RowStore, gap: int) -> None:
        super().__init__(store, gap)
        self.homes = np.zeros(0, np.int32)  # by row: the number of its set if that is long, or NONE

    def know(self) -> None:
        """Rows and terms that the store has now: those are of no long set, these rarer than all before."""
        self.homes = grown(self.homes, self._store.high, fill=NONE)
        self.places = places_with(self.places, self._store.n_terms)

    def _sets(self, rows: np.ndarray) -> Sets:
        sets = super()._sets(rows)
        sets.boxes[self.homes[rows] != NONE] = (-np.inf, -np.inf, np.inf, np.inf)
        return sets

    def sets_of(self, rows: np.ndarray) -> np.ndarray:
        """int32: the number of the set of each row, which need not be in the trie; NONE where it is not long."""
        out = np.empty(len(rows), np.int32)
        _sets_of(self.arrays, self.homes, *token_sets(self._store, self.places, rows), out)
        return out

    def rows_of(self, node: int) -> np.ndarray:
        """A copy of the list of a node."""
        first, count = self.arrays.spans[node, FIRST_ROW], self.arrays.spans[node, N_ROWS]
        return np.array(self.arrays.rows[first : first + count])


@kernel
def _sets_of(trie, homes, tokens, starts, out):
    for i in range(len(out)):
        node, k = np.int64(ROOT), starts[i]
        while node != NONE and k < starts[i + 1]:
            node, k = np.int64(child_of(trie, node, tokens[k])), k + 1
        out[i] = NONE
        if node != NONE and trie.spans[node, N_ROWS] > 0:
            out[i] = homes[trie.rows[trie.spans[node, FIRST_ROW]]]


class SetQuads(Quadtrees):
    """The trie, and a quadtree for each set of `tau_num` rows or more. A set with less than half of that returns to the
    trie (half, so that a row that comes and goes does not move it each time); its number and root are used again.
    """

    def __init__(self, store: RowStore, space: Space, options: QuadOptions, gap: int) -> None:
        super().__init__(store, space, options, 0)
        self.trie = StandInTrie(store, gap)
        self._number_sets(np.zeros(0, np.int64), np.zeros(0, np.int32))

    def _number_sets(self, counts: np.ndarray, stand_ins: np.ndarray) -> None:
        """Sets of so many rows each, whose roots are the first nodes."""
        self.members = counts.astype(np.int32)  # by set: how many rows it has
        self.stand_ins = stand_ins  # by set: its row in the trie, or NONE
        self.roots = np.arange(len(counts), dtype=np.int32)  # by set
        self._free: list[int] = []  # sets without rows

    def build(self, rows: np.ndarray) -> None:
        """Start anew with these rows: in the trie first, which tells how many each set has."""
        trie = self.trie
        trie.homes = np.full(self._store.high, NONE, np.int32)
        trie.build(rows)
        leaves = trie.arrays.leaves[rows]
        is_long = trie.arrays.spans[leaves, N_ROWS] >= self._options.tau_num
        order = np.lexsort((rows[is_long], leaves[is_long]))
        crowd, leaves = rows[is_long][order], leaves[is_long][order]
        counts = np.diff(np.append(np.flatnonzero(np.diff(leaves, prepend=NONE)), len(leaves)))
        starts = starts_of(counts)
        self._build(crowd, starts, self._shown(crowd))
        self._number_sets(counts, crowd[starts[:-1]])
        trie.homes[crowd] = np.repeat(self.roots, counts)
        if len(crowd):
            trie.build(np.concatenate([rows[~is_long], self.stand_ins]))

    def insert(self, rows: np.ndarray) -> None:
        trie = self.trie
        trie.know()
        sets = trie.sets_of(rows)
        self._settle(rows[sets != NONE], sets[sets != NONE])
        others = rows[sets == NONE]
        trie.insert(others)
        leaves = distinct(trie.arrays.leaves[others])
        for node in leaves[trie.arrays.spans[leaves, N_ROWS] >= self._options.tau_num].tolist():
            self._plant(trie.rows_of(node))

    def remove(self, rows: np.ndarray) -> None:
        """Forget rows, which are still in the store."""
        sets = self.trie.homes[rows]
        self.trie.remove(rows[sets == NONE])
        gone, sets = rows[sets != NONE], sets[sets != NONE]
        self._remove(gone, self.roots[sets], self._held)
        np.subtract.at(self.members, sets, 1)
        is_short = 2 * self.members[sets] < self._options.tau_num
        for number in distinct(sets[~is_short & (self.stand_ins[sets] == gone)]).tolist():
            self._exchange(number, int(self._rows_of(number)[0]))
        for number in distinct(sets[is_short]).tolist():
            self._dissolve(number)
        self.trie.homes[gone] = NONE

    def _settle(self, rows: np.ndarray, sets: np.ndarray) -> None:
        """Put rows into the quadtrees of these sets."""
        self.trie.homes[rows] = sets
        np.add.at(self.members, sets, 1)
        self._insert(rows, self.roots[sets], self._shown(rows), self._held)

    def _plant(self, rows: np.ndarray) -> None:
        """Move all rows of a set from the trie into a quadtree, and put the first of them into the trie for all."""
        self.trie.remove(rows)
        if not self._free:
            self._make_sets(4 + len(self.members) // 8)
        number = self._free.pop()
        self._settle(rows, np.full(len(rows), number, np.int32))
        self._exchange(number, int(rows[0]))

    def _make_sets(self, n: int) -> None:
        """Numbers and roots for n more sets."""
        first = len(self.members)
        self.arrays, made = with_roots(self.arrays, n)
        self.roots = np.concatenate([self.roots, made])
        self.members = np.concatenate([self.members, np.zeros(n, np.int32)])
        self.stand_ins = np.concatenate([self.stand_ins, np.full(n, NONE, np.int32)])
        self._free += range(first, first + n)

    def _exchange(self, number: int, row: int) -> None:
        """Let a row, or none, stand in for a set."""
        own = self.stand_ins[number : number + 1]
        if own[0] != NONE:
            self.trie.remove(own)
        own[0] = row
        if row != NONE:
            self.trie.insert(own)

    def _dissolve(self, number: int) -> None:
        """Move what is left of a set back into the trie."""
        rows = self._rows_of(number)
        self._exchange(number, NONE)
        self._remove(rows, np.full(len(rows), self.roots[number]), self._held)
        self.members[number] = 0
        self._free.append(number)
        self.trie.homes[rows] = NONE
        self.trie.insert(rows)

    def _rows_of(self, number: int) -> np.ndarray:
        """The rows of a long set, ascending."""
        lists, root = self.arrays.lists, np.full(64, self.roots[number])
        nodes, n = met_below(self.arrays.nodes, (0, 0, _LAST, _LAST), root, 1)
        spans = zip(lists.offsets[nodes[:n]].tolist(), lists.counts[nodes[:n]].tolist(), strict=True)
        return distinct(np.concatenate([lists.rows[first : first + count] for first, count in spans]))

    def _shown(self, rows: np.ndarray) -> np.ndarray:
        """The terms that entries show. A search asks for none: all occur where a set is reached."""
        return rarest_two(self._store, rows)[0]

    @property
    def _held(self) -> RowColumns:
        return RowColumns(self._store.arrays.boxes, _NO_TOKENS, BY_ROW)

    def state(self) -> dict[str, np.ndarray]:
        sets = {"homes": self.trie.homes, "members": self.members, "stand_ins": self.stand_ins, "roots": self.roots}
        return super().state() | self.trie.state() | sets

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.trie.restore(arrays)
        self.trie.homes, self.members = arrays["homes"], arrays["members"]
        self.stand_ins, self.roots = arrays["stand_ins"], arrays["roots"]
        self._free = np.flatnonzero(self.members == 0).tolist()
