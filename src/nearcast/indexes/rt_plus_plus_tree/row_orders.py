"""The terms of each row in the order in which the levels of the tree list them. A row keeps its order until removal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.ragged import starts_of
from nearcast.matching.store import gathered


class OrderArrays(NamedTuple):
    """The terms of a row begin at terms[offsets[row]]."""

    offsets: np.ndarray  # int64[rows]
    terms: np.ndarray  # int32[...]


class RowOrders:
    """The orders of rows that come and go. They are packed once removed rows have left more than half of them."""

    def __init__(self) -> None:
        self.start(0)

    @property
    def nbytes(self) -> int:
        return int(self.arrays.offsets.nbytes + self.arrays.terms.nbytes)

    def start(self, n_rows: int) -> None:
        """Drop all orders, and make room for row numbers below n_rows."""
        self.arrays = OrderArrays(np.zeros(n_rows, np.int64), np.zeros(0, np.int32))
        self._used = self._dead = 0

    def add(self, rows: np.ndarray, terms: np.ndarray, starts: np.ndarray, n_rows: int) -> None:
        offsets = grown(self.arrays.offsets, n_rows)
        offsets[rows] = self._used + starts[:-1]
        stored = grown(self.arrays.terms, self._used + len(terms))
        stored[self._used : self._used + len(terms)] = terms
        self.arrays = OrderArrays(offsets, stored)
        self._used += len(terms)

    def remove(self, n_terms: int) -> None:
        """Note that rows with `n_terms` terms in total were removed."""
        self._dead += n_terms

    @property
    def is_loose(self) -> bool:
        """Whether `pack` would free half of the memory."""
        return self._dead > 1024 and 2 * self._dead > self._used

    def pack(self, rows: np.ndarray, counts: np.ndarray) -> None:
        """Keep the orders of these rows, which have `counts` terms each."""
        offsets = self.arrays.offsets
        terms = gathered(self.arrays.terms, offsets[rows], counts)
        offsets[rows] = starts_of(counts)[:-1]
        self.arrays = OrderArrays(offsets, terms)
        self._used, self._dead = len(terms), 0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        arrays = {"order_offsets": self.arrays.offsets, "order_terms": self.arrays.terms[: self._used]}
        return arrays, {"order_dead": self._dead}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, int]) -> None:
        self.arrays = OrderArrays(arrays["order_offsets"], arrays["order_terms"])
        self._used, self._dead = len(self.arrays.terms), header["order_dead"]
