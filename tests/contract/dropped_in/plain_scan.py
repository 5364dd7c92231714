"""A plain scan: what a newcomer's first method might be.

Paper      baseline; a test's own.
Idea       Keep the rows in a set and compare each of them.
Layout     a Python set of row numbers.
Cost       insert O(1); match O(n) a message.
Deviates   nothing.
"""

from __future__ import annotations

import numpy as np

from nearcast.matching.method import Method
from nearcast.model import Hits, Work


class PlainScan(Method):
    name = "plain-scan"
    paper = "baseline"
    effort_ceiling = 1.0

    def __init__(self, store, space):
        super().__init__(store, space)
        self._rows = set()

    def build(self, rows):
        self._rows = set(rows.tolist())

    def insert(self, rows):
        self._rows |= set(rows.tolist())

    def remove(self, rows):
        self._rows -= set(rows.tolist())

    def holds(self, row, terms, place):
        store = self.store.arrays
        first = store.offsets[row]
        own = store.terms[first : first + store.n_terms[row]].tolist()
        box = store.boxes[row].tolist()
        return self.all_occur(own, terms) and self.touches(box, place)

    def all_occur(self, own, terms):
        return all(term in terms for term in own)

    def touches(self, box, place):
        return box[0] <= place[2] and box[2] >= place[0] and box[1] <= place[3] and box[3] >= place[1]

    def found(self, terms, place):
        return [row for row in sorted(self._rows) if self.holds(row, terms, place)]

    def match(self, messages):
        starts, rows = [0], []
        for m in range(messages.size):
            terms = set(messages.terms[messages.term_starts[m] : messages.term_starts[m + 1]].tolist())
            rows += self.found(terms, messages.boxes[m].tolist())
            starts.append(len(rows))
        work = Work(messages.size, messages.size * len(self._rows), len(rows))
        return Hits(np.array(rows, np.int32), np.array(starts, np.int64)), work

    @property
    def nbytes(self):
        return 4 * len(self._rows)

    def state(self):
        return {"rows": np.array(sorted(self._rows), np.int32)}, {}

    def restore(self, arrays, header):
        self._rows = set(arrays["rows"].tolist())
