"""The trie as a whole: built, changed, given room, packed, saved and opened."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.matching.store import RowStore
from nearcast.structures.boxes import outward
from nearcast.structures.trie.build import Sets, built_trie, empty_trie
from nearcast.structures.trie.grow import has_room, insert_sets, room_needed
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
from nearcast.structures.trie.token_order import places_by_frequency, places_with, token_sets

_DEEPEST_LEVEL = 64  # a set of more tokens is inserted alone: the build takes 60 us a level, whatever is in it
_LEAST_PACKED = 1024


class Trie:
    """Over the rows of a store. Numbers of rows are `gap` apart when it is built."""

    def __init__(self, store: RowStore, gap: int) -> None:
        if not isinstance(gap, int) or isinstance(gap, bool) or not 1 <= gap <= 1 << 28:
            raise InvalidInput(f"gap is a whole number from 1 to {1 << 28}; it is {gap}")
        self._store, self._gap = store, gap
        self.places = np.zeros(0, np.int32)  # of terms in the order of tokens
        self.arrays = empty_trie(1, 0, 0, gap)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state().values())

    def build(self, rows: np.ndarray) -> None:
        """Start anew with these rows, and a fresh order of tokens."""
        self.places = places_by_frequency(self._store)
        counts = self._store.arrays.n_terms[rows]
        self.arrays = built_trie(self._sets(rows[counts <= _DEEPEST_LEVEL]), self._store.high, self._gap)
        self.insert(rows[counts > _DEEPEST_LEVEL])

    def insert(self, rows: np.ndarray) -> None:
        self.places = places_with(self.places, self._store.n_terms)
        a, n = self.arrays, self._store.high
        self.arrays = a._replace(numbers=grown(a.numbers, n), leaves=grown(a.leaves, n, fill=NONE))
        sets, done = self._sets(rows), 0
        while (done := insert_sets(self.arrays, sets, done)) < len(rows):
            self._make_room(room_needed(self.arrays, sets, done))

    def remove(self, rows: np.ndarray) -> None:
        remove_rows(self.arrays, rows)

    def _sets(self, rows: np.ndarray) -> Sets:
        return Sets(rows, *token_sets(self._store, self.places, rows), outward(self._store.arrays.boxes[rows]))

    def _make_room(self, needed: tuple[int, int, int]) -> None:
        """For so many nodes and places in the arenas: by packing where a third is holes, else by growing."""
        head, n_nodes = self.arrays.head, needed[0]
        self._pack()
        if has_room(self.arrays, needed):
            return
        a, size = self.arrays, int(head[USED]) + n_nodes
        n_children, n_rows = int(head[CHILDREN_USED]) + needed[1], int(head[ROWS_USED]) + needed[2]
        self.arrays = a._replace(
            **{name: grown(getattr(a, name), size) for name in _BY_NODE},
            **_viewed(grown(a.records, size)),
            children=grown(a.children, n_children),
            rows=grown(a.rows, n_rows),
            row_boxes=grown(a.row_boxes, n_rows),
        )

    def _pack(self) -> None:
        """Close the holes that runs have left, where they are a third of an arena."""
        a = self.arrays
        in_use = a.rooms[: a.head[USED]].sum(axis=0, dtype=np.int64)
        if _is_loose(int(in_use[0]), int(a.head[CHILDREN_USED])):
            _pack_children(a, a.children.copy())
        if _is_loose(int(in_use[1]), int(a.head[ROWS_USED])):
            _pack_rows(a, a.rows.copy(), a.row_boxes.copy())

    def state(self) -> dict[str, np.ndarray]:
        held = self.arrays._asdict()
        return {f"trie_{name}": held[name] for name in held if name not in _VIEWS} | {"places": self.places}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        held = {name: arrays[f"trie_{name}"] for name in TrieArrays._fields if name not in _VIEWS}
        self.arrays = TrieArrays(**(held | _viewed(held["records"])))
        self.places = arrays["places"]


_VIEWS = ("spans", "boxes")
_BY_NODE = ("ranges", "tokens", "parents", "below", "rooms", "debts", "free")


def _viewed(records: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(("records", *_VIEWS), views_of(records), strict=True))


def _is_loose(in_use: int, used: int) -> bool:
    return used > _LEAST_PACKED and 3 * in_use < 2 * used


@kernel
def _pack_children(trie, children):
    """Write the runs of children one behind the other, from copies of the arena."""
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
    """Write the lists one behind the other, from copies of the arena."""
    n = 0
    for node in range(trie.head[USED]):
        source, count = np.int64(trie.spans[node, FIRST_ROW]), trie.spans[node, N_ROWS]
        trie.spans[node, FIRST_ROW], trie.rooms[node, 1] = n, count
        for k in range(source, source + count):
            trie.rows[n] = rows[k]
            trie.row_boxes[n] = boxes[k]
            n += 1
    trie.head[ROWS_USED] = n
