# A method of your own: an index over rows, registered by its name, checked by the shipped checks.
#
# nearcast turns a subscription into rows: sets of terms (word numbers) with one box each. A method indexes rows. NOT,
# circles, polygons, ids, expiry, threads and files are handled for every method alike.
#
# Run it:  python examples/custom_method.py

"""Rows filed under their first term.

Paper      baseline; an example.
Idea       File each row under its first term; a message compares only the rows of its own terms.
Layout     a Python dict from term to row numbers.
Cost       insert O(1); match O(rows of the message's terms).
Deviates   nothing.
"""

from typing import Any

import numpy as np

import nearcast as nc
from nearcast.matching.checks import run_checks
from nearcast.matching.method import Method
from nearcast.model import Hits, MessageBatch, Work


class FirstTerm(Method):
    name = "first-term"
    paper = "baseline"
    effort_ceiling = 0.5  # may compare at most half of all (message, row) pairs of the checks' workload

    def build(self, rows: np.ndarray) -> None:
        self.rows_by_term: dict[int, list[int]] = {}
        self.insert(rows)

    def insert(self, rows: np.ndarray) -> None:
        for row in rows.tolist():
            self.rows_by_term.setdefault(self.terms_of(row)[0], []).append(row)

    def remove(self, rows: np.ndarray) -> None:
        for row in rows.tolist():
            self.rows_by_term[self.terms_of(row)[0]].remove(row)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        found: list[int] = []
        starts, compared = [0], 0
        for m in range(messages.size):
            terms = set(messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]].tolist())
            candidates = [row for term in terms for row in self.rows_by_term.get(term, [])]
            compared += len(candidates)
            found += [row for row in candidates if self.holds(row, terms, messages.boxes[m])]
            starts.append(len(found))
        hits = Hits(np.array(found, np.int32), np.array(starts, np.int64))
        return hits, Work(nodes=messages.size, candidates=compared, matches=len(found))

    def holds(self, row: int, terms: set[int], place: np.ndarray) -> bool:
        """All terms of the row occur, and its closed box overlaps the place."""
        xmin, ymin, xmax, ymax = self.store.arrays.boxes[row]
        overlaps = xmin <= place[2] and xmax >= place[0] and ymin <= place[3] and ymax >= place[1]
        return bool(overlaps) and terms.issuperset(self.terms_of(row))

    def terms_of(self, row: int) -> list[int]:
        first = self.store.arrays.offsets[row]
        return self.store.arrays.terms[first : first + self.store.arrays.n_terms[row]].tolist()

    @property
    def nbytes(self) -> int:
        return 8 * sum(len(rows) for rows in self.rows_by_term.values())

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        rows = sorted(row for rows in self.rows_by_term.values() for row in rows)
        return {"rows": np.array(rows, np.int32)}, {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.build(arrays["rows"])


if __name__ == "__main__":
    index = nc.build_index(
        {"id": [1, 2], "expression": ["pizza deal", "pasta OR sushi"], "region": ["world", "world"]},
        method="first-term",
    )
    message = {"id": [7], "text": ["Sushi and pizza"], "lon": [0.0], "lat": [0.0]}
    print("matches:", index.match(message).to_pylist())
    failures = [outcome for outcome in run_checks("first-term") if outcome.failure]
    print("failed checks:", failures)

# Prints:
# matches: [{'message': 7, 'subscription': 2}]
# failed checks: []
