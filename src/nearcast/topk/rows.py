"""The live subscriptions of kind `top`, as rows: terms, place, k and alpha, by row number.

Row numbers are dense; the number of a removed row is used again. Terms lie in one array. A removed row leaves a hole
there, and the array is packed when half of it is holes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT as UNKNOWN
from nearcast.arrays.intmap import IntMap
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import starts_of
from nearcast.tables import Names
from nearcast.topk.score import ALPHA, NORM, THETA, X, Y

N_NUMBERS = 5
_SMALLEST_PACKING = 4096


class TopBatch(NamedTuple):
    """Subscriptions as columns, validated. Terms ascend within a subscription, and there is at least one."""

    ids: np.ndarray  # int64[n]
    terms: np.ndarray  # int32[...]
    term_starts: np.ndarray  # int64[n+1]
    places: np.ndarray  # float64[n,2]  x, y
    alphas: np.ndarray  # float64[n]  0 .. 1
    ks: np.ndarray  # int32[n]  1 or more

    @property
    def size(self) -> int:
        return len(self.ids)


class RowArrays(NamedTuple):
    """What kernels read. A row without terms is not live."""

    numbers: np.ndarray  # float64[n,5]  x, y, alpha, norm of the weights, theta: the least score of the buffer
    offsets: np.ndarray  # int64[n]   where the row's terms start
    n_terms: np.ndarray  # int32[n]
    ks: np.ndarray  # int32[n]
    ids: np.ndarray  # int64[n]   subscription ids
    terms: np.ndarray  # int32[...]  ascending within a row


class TopRows:
    """Rows by number, and numbers by subscription id."""

    def __init__(self, names: Names | None = None) -> None:
        self.names = Names("top-k") if names is None else names
        """The ids of the subscriptions: outside as they were given, inside as numbers."""
        columns = (np.int64, np.int32, np.int32, np.int64, np.int32)
        self.arrays = RowArrays(np.empty((0, N_NUMBERS)), *(np.empty(0, dtype) for dtype in columns))
        self.high = 0  # numbers given so far
        self._end = 0  # the end of the terms in use
        self._holes = 0
        self._free: list[int] = []
        self._numbers_by_id = IntMap()

    def __len__(self) -> int:
        return self._numbers_by_id.size

    @property
    def n_terms(self) -> int:
        """Terms of all live rows."""
        return self._end - self._holes

    def live_rows(self) -> np.ndarray:
        """int32[...]: the numbers of the live rows."""
        return np.flatnonzero(self.arrays.n_terms[: self.high] > 0).astype(np.int32)

    def rows_of(self, ids: np.ndarray) -> np.ndarray:
        """int32[n]: the row of each subscription, -1 where there is none."""
        found = self._numbers_by_id.get(np.asarray(ids, np.int64))
        return np.where(found == UNKNOWN, -1, found).astype(np.int32)

    def add(self, batch: TopBatch, weights: np.ndarray) -> np.ndarray:
        """int32[n]: the numbers of new rows. No id of the batch is live. `weights` (float64, by term) are scaled."""
        rows = self._new_numbers(batch.size)
        arrays, first = self.arrays, self._end
        arrays.terms[first : first + len(batch.terms)] = batch.terms
        self._end += len(batch.terms)
        arrays.offsets[rows] = first + batch.term_starts[:-1]
        arrays.n_terms[rows] = np.diff(batch.term_starts)
        arrays.ks[rows], arrays.ids[rows] = batch.ks, batch.ids
        arrays.numbers[rows, X], arrays.numbers[rows, Y] = batch.places[:, 0], batch.places[:, 1]
        arrays.numbers[rows, ALPHA], arrays.numbers[rows, THETA] = batch.alphas, 0.0
        _set_norms(arrays, rows, weights)
        self._numbers_by_id.put(batch.ids, rows)
        return rows

    def _new_numbers(self, n: int) -> np.ndarray:
        reused = [self._free.pop() for _ in range(min(n, len(self._free)))]
        fresh = np.arange(self.high, self.high + n - len(reused))
        rows = np.concatenate([np.array(reused, np.int64), fresh]).astype(np.int32)
        self.high += len(fresh)
        return rows

    def make_room(self, batch: TopBatch) -> np.ndarray | None:
        """Make room for a batch. Returns where the terms in use were, if they had to move, for parallel arrays."""
        kept = self._packed() if self._end > _SMALLEST_PACKING and 2 * self._holes > self._end else None
        high = self.high + max(0, batch.size - len(self._free))
        columns: dict[str, np.ndarray] = {
            name: grown(array, high, fill=0) for name, array in self.arrays._asdict().items() if name != "terms"
        }
        self.arrays = RowArrays(**columns, terms=grown(self.arrays.terms, self._end + len(batch.terms)))
        return kept

    def _packed(self) -> np.ndarray:
        """Close the holes; return the old position of each term in use."""
        arrays, rows = self.arrays, self.live_rows()
        rows = rows[np.argsort(arrays.offsets[rows], kind="stable")]
        counts = arrays.n_terms[rows].astype(np.int64)
        starts = starts_of(counts)
        kept = np.arange(starts[-1]) + np.repeat(arrays.offsets[rows] - starts[:-1], counts)
        arrays.terms[: starts[-1]] = arrays.terms[kept]
        arrays.offsets[rows] = starts[:-1]
        self._end, self._holes = int(starts[-1]), 0
        return kept

    def remove(self, rows: np.ndarray) -> None:
        """Forget live rows."""
        arrays = self.arrays
        self._numbers_by_id.remove(arrays.ids[rows])
        self._holes += int(arrays.n_terms[rows].sum())
        arrays.n_terms[rows] = 0
        self._free += rows.tolist()

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self.arrays)) + self._numbers_by_id.nbytes + 4 * len(self._free)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = self.arrays
        saved = {name: getattr(arrays, name)[: self.high] for name in arrays._fields[:-1]}
        free = np.array(self._free, np.int64)
        return saved | {"terms": arrays.terms[: self._end], "free": free}, {"high": self.high, "holes": self._holes}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any], names: Names | None = None) -> TopRows:
        made = cls(names)
        made.arrays = RowArrays(*(arrays[name] for name in RowArrays._fields))
        made.high, made._holes, made._end = header["high"], header["holes"], len(arrays["terms"])
        made._free = arrays["free"].tolist()
        rows = made.live_rows()
        made._numbers_by_id.put(made.arrays.ids[rows], rows)
        return made


@kernel
def _set_norms(rows, numbers, weights):
    for row in numbers:
        total = 0.0
        for k in range(rows.offsets[row], rows.offsets[row] + rows.n_terms[row]):
            total += weights[rows.terms[k]] ** 2
        rows.numbers[row, NORM] = np.sqrt(total)
