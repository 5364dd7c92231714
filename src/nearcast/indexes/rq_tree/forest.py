"""A quadtree for each term, over the rows whose rarest term it is. Most are one leaf, which is a plain list."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct
from nearcast.arrays.vector import prefetch
from nearcast.geo.space import Space
from nearcast.matching.predicate import mark_terms
from nearcast.matching.store import RowStore
from nearcast.structures.node_table import term_key
from nearcast.structures.quadtree.cells import span_of
from nearcast.structures.quadtree.growth import QuadOptions, Quadtrees
from nearcast.structures.quadtree.met_lists import entries_met, met_below, rows_holding, terms_to_file
from nearcast.structures.quadtree.nodes import NONE, RowColumns
from nearcast.structures.quadtree.room import with_roots
from nearcast.structures.quadtree.tree import BY_ROW
from nearcast.structures.term_order import NO_TERM

_NO_TOKENS = np.zeros(0, np.int32)


class QuadForest(Quadtrees):
    """Entries show terms as met_lists.py has it. A term keeps its root when its last row goes."""

    def __init__(self, store: RowStore, space: Space, options: QuadOptions) -> None:
        super().__init__(store, space, options, 0)
        self.roots = np.zeros(0, np.int32)  # by term, NONE where it never had a row
        self.filed = np.zeros(0, np.int32)  # by row: the term below whose root it is

    def build(self, rows: np.ndarray) -> None:
        """Start anew with these rows."""
        filed, shown = terms_to_file(self._store, rows)
        order = np.lexsort((rows, filed))
        rows, filed, shown = rows[order], filed[order], shown[order]
        terms = distinct(filed)
        self.roots = np.full(self._store.n_terms, NONE, np.int32)
        self.roots[terms] = np.arange(len(terms))
        self.filed = np.full(self._store.high, NO_TERM, np.int32)
        self.filed[rows] = filed
        self._build(rows, np.append(np.searchsorted(filed, terms), len(rows)).astype(np.int64), shown)

    def insert(self, rows: np.ndarray) -> None:
        filed, shown = terms_to_file(self._store, rows)
        self.roots = grown(self.roots, self._store.n_terms, fill=NONE)
        unknown = distinct(filed[self.roots[filed] == NONE])
        self.arrays, self.roots[unknown] = with_roots(self.arrays, len(unknown))
        self.filed = grown(self.filed, self._store.high, fill=NO_TERM)
        self.filed[rows] = filed
        self._insert(rows, self.roots[filed], shown, self._held)

    def remove(self, rows: np.ndarray) -> None:
        """Forget rows, which are still in the store."""
        self._remove(rows, self.roots[self.filed[rows]], self._held)

    @property
    def _held(self) -> RowColumns:
        return RowColumns(self._store.arrays.boxes, _NO_TOKENS, BY_ROW)

    def state(self) -> dict[str, np.ndarray]:
        return super().state() | {"roots": self.roots, "filed": self.filed}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.roots, self.filed = arrays["roots"], arrays["filed"]


@kernel
def search_forest(quad, roots, store, messages, marks, starts):
    """Fill starts; return the rows that hold, how many nodes were visited and how many entries were looked at."""
    lists, counts = quad.lists, quad.lists.counts
    out, found, met = np.empty(1024, np.int32), np.empty(64, np.int32), np.empty(64, np.int64)
    n = nodes = seen = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        found, n_found = _met(quad.nodes, roots, messages, m, found)
        met, n_met = with_room(met, 0, n_found), 0
        for k in range(n_found):
            if counts[found[k]] > 0:
                prefetch(lists.boxes, 4 * lists.offsets[found[k]])
                met[n_met] = term_key(found[k], found[k])
                n_met += 1
                seen += counts[found[k]]
        mark_terms(marks, messages, m, 1)
        out, stop = entries_met(quad, (met, n_met), marks, box, out, n)
        n = rows_holding(lists, store, marks, box, out, n, stop)
        mark_terms(marks, messages, m, 0)
        nodes += n_found
        starts[m + 1] = n
    return out[:n].copy(), nodes, seen


@kernel
def _met(nodes, roots, messages, m, found):
    """Write the nodes that a message overlaps in the trees of its terms, but for empty ones; return (found, n)."""
    entries = nodes.entries
    first, stop = messages.term_starts[m], messages.term_starts[m + 1]
    found = with_room(found, 0, stop - first)
    n = 0
    for k in range(first, stop):
        term = messages.terms[k]
        if term < len(roots) and roots[term] != NONE and entries[roots[term]] > 0:
            found[n] = roots[term]
            n += 1
    return met_below(nodes, span_of(nodes.bounds, messages.boxes[m]), found, n)
