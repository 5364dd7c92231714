"""The contract of an index of rows: it finds the rows whose score on a message is at least their theta.

The theta of a row is `rows.numbers[row, THETA]`, the least score of its buffer, not its k-th best score: a message
between the two enters the buffer without causing a change. An index may keep what it derives from theta; it must follow
a theta that falls at once, and may follow one that rises later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.topk.rows import TopRows
from nearcast.topk.score import ABSENT, Metric
from nearcast.topk.window import Window


class Concerned(NamedTuple):
    """The rows that a message concerns, each once, and their exact scores. Valid until the next search."""

    rows: np.ndarray  # int32[n]
    scores: np.ndarray  # float64[n]


class Dissemination(ABC):
    """An index of rows. `weights` (float64, by term) may have grown since the last call."""

    name: ClassVar[str]

    def __init__(self, rows: TopRows, metric: Metric) -> None:
        self.rows = rows
        self.metric = metric
        self._values = np.empty(0)

    @abstractmethod
    def add(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        """Index new rows; their thetas are set."""

    @abstractmethod
    def remove(self, numbers: np.ndarray) -> None:
        """Forget rows that are still in `rows`."""

    @abstractmethod
    def thetas_changed(self, numbers: np.ndarray) -> None:
        """The thetas of these rows rose or fell."""

    @abstractmethod
    def find(self, window: Window, arrival: int, weights: np.ndarray) -> Concerned:
        """The rows that a message of the window's ring concerns."""

    def terms_moved(self, kept: np.ndarray) -> None:
        """The terms of all rows lie elsewhere; `kept` has the old position of each."""
        return None

    def renumber(self) -> None:
        """Arrival numbers start anew: forget those of the past."""
        return None

    def values_of(self, n_terms: int) -> np.ndarray:
        """Scratch: a value for each term, all ABSENT. A search leaves it so."""
        self._values = grown(self._values, n_terms, fill=ABSENT)
        return self._values

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @property
    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Work done: rows scanned, and rows scored exactly."""
