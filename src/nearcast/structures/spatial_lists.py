"""Posting lists by place: a loose grid of cells, each with a list of rows.

Used by the method `spatial-first`, and for the rows without terms of every method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.pointers import PackedArrays, unsafe_floats, unsafe_int32, unsafe_int64, unsafe_uint8
from nearcast.geo.loose_grid import GridArrays, LooseGrid, cells_near
from nearcast.geo.space import Space
from nearcast.matching.predicate import mark_terms
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.postings import PostingArrays, Postings, scan_list, unsafe_postings
from nearcast.structures.row_pointers import FIRST_OWN, delivered_ids, one_message, store_arrays, unsafe_rows
from nearcast.structures.scratch import Marks
from nearcast.structures.structure_method import run_search
from nearcast.structures.term_order import rarest_two

_LISTS = FIRST_OWN + len(GridArrays._fields)  # the position of the lists among packed arguments


class SpatialLists:
    """One posting list a cell. An entry has the rarest term of its row as pivot."""

    def __init__(self, store: RowStore, space: Space) -> None:
        self._store = store
        self._space = space
        self._grid = LooseGrid(space.bounds)
        self._lists = Postings()
        self._marks = Marks()
        self.size = 0

    @property
    def nbytes(self) -> int:
        return self._grid.nbytes + self._lists.nbytes

    def build(self, rows: np.ndarray) -> None:
        self._grid, self._lists, self.size = LooseGrid(self._space.bounds), Postings(), 0
        self._file(rows, self._lists.build)

    def insert(self, rows: np.ndarray) -> None:
        self._file(rows, self._lists.append)

    def _file(self, rows: np.ndarray, put: Any) -> None:
        boxes = self._store.arrays.boxes[rows]
        cells = self._grid.cells(boxes)
        put((cells, rows, rarest_two(self._store, rows)[0]), boxes, self._grid.n_cells, self._store.high)
        self.size += len(rows)

    def remove(self, rows: np.ndarray) -> None:
        self._lists.remove(rows)
        self.size -= len(rows)

    def view(self, store: StoreView) -> SpatialListsView:
        return SpatialListsView(self._grid.arrays, self._lists.arrays, store, self._marks)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = self._lists.state()
        return arrays | self._grid.state(), header | {"size": self.size}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._lists.restore(arrays, header)
        self._grid = LooseGrid.restored(arrays)
        self.size = header["size"]


class SpatialListsView:
    """A version of the lists, for readers."""

    def __init__(self, grid: GridArrays, lists: PostingArrays, store: StoreView, marks: Marks) -> None:
        self._grid, self._lists, self._store, self._marks = grid, lists, store, marks
        self._packed = PackedArrays((*store_arrays(store), *grid, *lists))

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return run_search(_match, (self._grid, self._lists), self._store, messages)

    def match_point(self, terms: np.ndarray, x: float, y: float, time: int) -> tuple[np.ndarray, int, int]:
        marks = self._marks.sized(self._store.n_terms)
        return _match_point(self._packed.pointers, marks, terms, float(x), float(y), time)


@kernel
def _match_point(pointers, marks, terms, x, y, time):
    """The subscriptions of one point message, ascending; cells read; entries compared."""
    message, store, starts = one_message(terms, x, y, time), unsafe_rows(pointers), np.zeros(2, np.int64)
    lists = unsafe_postings(pointers, _LISTS)
    rows, nodes, seen = _match(_unsafe_grid(pointers), lists, store, message, marks, starts)
    return delivered_ids(pointers, message, rows), nodes, seen


@kernel
def _unsafe_grid(pointers):
    return GridArrays(
        unsafe_int64(pointers, FIRST_OWN),
        unsafe_int32(pointers, FIRST_OWN + 1),
        unsafe_int64(pointers, FIRST_OWN + 2),
        unsafe_uint8(pointers, FIRST_OWN + 3),
        unsafe_floats(pointers, FIRST_OWN + 4),
    )


@kernel
def _match(grid, lists, store, messages, marks, starts):
    """Fill starts; return the rows that match, the number of cells read and of entries compared."""
    out = np.empty(1024, np.int32)
    cells = np.empty(256, np.int32)
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        mark_terms(marks, messages, m, 1)
        cells, n_cells = cells_near(grid, box, cells)
        for k in range(n_cells):
            if cells[k] < len(lists.heads):  # a later version may have numbered more cells
                out, n, count = scan_list(lists, cells[k], store, marks, box, out, n)
                seen += count
        nodes += n_cells
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen
