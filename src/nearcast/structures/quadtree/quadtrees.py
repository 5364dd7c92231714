"""The base class of quadtrees: builds, changes, saves and restores one tree or many in one set of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.intmap import IntMap, IntMapArrays
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.build import build_nodes, fill_lists, sum_up
from nearcast.structures.quadtree.cells import FINEST, frame, level_limit
from nearcast.structures.quadtree.change import insert_some, is_sparse, merge_children, remove_some, split_leaf
from nearcast.structures.quadtree.lists import END, ListArrays, empty_lists
from nearcast.structures.quadtree.nodes import NONE, NodeArrays, QuadtreeArrays, RowColumns, root_nodes
from nearcast.structures.quadtree.room import with_entries, with_four_nodes

_MOST_COPIES = 1024
BY_ROW = np.zeros(0, np.int64)
"""In place of numbers: entries of a list are in the order of rows."""
_NO_PIVOTS = np.zeros(0, np.int32)


class QuadOptions(NamedTuple):
    """When leaves are split, and how often a row is stored.

    A leaf is split when `tau_num` or more of its rows could move to its children, unless its cell is smaller than
    `tau_area` of the whole or lies at level `depth`. A row has at most `copies` entries.
    """

    tau_num: int = 256
    tau_area: float = 1e-8
    depth: int = 16
    copies: int = 4


class Quadtrees:
    """One tree or many. Subclasses decide which rows belong below which root."""

    def __init__(self, store: RowStore, space: Space, options: QuadOptions, n_roots: int) -> None:
        _check(options)
        self._store, self._space, self._options = store, space, options
        nodes = root_nodes(n_roots, frame(np.zeros((0, 4)), space.bounds), self._settings)
        self.arrays = without_entries(nodes, n_roots)

    @property
    def _settings(self) -> tuple[int, int, int]:
        o = self._options
        return o.tau_num, level_limit(o.depth, o.tau_area), o.copies

    @property
    def _columns(self) -> RowColumns:
        """The columns that a change reads, for trees without pivotal terms."""
        return RowColumns(self._store.arrays.boxes, _NO_PIVOTS, BY_ROW)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state()[0].values())

    def _build(self, rows: np.ndarray, starts: np.ndarray, terms: np.ndarray) -> None:
        """Replace the trees by new ones over rows in the order of their roots; `terms` go into the entries."""
        boxes = self._store.arrays.boxes[rows]
        nodes, own = build_nodes(boxes, starts, frame(boxes, self._space.bounds), self._settings)
        lists = fill_lists(own, rows, boxes, terms)
        sum_up(nodes, lists.counts)
        self.arrays = QuadtreeArrays(nodes, lists, IntMap().arrays, np.zeros(1, np.int64))

    def _insert(self, rows: np.ndarray, roots: np.ndarray, terms: np.ndarray, columns: RowColumns) -> None:
        _, limit, copies = self._settings
        done = 0
        while done < len(rows):
            done, space, full = insert_some(self.arrays, columns, rows, roots, terms, done)
            if len(full):
                self._split(full.tolist(), columns)
            elif done < len(rows):
                self.arrays = with_entries(self.arrays, space, copies * (limit + 1))

    def _split(self, waiting: list[int], columns: RowColumns) -> None:
        """Split leaves and then their quarters, until none is full or a split would separate nothing."""
        while waiting:
            leaf = waiting.pop()
            nodes = self.arrays.nodes
            if nodes.movable[leaf] < nodes.tries[leaf]:
                continue
            count = int(self.arrays.lists.counts[leaf])
            # A list that grows one by one leaves up to twice its final room behind.
            self.arrays = with_entries(with_four_nodes(self.arrays), 4 * (4 * count + 16), 4 * count)
            if split_leaf(self.arrays, columns, leaf):
                first = int(self.arrays.nodes.children[leaf])
                waiting += range(first, first + 4)

    def _remove(self, rows: np.ndarray, roots: np.ndarray, columns: RowColumns) -> None:
        done = 0
        while done < len(rows):
            done, places = remove_some(self.arrays, columns, rows, roots, done)
            for node in self.arrays.nodes.parents[places].tolist():
                self._merge(node, columns)

    def _merge(self, node: int, columns: RowColumns) -> None:
        """Merge sparse quarters, from a node upwards."""
        while node != NONE and is_sparse(self.arrays, node):
            entries = int(self.arrays.nodes.entries[node])
            self.arrays = with_entries(self.arrays, 4 * entries + 16, 0)
            merge_children(self.arrays, columns, node)
            node = int(self.arrays.nodes.parents[node])

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        nodes, lists, table, _ = self.arrays
        end = int(lists.head[END])
        used = lists._replace(rows=lists.rows[:end], pivots=lists.pivots[:end], boxes=lists.boxes[:end])
        parts = {"node": nodes._asdict(), "list": used._asdict(), "token": table._asdict()}
        return {f"{part}_{name}": array for part, arrays in parts.items() for name, array in arrays.items()}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        nodes = NodeArrays(*(arrays[f"node_{name}"] for name in NodeArrays._fields))
        lists = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))
        table = IntMap.from_arrays(IntMapArrays(arrays["token_keys"], arrays["token_values"]))
        self.arrays = QuadtreeArrays(nodes, lists, table.arrays, np.array([table.size], np.int64))


def without_entries(nodes: NodeArrays, n_lists: int) -> QuadtreeArrays:
    """Trees with these nodes and n empty lists."""
    nothing = np.zeros(n_lists, np.int64)
    return QuadtreeArrays(nodes, empty_lists(nothing, nothing), IntMap().arrays, np.zeros(1, np.int64))


def _check(options: QuadOptions) -> None:
    limits = {"tau_num": 2**30, "depth": FINEST, "copies": _MOST_COPIES}
    for name, most in limits.items():
        value = getattr(options, name)
        if not isinstance(value, int) or not 1 <= value <= most:
            raise InvalidInput(f"{name} is a whole number from 1 to {most}, not {value!r}")
    if not isinstance(options.tau_area, int | float) or not 0 <= options.tau_area <= 1:
        raise InvalidInput(f"tau_area is a share of the whole, from 0 to 1, not {options.tau_area!r}")
