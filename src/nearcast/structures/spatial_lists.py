"""Posting lists by place: a loose grid of cells, each with a list of rows.

Used by the method `spatial-first`, and for the rows without terms of every method.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.geo.loose_grid import LooseGrid, cells_near
from nearcast.geo.space import Space
from nearcast.matching.predicate import mark_terms
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.postings import Postings, scan_list
from nearcast.structures.structure_method import run_search
from nearcast.structures.term_order import rarest_two


class SpatialLists:
    """One posting list a cell. An entry has the rarest term of its row as pivot."""

    def __init__(self, store: RowStore, space: Space) -> None:
        self._store = store
        self._space = space
        self._grid = LooseGrid(space.bounds)
        self._lists = Postings()
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

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return run_search(_match, (self._grid.arrays, self._lists.arrays), self._store, messages)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = self._lists.state()
        return arrays | self._grid.state(), header | {"size": self.size}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._lists.restore(arrays, header)
        self._grid = LooseGrid.restored(arrays)
        self.size = header["size"]


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
            out, n = scan_list(lists, cells[k], store, marks, box, out, n)
            seen += lists.counts[cells[k]]
        nodes += n_cells
        mark_terms(marks, messages, m, 0)
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen
