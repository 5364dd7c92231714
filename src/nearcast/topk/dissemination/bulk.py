"""An index of rows that is made at once: rows that come later wait in plain lists until there are many."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.topk.dissemination.contract import Concerned, Dissemination
from nearcast.topk.dissemination.plain_lists import PlainLists
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window

LARGEST_YOUNG_SHARE = 0.1
FEWEST_YOUNG = 16
"""The index is made anew when more rows wait than both: this many, and this share of those in it."""


class BulkBuilt(Dissemination):
    """Rows are old, in the index, or young, in plain lists."""

    def __init__(self, rows: TopRows, metric: Metric) -> None:
        super().__init__(rows, metric)
        self._young = PlainLists(rows, metric)
        self._is_young = np.empty(0, bool)  # by row number
        self._n_built = self._n_young = 0

    @abstractmethod
    def _make(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        """Make the index of these rows."""

    @abstractmethod
    def _forget(self, numbers: np.ndarray) -> None:
        """Take old rows out of the index."""

    @abstractmethod
    def _find_old(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        """As `find`, of the old rows."""

    def build(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        """Make the index anew of these rows; none is young."""
        self._young.remove(np.flatnonzero(self._is_young).astype(np.int32))
        self._is_young = np.zeros(len(self.rows.arrays.ks), bool)
        self._make(numbers, weights)
        self._n_built, self._n_young = len(numbers), 0

    def add(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        self._is_young = grown(self._is_young, len(self.rows.arrays.ks), fill=0)
        if self._n_young + len(numbers) > max(FEWEST_YOUNG, LARGEST_YOUNG_SHARE * self._n_built):
            self.build(self.rows.live_rows(), weights)
            return
        self._young.add(numbers, weights)
        self._is_young[numbers] = True
        self._n_young += len(numbers)

    def remove(self, numbers: np.ndarray) -> None:
        is_young = self._is_young[numbers]
        self._young.remove(numbers[is_young])
        self._is_young[numbers] = False
        self._n_young -= int(np.count_nonzero(is_young))
        self._forget(numbers[~is_young])

    def terms_moved(self, kept: np.ndarray) -> None:
        self._young.terms_moved(kept)

    def renumber(self) -> None:
        self._young.renumber()

    def find(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        found = self._find_old(window, arrival, weights)
        if not self._n_young:
            return found
        more = self._young.find(window, arrival, weights)
        return Concerned(np.concatenate([found.rows, more.rows]), np.concatenate([found.scores, more.scores]))

    def old_of(self, numbers: np.ndarray) -> np.ndarray:
        """Those of these rows that are in the index."""
        return numbers[~self._is_young[numbers]]

    @property
    def nbytes(self) -> int:
        return self._young.nbytes
