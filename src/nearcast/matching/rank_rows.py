"""What ranked rows ask for, beside the store: arrays by row number, and the weights by term."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.matching.score import weight_of
from nearcast.matching.store import RowStore

NO_WEIGHT = 1.0
"""What every token weighs where no weight is known at all."""


class RankArrays(NamedTuple):
    """What kernels read; the first three by row (of rows that are not live they say nothing), the last by term."""

    alphas: np.ndarray  # float64[n]  how much place counts, 0 .. 1; words count 1 - alpha
    thresholds: np.ndarray  # float64[n]  the least score that is delivered, 0 .. 1
    own_weights: np.ndarray  # float64[n]  the weight of all terms of the row
    weights: np.ndarray  # float64[n_terms or more]  finite, not negative


class RankRows:
    """Grows with the store. Weights are fixed; a term beyond them weighs as much as the heaviest."""

    def __init__(self, weights: np.ndarray) -> None:
        self._alphas = np.empty(0)
        self._thresholds = np.empty(0)
        self._own_weights = np.empty(0)
        self._weights = np.asarray(weights, np.float64)
        self.largest = float(self._weights.max()) if len(self._weights) else NO_WEIGHT
        self._high = 0

    @property
    def arrays(self) -> RankArrays:
        n = self._high
        return RankArrays(self._alphas[:n], self._thresholds[:n], self._own_weights[:n], self._weights)

    @property
    def weights(self) -> np.ndarray:
        """float64[...]: by term, at least as many as the store has."""
        return self._weights

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)

    def put(self, store: RowStore, rows: np.ndarray, alphas: np.ndarray, thresholds: np.ndarray) -> None:
        """Keep what these rows of the store ask for."""
        self._high = store.high
        self._alphas = grown(self._alphas, store.high, fill=0.0)
        self._thresholds = grown(self._thresholds, store.high, fill=0.0)
        self._own_weights = grown(self._own_weights, store.high, fill=0.0)
        self._weights = grown(self._weights, store.n_terms, fill=self.largest)
        self._alphas[rows], self._thresholds[rows] = alphas, thresholds
        _weigh(store.arrays, rows, self._weights, self._own_weights)

    def state(self) -> dict[str, np.ndarray]:
        return dict(self.arrays._asdict())

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray]) -> RankRows:
        made = cls(arrays["weights"])
        made._alphas, made._thresholds = arrays["alphas"], arrays["thresholds"]
        made._own_weights, made._high = arrays["own_weights"], len(arrays["alphas"])
        return made


@kernel
def _weigh(store, rows, weights, out):
    for i in range(len(rows)):
        out[rows[i]] = weight_of(store, rows[i], weights)
