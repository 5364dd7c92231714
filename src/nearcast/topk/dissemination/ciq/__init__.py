"""The competitor's index of rows: every row is in several cells that cover the space, each with its own text limit.

The cells of a row are those of a fixed quadtree of LEVELS levels: of each cell that contains the row, the three
children that do not, and at the end the smallest cell that does: 3 * LEVELS + 1 cells. A message is in one of them.
Lists by (cell, term) are sorted by row number and read row by row (document at a time); a row whose cosine reaches the
text limit of its cell is a candidate. A theta that falls lowers the limits at once, one that rises raises them.
"""

from __future__ import annotations

import numpy as np

from nearcast.arrays.intmap import IntMap
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.geo.space import Space
from nearcast.topk.dissemination.bulk import BulkBuilt
from nearcast.topk.dissemination.ciq.covers import CELLS_PER_ROW, cover_rows, make_grid
from nearcast.topk.dissemination.ciq.search import (
    FOUND,
    SCANNED,
    CellLists,
    Merge,
    Search,
    find_rows,
    refit_limits,
    set_limits,
)
from nearcast.topk.dissemination.contract import Concerned
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window


class Ciq(BulkBuilt):
    """Lists by cell and term."""

    name = "ciq"

    def __init__(self, rows: TopRows, metric: Metric, space: Space) -> None:
        super().__init__(rows, metric)
        self.space = space
        self._counters = np.zeros(2, np.int64)
        self.build(np.empty(0, np.int32), np.empty(0))

    def _make(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        arrays, n = self.rows.arrays, len(numbers)
        self._grid = make_grid(self.space, arrays, numbers)
        cells, nearest = np.empty((n, CELLS_PER_ROW), np.int32), np.empty((n, CELLS_PER_ROW))
        cover_rows(self._grid, arrays, numbers, self.metric, cells, nearest)
        counts = arrays.n_terms[numbers].astype(np.int64) * CELLS_PER_ROW
        row_of = np.repeat(np.arange(n), counts)
        place = np.arange(len(row_of)) - np.repeat(starts_of(counts)[:-1], counts)
        cell_of = cells[row_of, place % CELLS_PER_ROW].astype(np.int64)
        terms = arrays.terms[arrays.offsets[numbers[row_of]] + place // CELLS_PER_ROW]
        keys = cell_of << 32 | terms
        order = np.lexsort((numbers[row_of], keys))
        keys = keys[order]
        is_first = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]
        starts = np.append(np.flatnonzero(is_first), len(keys))
        table = IntMap()
        table.put(keys[starts[:-1]], np.arange(len(starts) - 1, dtype=np.int32))
        own = np.empty(len(keys), np.int64)
        own[order] = np.arange(len(keys))
        by_row = np.zeros(len(arrays.ks) + 1, np.int64)
        by_row[numbers + 1] = counts
        self._lists = CellLists(
            list_keys=table.arrays.keys,
            list_values=table.arrays.values,
            starts=starts.astype(np.int64),
            rows=numbers[row_of[order]].astype(np.int32),
            nearest=nearest[row_of, place % CELLS_PER_ROW][order],
            limits=np.zeros(len(keys)),
            own=_by_row_number(own, numbers, counts, by_row),
            own_starts=np.cumsum(by_row),
        )
        set_limits(arrays, self._lists)
        self._candidates, self._scores = np.empty(self.rows.high, np.int32), np.empty(self.rows.high)

    def _forget(self, numbers: np.ndarray) -> None:
        forget_rows(self._lists, numbers)

    def thetas_changed(self, numbers: np.ndarray) -> None:
        refit_limits(self.rows.arrays, self._lists, self.old_of(numbers))

    def _find_old(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        ring = window.ring
        n_terms, values = int(ring.counts[arrival & (len(ring.ids) - 1)]), self.values_of(len(weights))
        merge = Merge(np.empty(n_terms, np.int64), np.empty(n_terms, np.int64), np.empty(n_terms), self._counters)
        search = Search(self._grid, self._lists, self.rows.arrays, self.metric, values)
        n = int(find_rows(search, ring, arrival, merge, self._candidates, self._scores))
        return Concerned(self._candidates[:n], self._scores[:n])

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self._lists)) + super().nbytes

    @property
    def stats(self) -> dict[str, int]:
        return {
            "cells_per_row": CELLS_PER_ROW,
            "scanned": int(self._counters[SCANNED]),
            "scored": int(self._counters[FOUND]),
        }


def _by_row_number(own: np.ndarray, numbers: np.ndarray, counts: np.ndarray, by_row: np.ndarray) -> np.ndarray:
    """The positions of postings, grouped by ascending row number; `own` has them in the order of `numbers`."""
    out, starts, targets = np.empty(len(own), np.int64), starts_of(counts), np.cumsum(by_row)
    place = np.arange(len(own)) - np.repeat(starts[:-1], counts)
    out[np.repeat(targets[numbers], counts) + place] = own
    return out


@kernel
def forget_rows(lists, numbers):
    """Let no cosine reach the limits of rows that are gone."""
    for row in numbers:
        for k in range(lists.own_starts[row], lists.own_starts[row + 1]):
            lists.limits[lists.own[k]] = np.inf
