"""The trie as a structure: builds, changes, packs, saves and restores its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.matching.store import RowStore
from nearcast.structures.arena import has_many_holes
from nearcast.structures.boxes import outward
from nearcast.structures.trie.build import RowSets, built_trie, empty_trie
from nearcast.structures.trie.grow import Room, has_room, insert_sets, room_needed
from nearcast.structures.trie.nodes import (
    CHILDREN_USED,
    FIRST_CHILD,
    FIRST_ROW,
    N_CHILDREN,
    N_ROWS,
    NONE,
    ROWS_USED,
    USED,
    TrieArrays,
    views_of,
)
from nearcast.structures.trie.shrink import remove_rows
from nearcast.structures.trie.term_ranks import extended_ranks, rank_sets, ranks_by_frequency

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
        self.ranks = ranks_by_frequency(self._store)
        counts = self._store.arrays.n_terms[rows]
        self.arrays = built_trie(self._sets(rows[counts <= _DEEPEST_LEVEL]), self._store.high, self._gap)
        self.insert(rows[counts > _DEEPEST_LEVEL])

    def insert(self, rows: np.ndarray) -> None:
        self.ranks = extended_ranks(self.ranks, self._store.n_terms)
        a, n = self.arrays, self._store.high
        self.arrays = a._replace(numbers=grown(a.numbers, n), leaves=grown(a.leaves, n, fill=NONE))
        sets, done = self._sets(rows), 0
        while (done := insert_sets(self.arrays, sets, done)) < len(rows):
            self._make_room(room_needed(self.arrays, sets, done))

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
        size, n_rows = int(head[USED]) + needed.nodes, int(head[ROWS_USED]) + needed.rows
        self.arrays = a._replace(
            **{name: grown(getattr(a, name), size) for name in _BY_NODE},
            **views_of(grown(a.records, size)),
            children=grown(a.children, int(head[CHILDREN_USED]) + needed.children),
            rows=grown(a.rows, n_rows),
            row_boxes=grown(a.row_boxes, n_rows),
        )

    def _pack(self) -> None:
        a = self.arrays
        in_use = a.rooms[: a.head[USED]].sum(axis=0, dtype=np.int64)
        if has_many_holes(int(a.head[CHILDREN_USED]), int(in_use[0])):
            _pack_children(a, a.children.copy())
        if has_many_holes(int(a.head[ROWS_USED]), int(in_use[1])):
            _pack_rows(a, a.rows.copy(), a.row_boxes.copy())

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {_key(name): array for name, array in self.arrays._asdict().items() if name not in _VIEWS}
        return arrays | {"places": self.ranks}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        saved = {name: arrays[_key(name)] for name in TrieArrays._fields if name not in _VIEWS}
        self.arrays = TrieArrays(**(saved | views_of(saved["records"])))
        self.ranks = arrays["places"]


def _key(field: str) -> str:
    return f"trie_{_SAVED_AS.get(field, field)}"


@kernel
def _pack_children(trie, children):
    """Write the runs of children one behind the other, from a copy of the arena."""
    n = 0
    for node in range(trie.head[USED]):
        source, count = np.int64(trie.spans[node, FIRST_CHILD]), trie.spans[node, N_CHILDREN]
        trie.spans[node, FIRST_CHILD], trie.rooms[node, 0] = n, count
        for k in range(source, source + count):
            trie.children[n, 0], trie.children[n, 1] = children[k, 0], children[k, 1]
            n += 1
    trie.head[CHILDREN_USED] = n


@kernel
def _pack_rows(trie, rows, boxes):
    """Write the lists of rows one behind the other, from copies of the arena."""
    n = 0
    for node in range(trie.head[USED]):
        source, count = np.int64(trie.spans[node, FIRST_ROW]), trie.spans[node, N_ROWS]
        trie.spans[node, FIRST_ROW], trie.rooms[node, 1] = n, count
        for k in range(source, source + count):
            trie.rows[n] = rows[k]
            trie.row_boxes[n] = boxes[k]
            n += 1
    trie.head[ROWS_USED] = n
