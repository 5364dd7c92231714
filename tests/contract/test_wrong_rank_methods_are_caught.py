"""A subtly wrong method for kind `rank` fails a named check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nearcast.indexes  # noqa: F401  registers where methods come from
from nearcast.matching.checks import checks_for, failure_of
from nearcast.matching.method import REGISTRY, Method
from nearcast.matching.score import combined, place_share, weight_found, word_share
from nearcast.model import RANK, Hits, MessageBatch, Work

CHECKS = checks_for(RANK)


class _Scan(Method):
    """A plain scan, right as it stands; tests put one thing wrong."""

    kind = "rank"
    effort_ceiling = 1.0
    takes_termless_rows = True
    fault = ""

    def __init__(self, store: Any, space: Any) -> None:
        super().__init__(store, space)
        self._rows: set[int] = set()

    def build(self, rows: np.ndarray) -> None:
        self._rows = set(rows.tolist())

    def insert(self, rows: np.ndarray) -> None:
        self._rows |= set(rows.tolist())

    def remove(self, rows: np.ndarray) -> None:
        self._rows -= set((rows[1:] if self.fault == "stale" else rows).tolist())

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        rows: list[int] = []
        scores: list[float] = []
        starts = [0]
        for m in range(messages.size):
            marks = np.zeros(self.store.n_terms, np.uint8)
            marks[messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]]] = 1
            for row in self._rows:
                score = self._score(row, marks, messages.boxes[m])
                if self._delivered(row, score, marks):
                    rows.append(row)
                    scores.append(score)
            starts.append(len(rows))
        hits = Hits(np.array(rows, np.int32), np.array(starts, np.int64), np.array(scores, np.float64))
        return hits, Work(messages.size, messages.size * len(self._rows), len(rows))

    def _score(self, row: int, marks: np.ndarray, box: np.ndarray) -> float:
        arrays, params = self.store.arrays, self.store.params.arrays
        own = arrays.boxes[row]
        place = place_share(own, box)
        if self.fault == "points as ranges" and (box[:2] == box[2:]).all():
            place = 0.0
        if self.fault == "open border" and (own[0] == box[2] or own[2] == box[0]):
            place = 0.0
        found, whole = weight_found(arrays, row, marks, params.weights), params.own_weights[row]
        words = word_share(found, whole) if self.fault != "termless have none" else found / whole if whole else 0.0
        score: float = combined(params.alphas[row], place, words)
        return score + 1e-12 if self.fault == "another sum" else score

    def _delivered(self, row: int, score: float, marks: np.ndarray) -> bool:
        params, arrays = self.store.params.arrays, self.store.arrays
        threshold = params.thresholds[row]
        terms = arrays.terms[arrays.offsets[row] : arrays.offsets[row] + arrays.n_terms[row]]
        if self.fault == "a shared term needed" and len(terms) and not marks[terms].any():
            return False
        if self.fault == "strictly above":
            return bool(score > threshold)
        return bool(score >= threshold)

    @property
    def nbytes(self) -> int:
        return 8 * len(self._rows)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"rows": np.array(sorted(self._rows), np.int32)}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._rows = set(arrays["rows"].tolist())


@pytest.fixture
def scan() -> Iterator[type[_Scan]]:
    """A fresh class, registered until the test ends."""
    yield type("Scan", (_Scan,), {"name": "scan"})
    del REGISTRY["rank", "scan"]


FAULTS = {
    "": None,
    "stale": "check_remove_is_complete_and_forgiving",
    "points as ranges": "check_place_alone_can_be_enough",
    "open border": "check_points_on_the_border_are_inside",
    "termless have none": "check_rows_without_terms_or_weight_have_all_their_words",
    "another sum": "check_scores_are_those_of_the_formula",
    "a shared term needed": "check_place_alone_can_be_enough",
    "strictly above": "check_a_score_equal_to_the_threshold_is_delivered",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_subtly_wrong_method_fails_a_named_check(fault: str, scan: type[_Scan]) -> None:
    scan.fault = fault
    named = FAULTS[fault]
    if named is None:
        for check in ("check_colliding_input_matches_as_brute_does", *filter(None, FAULTS.values())):
            assert failure_of(CHECKS[check], ["scan"]) is None, check
        return
    failure = failure_of(CHECKS[named], ["scan"])
    assert failure is not None and failure.startswith("AssertionError"), f"{named} did not notice"
