"""A scan of all rows by the exact test of their kind: the oracle of any kind, in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.matching.method import Method
from nearcast.matching.predicate import mark_terms
from nearcast.model import Hits, MessageBatch, Work


class ExactScan(Method):
    """Compares every message with every live row. Subclasses set `kind` and `name`, and may override `scan`."""

    paper = "baseline"
    effort_ceiling = 1.0
    takes_termless_rows = True

    def build(self, rows: np.ndarray) -> None:
        pass

    def insert(self, rows: np.ndarray) -> None:
        pass

    def remove(self, rows: np.ndarray) -> None:
        pass

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        starts = np.zeros(messages.size + 1, np.int64)
        rows, scores = self.scan(messages, np.zeros(self.store.n_terms, np.uint8), starts)
        return Hits(rows, starts, scores), Work(messages.size, messages.size * self.store.live, len(rows))

    def scan(
        self, messages: MessageBatch, marks: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The delivered rows of each message, and their scores where the kind is scored. Fills `starts`."""
        params, live, found = self.store.params, self.store.live_rows().tolist(), list[tuple[int, float]]()
        for m in range(messages.size):
            mark_terms(marks, messages, m, 1)
            scores = ((row, params.score(self.store, row, marks, messages.boxes[m])) for row in live)
            found += [(row, score) for row, score in scores if score >= params.least_score(row)]
            mark_terms(marks, messages, m, 0)
            starts[m + 1] = len(found)
        rows = np.array([row for row, _ in found], np.int32)
        return rows, np.array([score for _, score in found], np.float64) if params.kind.is_scored else None

    @property
    def nbytes(self) -> int:
        return 0

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        pass
