"""Every rank method x every check of kind `rank`; and subtly wrong ones are caught by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.engine.catalogue import methods
from nearcast.errors import UnsupportedKind
from nearcast.matching.checks import CHECKS, RANK_CHECKS, checks_of, failure_of
from nearcast.matching.checks.rank_cases import rank_variants
from nearcast.matching.method import REGISTRY
from nearcast.matching.rank_method import BEST_RANK_METHOD, CHOOSERS, RANK_REGISTRY, RankHits, RankMethod
from nearcast.matching.rank_method import find_rank_method as find
from nearcast.matching.score import combined, place_share, weight_found, word_share
from nearcast.model import MessageBatch, Work

CASES = [(variant, check) for name in sorted(RANK_REGISTRY) for variant in rank_variants(name) for check in RANK_CHECKS]


@pytest.mark.parametrize(("method", "check"), CASES, ids=[f"{method}-{check}" for method, check in CASES])
def test_check(method: str, check: str, request: pytest.FixtureRequest) -> None:
    reason = RANK_REGISTRY[method.split()[0]].known_gaps.get(check)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    RANK_CHECKS[check](method)


def test_known_gaps_name_real_checks_and_checks_have_names_of_their_own() -> None:
    assert not set(CHECKS) & set(RANK_CHECKS)
    assert set(checks_of("brute")) == set(CHECKS) | set(RANK_CHECKS) and set(checks_of("auto")) == set(CHECKS)
    for method in RANK_REGISTRY.values():
        assert set(method.known_gaps) <= set(RANK_CHECKS), method.name


def test_methods_say_which_kinds_they_serve() -> None:
    for info in methods():
        served = info.name in RANK_REGISTRY or info.name in CHOOSERS
        assert info.kinds == (("match", "rank") if served else ("match",)), info.name
    assert set(RANK_REGISTRY) <= set(REGISTRY) and find("auto").name == BEST_RANK_METHOD
    with pytest.raises(UnsupportedKind, match=r"'pyramid' does not serve .* 'rank'; those that do: auto, brute"):
        find("pyramid")


class _Scan(RankMethod):
    """A plain scan, right as it stands; tests put one thing wrong."""

    effort_ceiling = 1.0
    fault = ""

    def __init__(self, store: Any, asked: Any, space: Any) -> None:
        super().__init__(store, asked, space)
        self._rows: set[int] = set()

    def build(self, rows: np.ndarray) -> None:
        self._rows = set(rows.tolist())

    def insert(self, rows: np.ndarray) -> None:
        self._rows |= set(rows.tolist())

    def remove(self, rows: np.ndarray) -> None:
        self._rows -= set((rows[1:] if self.fault == "stale" else rows).tolist())

    def match(self, messages: MessageBatch) -> tuple[RankHits, Work]:
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
        hits = RankHits(np.array(rows, np.int32), np.array(scores, np.float64), np.array(starts, np.int64))
        return hits, Work(messages.size, messages.size * len(self._rows), len(rows))

    def _score(self, row: int, marks: np.ndarray, box: np.ndarray) -> float:
        arrays, asked = self.store.arrays, self.asked.arrays
        own = arrays.boxes[row]
        place = place_share(own, box)
        if self.fault == "points as ranges" and (box[:2] == box[2:]).all():
            place = 0.0
        if self.fault == "open border" and (own[0] == box[2] or own[2] == box[0]):
            place = 0.0
        found, whole = weight_found(arrays, row, marks, asked.weights), asked.own_weights[row]
        words = word_share(found, whole) if self.fault != "termless have none" else found / whole if whole else 0.0
        score: float = combined(asked.alphas[row], place, words)
        return score + 1e-12 if self.fault == "another sum" else score

    def _delivered(self, row: int, score: float, marks: np.ndarray) -> bool:
        asked, arrays = self.asked.arrays, self.store.arrays
        threshold = asked.thresholds[row]
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
    """A fresh class under a name of its own, until the test ends."""
    made = type("Scan", (_Scan,), {"name": "scan"})
    REGISTRY["scan"] = REGISTRY["brute"]
    yield made
    del RANK_REGISTRY["scan"], REGISTRY["scan"]


FAULTS = {
    "": None,
    "stale": "check_ranked_remove_is_complete_and_forgiving",
    "points as ranges": "check_ranked_place_alone_can_be_enough",
    "open border": "check_ranked_points_on_the_border_are_inside",
    "termless have none": "check_ranked_rows_without_terms_or_weight_have_all_their_words",
    "another sum": "check_ranked_scores_are_those_of_the_formula",
    "a shared term needed": "check_ranked_place_alone_can_be_enough",
    "strictly above": "check_ranked_a_score_equal_to_the_threshold_is_delivered",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_subtly_wrong_method_fails_a_named_check(fault: str, scan: type[_Scan]) -> None:
    scan.fault = fault
    named = FAULTS[fault]
    if named is None:
        for check in ("check_ranked_colliding_input_scores_as_brute_does", *filter(None, FAULTS.values())):
            assert failure_of(RANK_CHECKS[check], "scan", ["scan"]) is None, check
        return
    failure = failure_of(RANK_CHECKS[named], "scan", ["scan"])
    assert failure is not None and failure.startswith("AssertionError"), f"{named} did not notice"
