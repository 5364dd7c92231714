"""Quadtrees that grow and shrink: the steps between kernels, which stop where room may run out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.intmap import IntMap, IntMapArrays
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.build import build_nodes, fill_lists, sum_up
from nearcast.structures.quadtree.cells import FINEST, frame, level_limit
from nearcast.structures.quadtree.change import cut, insert_some, is_thin, join, remove_some
from nearcast.structures.quadtree.lists import END, ListArrays, laid_out
from nearcast.structures.quadtree.nodes import NONE, RowColumns, NodeArrays, QuadtreeArrays, root_nodes
from nearcast.structures.quadtree.room import with_entries, with_four_nodes

_MOST_COPIES = 1024


class QuadOptions(NamedTuple):
    """A leaf is cut when `tau_num` rows or more could move on, unless its cell has less than `tau_area` of the whole or
    the tree is `depth` levels deep there. A row has at most `copies` entries.
    """

    tau_num: int = 256
    tau_area: float = 1e-8
    depth: int = 16
    copies: int = 4


class Quadtrees:
    """One tree or many, in one set of arrays. Subclasses know which rows belong below which root."""

    def __init__(self, store: RowStore, space: Space, options: QuadOptions, n_roots: int) -> None:
        _check(options)
        self._store, self._space, self._options = store, space, options
        nodes = root_nodes(n_roots, frame(np.zeros((0, 4)), space.bounds), self._settings)
        nothing = np.zeros(n_roots, np.int64)
        self.arrays = QuadtreeArrays(nodes, laid_out(nothing, nothing), IntMap().arrays, np.zeros(1, np.int64))

    @property
    def _settings(self) -> tuple[int, int, int]:
        o = self._options
        return o.tau_num, level_limit(o.depth, o.tau_area), o.copies

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state().values())

    def _build(self, rows: np.ndarray, starts: np.ndarray, terms: np.ndarray) -> None:
        """Start anew with rows, those of each root together, each with the term that its entries show."""
        boxes = self._store.arrays.boxes[rows]
        nodes, kept = build_nodes(boxes, starts, frame(boxes, self._space.bounds), self._settings)
        lists = fill_lists(kept, rows, boxes, terms)
        sum_up(nodes, lists.counts)
        self.arrays = QuadtreeArrays(nodes, lists, IntMap().arrays, np.zeros(1, np.int64))

    def _insert(self, rows: np.ndarray, roots: np.ndarray, terms: np.ndarray, held: RowColumns) -> None:
        _, limit, copies = self._settings
        done = 0
        while done < len(rows):
            done, space, crowded = insert_some(self.arrays, held, rows, roots, terms, done)
            if len(crowded):
                self._cut(crowded.tolist(), held)
            elif done < len(rows):
                self.arrays = with_entries(self.arrays, space, copies * (limit + 1))

    def _cut(self, waiting: list[int], held: RowColumns) -> None:
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

    def _remove(self, rows: np.ndarray, roots: np.ndarray, held: RowColumns) -> None:
        done = 0
        while done < len(rows):
            done, places = remove_some(self.arrays, held, rows, roots, done)
            for node in self.arrays.nodes.parents[places].tolist():
                self._join(node, held)

    def _join(self, node: int, held: RowColumns) -> None:
        """Put thin quarters together again, from a node on upwards."""
        while node != NONE and is_thin(self.arrays, node):
            entries = int(self.arrays.nodes.entries[node])
            self.arrays = with_entries(self.arrays, 4 * entries + 16, 0)
            join(self.arrays, held, node)
            node = int(self.arrays.nodes.parents[node])

    def state(self) -> dict[str, np.ndarray]:
        nodes, lists, table, _ = self.arrays
        end = int(lists.head[END])
        used = lists._replace(rows=lists.rows[:end], pivots=lists.pivots[:end], boxes=lists.boxes[:end])
        parts = {"node": nodes._asdict(), "list": used._asdict(), "token": table._asdict()}
        return {f"{part}_{name}": array for part, held in parts.items() for name, array in held.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        nodes = NodeArrays(*(arrays[f"node_{name}"] for name in NodeArrays._fields))
        lists = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))
        table = IntMap.from_arrays(IntMapArrays(arrays["token_keys"], arrays["token_values"]))
        self.arrays = QuadtreeArrays(nodes, lists, table.arrays, np.array([table.size], np.int64))


def _check(options: QuadOptions) -> None:
    limits = {"tau_num": 2**30, "depth": FINEST, "copies": _MOST_COPIES}
    for name, most in limits.items():
        value = getattr(options, name)
        if not isinstance(value, int) or not 1 <= value <= most:
            raise InvalidInput(f"{name} is a whole number from 1 to {most}, not {value!r}")
    if not isinstance(options.tau_area, int | float) or not 0 <= options.tau_area <= 1:
        raise InvalidInput(f"tau_area is a share of the whole, from 0 to 1, not {options.tau_area!r}")
