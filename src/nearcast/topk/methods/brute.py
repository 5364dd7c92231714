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
        for row in numbers.tolist():
            self._best[row] = self._scored(row)

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
        parts = []
        for row in sorted(self._best, key=lambda number: self.rows.arrays.ids[number]):
            before, self._best[row] = self._best[row], self._scored(row)
            parts.append(difference(int(self.rows.arrays.ids[row]), before, self._best[row], self.window, time))
        return joined_changes(parts)

    def _scored(self, row: int) -> Results:
        window = self.window
        scores, marks = np.empty(len(window)), np.zeros(len(self.weights), np.uint8)
        _score_window(window.ring, window.first, self.rows.arrays, row, self.metric, marks, scores)
        self._n_scored += len(scores)
        arrivals = window.first + np.flatnonzero(scores >= 0.0)
        scores = scores[scores >= 0.0]
        order = np.lexsort((-arrivals, -scores))[: self.rows.arrays.ks[row]]
        return Results(arrivals[order], scores[order])

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
def _score_window(ring, first, rows, row, metric, marks, out_scores):
    mark_row(rows, row, 1, marks)
    for i in range(len(out_scores)):
        out_scores[i] = score_message(ring, first + i, rows, row, metric, marks)
    mark_row(rows, row, 0, marks)
