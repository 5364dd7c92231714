"""The base classes of quadtrees, one tree or many in one set of arrays, and of the methods that are made of them."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap, IntMapArrays
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.quadtree.build import build_trees
from nearcast.structures.quadtree.cells import FINEST, frame, level_limit
from nearcast.structures.quadtree.change import insert_some, is_sparse, merge_children, remove_some, split_leaf
from nearcast.structures.quadtree.lists import END, ListArrays, empty_lists, with_arena, with_lists
from nearcast.structures.quadtree.nodes import (
    N_FREE,
    NONE,
    ROOT,
    USED,
    NodeArrays,
    QuadtreeArrays,
    RowColumns,
    root_nodes,
    with_nodes,
)
from nearcast.structures.quadtree.pivots import enter_some
from nearcast.structures.representative import Representatives
from nearcast.structures.structure_method import StructureMethod
from nearcast.structures.term_order import NO_TERM, rarest_two

_MOST_COPIES = 1024
BY_ROW = np.zeros(0, np.int64)
"""In place of numbers: entries of a list are in the order of rows."""


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

    saved: ClassVar[dict[str, str]] = {}
    """The other arrays of a subclass that are saved: the name of each on disk, and its attribute."""

    def __init__(self, store: RowStore, space: Space, options: QuadOptions, n_roots: int) -> None:
        _check(options)
        self._store, self._space, self._options = store, space, options
        self.pivots = np.zeros(0, np.int32)  # by row: the pivotal term; empty in trees without them
        self.arrays = self._empty_trees(n_roots, np.zeros((0, 4)))

    @property
    def _settings(self) -> tuple[int, int, int]:
        o = self._options
        return o.tau_num, level_limit(o.depth, o.tau_area), o.copies

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state()[0].values())

    def _empty_trees(self, n: int, boxes: np.ndarray) -> QuadtreeArrays:
        """n trees without rows, whose bounds are around these boxes."""
        nodes, counts = root_nodes(n, frame(boxes, self._space.bounds), self._settings), np.zeros(n, np.int64)
        return QuadtreeArrays(nodes, empty_lists(counts, counts), IntMap().arrays, np.zeros(1, np.int64))

    def entry_terms(self, rows: np.ndarray) -> np.ndarray:
        """The term of each row that its entries hold: the rarest, since few messages have it."""
        return rarest_two(self._store, rows)[0]

    def _build(self, rows: np.ndarray, starts: np.ndarray, terms: np.ndarray) -> None:
        """Replace the trees by new ones over rows in the order of their roots; `terms` go into the entries."""
        boxes = self._store.arrays.boxes[rows]
        trees = self._empty_trees(len(starts) - 1, boxes)
        nodes, lists = build_trees(trees.nodes, starts, rows, boxes, terms)
        self.arrays = trees._replace(nodes=nodes, lists=lists)

    def _insert(self, rows: np.ndarray, roots: np.ndarray, terms: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        _, limit, copies = self._settings
        columns, done = self._columns(numbers), 0
        while done < len(rows):
            done, space, full = insert_some(self.arrays, columns, rows, roots, terms, done)
            if len(full):
                self._split(full.tolist(), columns)
            elif done < len(rows):
                self._reserve(space, copies * (limit + 1))

    def _columns(self, numbers: np.ndarray) -> RowColumns:
        return RowColumns(self._store.arrays.boxes, self.pivots, numbers)

    def _split(self, waiting: list[int], columns: RowColumns) -> None:
        """Split leaves and then their quarters, until none is full or a split would separate nothing."""
        while waiting:
            leaf = waiting.pop()
            nodes = self.arrays.nodes
            if nodes.movable[leaf] < nodes.tries[leaf]:
                continue
            if nodes.head[N_FREE] == 0:
                self._reserve_nodes(4)
            count = int(self.arrays.lists.counts[leaf])
            self._reserve(4 * (4 * count + 16), 4 * count)  # a list that grows leaves twice its final room behind
            if split_leaf(self.arrays, columns, leaf):
                first = int(self.arrays.nodes.children[leaf])
                waiting += range(first, first + 4)

    def _remove(self, rows: np.ndarray, roots: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        columns, done = self._columns(numbers), 0
        while done < len(rows):
            done, places = remove_some(self.arrays, columns, rows, roots, done)
            for node in self.arrays.nodes.parents[places].tolist():
                self._merge(node, columns)

    def _merge(self, node: int, columns: RowColumns) -> None:
        """Merge sparse quarters, from a node upwards."""
        while node != NONE and is_sparse(self.arrays, node):
            self._reserve(4 * int(self.arrays.nodes.entries[node]) + 16, 0)
            merge_children(self.arrays, columns, node)
            node = int(self.arrays.nodes.parents[node])

    def _reserve(self, space: int, keys: int) -> None:
        """Make room for `space` entries at the arena's end, and for `keys` more keys in the table."""
        table = IntMap()
        table.arrays, table.size = self.arrays.table, int(self.arrays.size[0])
        table.reserve(table.size + keys)
        self.arrays = self.arrays._replace(lists=with_arena(self.arrays.lists, space), table=table.arrays)

    def _reserve_nodes(self, n: int) -> None:
        """Make room for n node numbers that were never used, and for their lists."""
        nodes = with_nodes(self.arrays.nodes, int(self.arrays.nodes.head[USED]) + n)
        self.arrays = self.arrays._replace(nodes=nodes, lists=with_lists(self.arrays.lists, len(nodes.children)))

    def _add_roots(self, n: int) -> np.ndarray:
        """Add n empty trees; return the numbers of their roots."""
        self._reserve_nodes(n)
        head = self.arrays.nodes.head
        head[USED] += n
        return np.arange(head[USED] - n, head[USED], dtype=np.int32)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        nodes, lists, table, _ = self.arrays
        end = int(lists.head[END])
        used = lists._replace(rows=lists.rows[:end], pivots=lists.pivots[:end], boxes=lists.boxes[:end])
        parts = {"node": nodes._asdict(), "list": used._asdict(), "token": table._asdict()}
        arrays = {f"{part}_{name}": array for part, arrays in parts.items() for name, array in arrays.items()}
        return arrays | {name: getattr(self, attribute) for name, attribute in self.saved.items()}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        nodes = NodeArrays(*(arrays[f"node_{name}"] for name in NodeArrays._fields))
        lists = ListArrays(*(arrays[f"list_{name}"] for name in ListArrays._fields))
        table = IntMap.from_arrays(IntMapArrays(arrays["token_keys"], arrays["token_values"]))
        self.arrays = QuadtreeArrays(nodes, lists, table.arrays, np.array([table.size], np.int64))
        for name, attribute in self.saved.items():
            setattr(self, attribute, arrays[name])


def _check(options: QuadOptions) -> None:
    limits = {"tau_num": 2**30, "depth": FINEST, "copies": _MOST_COPIES}
    for name, most in limits.items():
        value = getattr(options, name)
        if not isinstance(value, int) or not 1 <= value <= most:
            raise InvalidInput(f"{name} is a whole number from 1 to {most}, not {value!r}")
    if not isinstance(options.tau_area, int | float) or not 0 <= options.tau_area <= 1:
        raise InvalidInput(f"tau_area is a share of the whole, from 0 to 1, not {options.tau_area!r}")


class PivotalQuadtree(Quadtrees):
    """One quadtree over all rows, with pivotal terms on its nodes.

    `numbers` (int64 by row) give the order of entries in lists. They may change between calls as long as the order of
    the rows in the tree stays the same.
    """

    saved: ClassVar = {"pivotal": "pivots"}

    def __init__(self, store: RowStore, space: Space, options: QuadOptions) -> None:
        super().__init__(store, space, options, 1)
        self._representatives = Representatives(store, space, "df", 1)
        self.pivots = np.full(1, NO_TERM, np.int32)  # by row: the pivotal term, valid while the row is in the tree

    def build(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        rows = rows[np.argsort(numbers[rows] if len(numbers) else rows, kind="stable")]
        self.pivots = np.full(max(1, self._store.high), NO_TERM, np.int32)
        self.pivots[rows] = self._representatives.cover(rows)
        self._build(rows, np.array([0, len(rows)], np.int64), self.entry_terms(rows))
        node, place = len(self.arrays.lists.counts) - 1, 0
        while node != NONE:
            self._reserve(0, 1024 + int(self.arrays.size[0]) // 8)
            node, place = enter_some(self.arrays, self.pivots, node, place)

    def insert(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        self.pivots = grown(self.pivots, self._store.high, fill=NO_TERM)
        self.pivots[rows] = self._representatives.firsts(rows)
        self._insert(rows, _only_root(rows), self.entry_terms(rows), numbers)

    def remove(self, rows: np.ndarray, numbers: np.ndarray = BY_ROW) -> None:
        """Remove rows, which are still in the store."""
        self._remove(rows, _only_root(rows), numbers)


def _only_root(rows: np.ndarray) -> np.ndarray:
    return np.full(len(rows), ROOT, np.int32)


class QuadtreeMethod(StructureMethod):
    """A method made of quadtrees. `structure_type` is a class that takes a store, a space and QuadOptions."""

    structure_type: ClassVar[type[Any]]

    def __init__(
        self,
        store: RowStore,
        space: Space,
        tau_num: int = 64,
        tau_area: float = QuadOptions().tau_area,
        depth: int = QuadOptions().depth,
        copies: int = QuadOptions().copies,
    ) -> None:
        super().__init__(store, space)
        self.structure = self.structure_type(store, space, QuadOptions(tau_num, tau_area, depth, copies))
