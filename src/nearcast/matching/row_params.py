"""The parameters of a kind's rows, by row number, and the kind's exact test.

A kind is a `model.Kind` and a subclass of `RowParams`. The test has two parts: `score` of a row on a message, and the
`least_score` that the row delivers. An unscored kind scores 1 where a row holds and 0 elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.errors import InvalidInput
from nearcast.matching.predicate import row_holds
from nearcast.matching.score import score_of, weight_of
from nearcast.model import LARGEST_WEIGHT, MATCH, RANK, Kind, RowBatch

if TYPE_CHECKING:
    from nearcast.matching.store import RowStore

EXACT_TESTS: dict[str, type[RowParams]] = {}
"""The subclass of each kind, by the kind's name."""

DEFAULT_WEIGHT = 1.0
"""The weight of every token where no weight is known at all."""

NO_WEIGHTS = np.empty(0)


class RowParams(ABC):
    """Parameters by row number, which grow with the row store. Subclasses set `kind` and define the exact test.

    `weights` (float64, by term) are fixed; a term beyond them weighs as much as the heaviest term.
    """

    kind: ClassVar[Kind]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        EXACT_TESTS[cls.kind.name] = cls

    def __init__(self, weights: np.ndarray = NO_WEIGHTS) -> None:
        self.weights = _checked_weights(weights)
        self.columns = {parameter.name: np.empty(0) for parameter in self.kind.parameters}

    @abstractmethod
    def score(self, store: RowStore, row: int, marks: np.ndarray, box: np.ndarray) -> float:
        """The exact score of a row on a message: its terms are set in `marks`, its place is `box` (float64[4])."""

    def least_score(self, row: int) -> float:
        """The row is delivered where its score is at least this."""
        return 1.0

    def put(self, store: RowStore, rows: np.ndarray, batch: RowBatch) -> None:
        """Keep the parameters of rows that were just stored."""
        for name, values in self.columns.items():
            self.columns[name] = grown(values, store.high, fill=0.0)
            self.columns[name][rows] = batch.params[name]

    def of_rows(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters of these rows, as a batch carries them."""
        return {name: values[rows] for name, values in self.columns.items()}

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.state().values())

    def state(self) -> dict[str, np.ndarray]:
        """Arrays for saving."""
        return dict(self.columns)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.columns = {name: arrays[name] for name in self.columns}


class MatchParams(RowParams):
    """Kind `match`: no parameters; a row holds where all its terms occur and its box overlaps the message's box."""

    kind = MATCH

    def score(self, store: RowStore, row: int, marks: np.ndarray, box: np.ndarray) -> float:
        return float(row_holds(store.arrays, row, marks, box))


class RankArrays(NamedTuple):
    """The parameters that kernels of kind `rank` read. Values of rows that are not live are undefined."""

    alphas: np.ndarray  # float64[n]  the weight of the place, 0 .. 1; words weigh 1 - alpha
    thresholds: np.ndarray  # float64[n]  the least score to deliver, 0 .. 1
    own_weights: np.ndarray  # float64[n]  the weight of all terms of the row
    weights: np.ndarray  # float64[n_terms or more]  by term; finite, not negative


class RankParams(RowParams):
    """Kind `rank`: alpha and threshold of each row, and the weight of its terms."""

    kind = RANK

    def __init__(self, weights: np.ndarray = NO_WEIGHTS) -> None:
        super().__init__(weights)
        self._own_weights = np.empty(0)
        self._high = 0

    @property
    def arrays(self) -> RankArrays:
        alphas, thresholds = self.columns["alpha"], self.columns["threshold"]
        n = self._high
        return RankArrays(alphas[:n], thresholds[:n], self._own_weights[:n], self.weights)

    def score(self, store: RowStore, row: int, marks: np.ndarray, box: np.ndarray) -> float:
        return float(_score_row(store.arrays, self.arrays, row, marks, box))

    def least_score(self, row: int) -> float:
        return float(self.columns["threshold"][row])

    def put(self, store: RowStore, rows: np.ndarray, batch: RowBatch) -> None:
        super().put(store, rows, batch)
        self._high = store.high
        self._own_weights = grown(self._own_weights, store.high, fill=0.0)
        if store.n_terms > len(self.weights):
            largest = self.weights.max() if len(self.weights) else DEFAULT_WEIGHT
            self.weights = grown(self.weights, store.n_terms, fill=float(largest))
        _weigh_rows(store.arrays, rows, self.weights, self._own_weights)

    def state(self) -> dict[str, np.ndarray]:
        return dict(self.arrays._asdict())

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.columns = {"alpha": arrays["alphas"], "threshold": arrays["thresholds"]}
        self._own_weights, self._high = arrays["own_weights"], len(arrays["alphas"])
        self.weights = arrays["weights"]


def _checked_weights(weights: np.ndarray) -> np.ndarray:
    weights = np.array(weights, np.float64)
    if not ((weights >= 0.0) & (weights <= LARGEST_WEIGHT)).all():
        raise InvalidInput(f"a weight is a number from 0 to {LARGEST_WEIGHT:g}", column="weight")
    return weights


@kernel
def _weigh_rows(store, rows, weights, out):
    for i in range(len(rows)):
        out[rows[i]] = weight_of(store, rows[i], weights)


@kernel
def _score_row(rows, rank_params, row, marks, box):
    return score_of(rows, rank_params, row, marks, box)
