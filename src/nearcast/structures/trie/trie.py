"""The trie as a structure: ranks terms, and builds, changes, packs, saves and restores its arrays.

Rank 0 is the most frequent term at the time of the build. A term that is new since then has its own number as its rank.
That rank is behind all earlier ones, as suits a rare term, so ranks never change between two builds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import sort_in_place, starts_of
from nearcast.errors import InvalidInput
from nearcast.matching.store import RowStore
from nearcast.structures.arena import has_many_holes
from nearcast.structures.boxes import outward
from nearcast.structures.trie import layout
from nearcast.structures.trie.build import RowSets, built_trie, empty_trie
from nearcast.structures.trie.change import Room, has_room, insert_sets, remove_rows, room_needed
from nearcast.structures.trie.layout import TrieArrays, views_of

_DEEPEST_LEVEL = 64  # a set of more terms is inserted alone: the build takes 60 us a level, however few rows are in it
_SAVED_AS = {"ranks": "tokens"}  # fields with another name on disk
_VIEWS = ("spans", "boxes")
_BY_NODE = ("ranges", "ranks", "parents", "below", "rooms", "debts", "free")


class Trie:
    """A trie over rows of a store. The numbers of rows are `gap` apart when it is built."""

    def __init__(self, store: RowStore, gap: int) -> None:
        if not isinstance(gap, int) or isinstance(gap, bool) or not 1 <= gap <= 1 << 28:
            raise InvalidInput(f"gap is a whole number from 1 to {1 << 28}; it is {gap}")
        self._store, self._gap = store, gap
        self.ranks = np.zeros(0, np.int32)  # by term
        self.arrays = empty_trie(1, 0, 0, gap)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state()[0].values())

    def build(self, rows: np.ndarray) -> None:
        self.ranks = np.empty(self._store.n_terms, np.int32)
        by_frequency = np.argsort(-self._store.frequencies, kind="stable")
        self.ranks[by_frequency] = np.arange(self._store.n_terms, dtype=np.int32)
        counts = self._store.arrays.n_terms[rows]
        self.arrays = built_trie(self._sets(rows[counts <= _DEEPEST_LEVEL]), self._store.high, self._gap)
        self.insert(rows[counts > _DEEPEST_LEVEL])

    def insert(self, rows: np.ndarray) -> None:
        self.rank_new_terms()
        a, n = self.arrays, self._store.high
        self.arrays = a._replace(numbers=grown(a.numbers, n), leaves=grown(a.leaves, n, fill=layout.NONE))
        sets, done = self._sets(rows), 0
        while (done := insert_sets(self.arrays, sets, done)) < len(rows):
            self._make_room(room_needed(self.arrays, sets, done))

    def rank_new_terms(self) -> None:
        if len(self.ranks) < self._store.n_terms:
            new = np.arange(len(self.ranks), self._store.n_terms, dtype=np.int32)
            self.ranks = np.concatenate([self.ranks, new])

    def remove(self, rows: np.ndarray) -> None:
        remove_rows(self.arrays, rows)

    def _sets(self, rows: np.ndarray) -> RowSets:
        return RowSets(rows, *rank_sets(self._store, self.ranks, rows), outward(self._store.arrays.boxes[rows]))

    def _make_room(self, needed: Room) -> None:
        """Make room by packing loose arenas, or else by growing the arrays."""
        self._pack()
        if has_room(self.arrays, needed):
            return
        a, head = self.arrays, self.arrays.head
        size, n_rows = int(head[layout.USED]) + needed.nodes, int(head[layout.ROWS_USED]) + needed.rows
        self.arrays = a._replace(
            **{name: grown(getattr(a, name), size) for name in _BY_NODE},
            **views_of(grown(a.records, size)),
            children=grown(a.children, int(head[layout.CHILDREN_USED]) + needed.children),
            rows=grown(a.rows, n_rows),
            row_boxes=grown(a.row_boxes, n_rows),
        )

    def _pack(self) -> None:
        """Close the gaps between the runs of children, and of rows, where their arena is loose."""
        a, used = self.arrays, int(self.arrays.head[layout.USED])
        for which, arenas in enumerate(((a.children,), (a.rows, a.row_boxes))):
            first, counts = a.spans[:used, 2 * which], a.spans[:used, 2 * which + 1]
            in_use, end = a.rooms[:used, which].sum(dtype=np.int64), a.head[layout.CHILDREN_USED + which]
            if has_many_holes(int(end), int(in_use)):
                starts = starts_of(counts)
                source = np.repeat(first - starts[:-1], counts) + np.arange(starts[-1])
                for arena in arenas:
                    arena[: starts[-1]] = arena[source]
                first[:], a.rooms[:used, which] = starts[:-1], counts
                a.head[layout.CHILDREN_USED + which] = starts[-1]

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {_key(name): array for name, array in self.arrays._asdict().items() if name not in _VIEWS}
        return arrays | {"places": self.ranks}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        saved = {name: arrays[_key(name)] for name in TrieArrays._fields if name not in _VIEWS}
        self.arrays = TrieArrays(**(saved | views_of(saved["records"])))
        self.ranks = arrays["places"]


def _key(field: str) -> str:
    return f"trie_{_SAVED_AS.get(field, field)}"


def rank_sets(store: RowStore, ranks: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ranks of each row's terms, rarest first, and where those of each row start."""
    starts = starts_of(store.arrays.n_terms[rows])
    out = np.empty(starts[-1], np.int32)
    _rank_sets(store.arrays, ranks, rows, starts, out)
    return out, starts


@kernel
def _rank_sets(store, ranks, rows, starts, out):
    offsets, terms = store.offsets, store.terms
    for i in range(len(rows)):
        first, offset = starts[i], offsets[rows[i]]
        for k in range(starts[i + 1] - first):
            out[first + k] = -ranks[terms[offset + k]]
        sort_in_place(out, first, starts[i + 1])
        for k in range(first, starts[i + 1]):
            out[k] = -out[k]


def rarest_terms(store: RowStore, ranks: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The term of each row with the highest rank, which comes first in the row's set."""
    out = np.empty(len(rows), np.int32)
    _rarest_terms(store.arrays, ranks, rows, out)
    return out


@kernel
def _rarest_terms(store, ranks, rows, out):
    for i in range(len(rows)):
        offset = store.offsets[rows[i]]
        out[i] = store.terms[offset]
        for k in range(offset + 1, offset + store.n_terms[rows[i]]):
            if ranks[store.terms[k]] > ranks[out[i]]:
                out[i] = store.terms[k]
