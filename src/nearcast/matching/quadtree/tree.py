"""The tree as a whole: built, changed, searched, saved and opened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap, IntMapArrays
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.quadtree.build import build_nodes, fill_lists, sum_up
from nearcast.matching.quadtree.cells import FINEST, frame, level_limit
from nearcast.matching.quadtree.change import cut, insert_some, is_thin, join, remove_some
from nearcast.matching.quadtree.lists import END, ListArrays, laid_out
from nearcast.matching.quadtree.nodes import NONE, Held, NodeArrays, Quad, empty_nodes
from nearcast.matching.quadtree.pivots import enter_some
from nearcast.matching.quadtree.room import with_entries, with_four_nodes
from nearcast.matching.representative import Representatives
from nearcast.matching.store import RowStore
from nearcast.matching.term_order import NO_TERM, rarest_two

BY_ROW = np.zeros(0, np.int64)
"""In place of numbers: lists are in the order of rows."""

_MOST_COPIES = 1024


class QuadOptions(NamedTuple):
    """A leaf is cut when `tau_num` rows or more could move on, unless its cell has less than `tau_area` of the whole or
    the tree is `depth` levels deep there. A row has at most `copies` entries.
    """

    tau_num: int = 256
    tau_area: float = 1e-8
    depth: int = 16
    copies: int = 4


class PivotalQuadtree:
    """Rows of a store, by place, with pivotal tokens on the nodes.

    `numbers` (int64 by row) give the order of lists; they may change between calls as long as the order of rows that
    are in the tree stays as it is.
    """

    def __init__(self, store: RowStore, space: Space, options: QuadOptions) -> None:
        _check(options)
        self._store, self._space, self._options = store, space, options
        self._pivots = Representatives(store, space, "df", 1)
        self.tokens = np.full(1, NO_TERM, np.int32)  # by row: the pivotal token, for as long as the row is here
        self.arrays = self._empty()

    def _empty(self) -> Quad:
        nodes = empty_nodes(1, frame(np.zeros((0, 4)), self._space.bounds), self._settings)
        return Quad(
            nodes, laid_out(np.zeros(1, np.int64), np.zeros(1, np.int64)), IntMap().arrays, np.zeros(1, np.int64)
        )

    @property
    def _settings(self) -> tuple[int, int, int]:
        o = self._options
        return o.tau_num, level_limit(o.depth, o.tau_area), o.copies

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state().values())

    def shown_terms(self, rows: np.ndarray) -> np.ndarray:
        """The term of each row that its entries show: one that few messages have."""
        return rarest_two(self._store, rows)[0]

    def build(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        """Start anew with these rows."""
        rows = rows[np.argsort(numbers[rows] if len(numbers) else rows, kind="stable")]
        boxes = self._store.arrays.boxes[rows]
        self.tokens = np.full(max(1, self._store.high), NO_TERM, np.int32)
        self.tokens[rows] = self._pivots.cover(rows)
        nodes, kept = build_nodes(boxes, frame(boxes, self._space.bounds), self._settings)
        lists = fill_lists(kept, rows, boxes, self.shown_terms(rows))
        sum_up(nodes, lists.counts)
        self.arrays = Quad(nodes, lists, IntMap().arrays, np.zeros(1, np.int64))
        self._enter_all()

    def _enter_all(self) -> None:
        """Count the pivotal tokens of all entries."""
        node, place = len(self.arrays.lists.counts) - 1, 0
        while node != NONE:
            self.arrays = with_entries(self.arrays, 0, 1024 + int(self.arrays.size[0]) // 8)
            node, place = enter_some(self.arrays, self.tokens, node, place)

    def insert(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        self.tokens = grown(self.tokens, self._store.high, fill=NO_TERM)
        self.tokens[rows] = self._pivots.firsts(rows)
        held, terms, done = self._held(numbers), self.shown_terms(rows), 0
        while done < len(rows):
            done, space, crowded = insert_some(self.arrays, held, rows, terms, done)
            if len(crowded):
                self._cut(crowded.tolist(), held)
            elif done < len(rows):
                self.arrays = with_entries(self.arrays, space, self._most_keys)

    @property
    def _most_keys(self) -> int:
        """How many keys one row may bring."""
        _, limit, copies = self._settings
        return copies * (limit + 1)

    def _cut(self, waiting: list[int], held: Held) -> None:
        """Cut leaves, and their quarters, until none is crowded or cutting would part nothing."""
        while waiting:
            leaf = waiting.pop()
            nodes = self.arrays.nodes
            if nodes.movable[leaf] < nodes.tries[leaf]:
                continue
            count = int(self.arrays.lists.counts[leaf])
            # A list that grows one by one leaves up to twice its final room behind.
            self.arrays = with_entries(with_four_nodes(self.arrays), 4 * (4 * count + 16), 4 * count)
            if cut(self.arrays, held, leaf):
                first = int(self.arrays.nodes.children[leaf])
                waiting += range(first, first + 4)

    def remove(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        """Forget rows, which are still in the store."""
        held, done = self._held(numbers), 0
        while done < len(rows):
            done, places = remove_some(self.arrays, held, rows, done)
            for node in self.arrays.nodes.parents[places].tolist():
                self._join(node, held)

    def _join(self, node: int, held: Held) -> None:
        """Put thin quarters together again, from a node on upwards."""
        while node != NONE and is_thin(self.arrays, node):
            entries = int(self.arrays.nodes.entries[node])
            self.arrays = with_entries(self.arrays, 4 * entries + 16, 0)
            join(self.arrays, held, node)
            node = int(self.arrays.nodes.parents[node])

    def _held(self, numbers: np.ndarray) -> Held:
        return Held(self._store.arrays.boxes, self.tokens, numbers)

    def state(self) -> dict[str, np.ndarray]:
        nodes, lists, table, _ = self.arrays
        end = int(lists.head[END])
        used = lists._replace(rows=lists.rows[:end], pivots=lists.pivots[:end], boxes=lists.boxes[:end])
        parts = {"node": nodes._asdict(), "list": used._asdict(), "token": table._asdict()}
        named = {f"{part}_{name}": array for part, held in parts.items() for name, array in held.items()}
        return named | {"pivotal": self.tokens}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        nodes = NodeArrays(*(arrays[f"node_{name}"] for name in NodeArrays._fields))
        lists = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))
        table = IntMap.from_arrays(IntMapArrays(arrays["token_keys"], arrays["token_values"]))
        self.arrays = Quad(nodes, lists, table.arrays, np.array([table.size], np.int64))
        self.tokens = arrays["pivotal"]


def _check(options: QuadOptions) -> None:
    limits = {"tau_num": 2**30, "depth": FINEST, "copies": _MOST_COPIES}
    for name, most in limits.items():
        value = getattr(options, name)
        if not isinstance(value, int) or not 1 <= value <= most:
            raise InvalidInput(f"{name} is a whole number from 1 to {most}, not {value!r}")
    if not isinstance(options.tau_area, int | float) or not 0 <= options.tau_area <= 1:
        raise InvalidInput(f"tau_area is a share of the whole, from 0 to 1, not {options.tau_area!r}")
