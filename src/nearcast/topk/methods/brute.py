"""Brute force for kind `top`: the oracle.

Paper      baseline
Idea       Every step scores all messages of the window for every row and sorts them.
Layout     Scores of one row at a time; the best k of the last step, by row.
Cost       A step takes time proportional to rows x messages of the window.
Deviates   nothing
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.geo.space import Space
from nearcast.model import Changes
from nearcast.tables.changes import joined_changes
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.method import Results, TopMethod, difference
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric, mark_row, score_message
from nearcast.topk.window import RENUMBERING, Window

_NOTHING = Results(np.empty(0, np.int64), np.empty(0))


class BruteTop(TopMethod):
    """Scores everything at every step."""

    name = "brute"
    paper = "baseline"

    def __init__(self, rows: TopRows, window: Window, metric: Metric, space: Space) -> None:
        super().__init__(rows, window, metric, space)
        self._best: dict[int, Results] = {}
        self._n_scored = 0

    def insert(self, numbers: np.ndarray) -> None:
        self._best |= dict(zip(numbers.tolist(), self._lists(numbers), strict=True))

    def remove(self, numbers: np.ndarray) -> None:
        for row in numbers.tolist():
            del self._best[row]

    def publish(self, messages: IncomingMessages) -> Changes:
        window = self.window
        window.load(messages)
        steps = []
        for time in messages.times.tolist():
            window.first = window.expired_before(time)
            window.stop += 1
            steps.append(self._step(time))
        return joined_changes(steps)

    def expire_until(self, first: int, time: int) -> Changes:
        self.window.first = first
        return self._step(time)

    def _step(self, time: int) -> Changes:
        arrays, parts = self.rows.arrays, list[Changes]()
        numbers = np.fromiter(self._best, np.int32, len(self._best))
        numbers = numbers[np.argsort(self.rows.names.ranks(arrays.ids[numbers]), kind="stable")]
        for row, after in zip(numbers.tolist(), self._lists(numbers), strict=True):
            before = self._best[row]
            if not (np.array_equal(before.arrivals, after.arrivals) and np.array_equal(before.scores, after.scores)):
                self._best[row] = after
                parts.append(difference(int(arrays.ids[row]), before, after, self.window, time))
        return joined_changes(parts)

    def _lists(self, numbers: np.ndarray) -> list[Results]:
        """The best messages of rows, from the scores of all messages of the window."""
        window, arrays = self.window, self.rows.arrays
        scores, marks = np.empty((len(numbers), len(window))), np.zeros(len(self.weights), np.uint8)
        _score_all(window.ring, window.first, arrays, numbers, self.metric, marks, scores)
        self._n_scored += scores.size
        # A stable sort of the negated scores, newest first, leaves equal scores with the newest in front.
        order = len(window) - 1 - np.argsort(-scores[:, ::-1], axis=1, kind="stable")
        n_shared = np.count_nonzero(scores >= 0.0, axis=1)
        best = [at[: min(k, n)] for at, k, n in zip(order, arrays.ks[numbers], n_shared, strict=True)]
        return [Results(window.first + at, scores[i, at]) for i, at in enumerate(best)]

    def renumber(self) -> None:
        self._best = {row: best._replace(arrivals=best.arrivals - RENUMBERING) for row, best in self._best.items()}

    def results(self, row: int) -> Results:
        return self._best.get(row, _NOTHING)

    @property
    def nbytes(self) -> int:
        return sum(best.arrivals.nbytes + best.scores.nbytes for best in self._best.values())

    @property
    def stats(self) -> dict[str, int]:
        return {"scored": self._n_scored}

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.insert(self.rows.live_rows())


@kernel
def _score_all(ring, first, rows, numbers, metric, marks, out_scores):
    for i in range(len(numbers)):
        mark_row(rows, numbers[i], 1, marks)
        for j in range(out_scores.shape[1]):
            out_scores[i, j] = score_message(ring, first + j, rows, numbers[i], metric, marks)
        mark_row(rows, numbers[i], 0, marks)
