"""RQ-Tree: each row is filed under its rarest token, and each token has a quadtree over the boxes of its rows.

Paper      ap-tree
Idea       Tokens first: a message reads only the trees of its own tokens, and of large trees only the cells at its
           place.
Layout     the root of each term; nodes of all trees in flat arrays; lists of (row, second rarest term, float32 box) in
           one arena; the term of each row. Most trees are one leaf, which is a plain list.
Cost       insert and remove O(copies x (depth + entries of a list)); match O(tokens + nodes and entries read);
           24 bytes an entry, 60 a node.
Deviates   The paper cites another paper's cost model for placing boxes in cells; here a box lies at the deepest level
           where it needs at most `copies` cells. A list of fewer than `tau_num` rows is not divided.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nearcast.arrays.growable import grown, with_room
from nearcast.arrays.jit import kernel
from nearcast.arrays.ragged import distinct
from nearcast.arrays.vector import prefetch
from nearcast.geo.space import Space
from nearcast.matching.predicate import mark_terms
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.node_table import term_key
from nearcast.structures.quadtree.cells import span_of
from nearcast.structures.quadtree.list_scan import (
    ListKeys,
    add_nodes_below,
    filing_terms,
    matching_entries,
    verified_rows,
)
from nearcast.structures.quadtree.nodes import NONE
from nearcast.structures.quadtree.quadtrees import QuadOptions, QuadtreeMethod, Quadtrees
from nearcast.structures.structure_method import run_search
from nearcast.structures.term_order import NO_TERM


class QuadForest(Quadtrees):
    """A quadtree for each term, over the rows whose rarest term it is. A term keeps its root when its last row goes."""

    saved: ClassVar = {"roots": "roots", "filed": "filed"}

    def __init__(self, store: RowStore, space: Space, options: QuadOptions) -> None:
        super().__init__(store, space, options, 0)
        self.roots = np.zeros(0, np.int32)  # by term; NONE where it never had a row
        self.filed = np.zeros(0, np.int32)  # by row: the term whose tree has it

    def build(self, rows: np.ndarray) -> None:
        filed, other = filing_terms(self._store, rows)
        order = np.lexsort((rows, filed))
        rows, filed, other = rows[order], filed[order], other[order]
        terms = distinct(filed)
        self.roots = np.full(self._store.n_terms, NONE, np.int32)
        self.roots[terms] = np.arange(len(terms))
        self.filed = np.full(self._store.high, NO_TERM, np.int32)
        self.filed[rows] = filed
        self._build(rows, np.append(np.searchsorted(filed, terms), len(rows)).astype(np.int64), other)

    def insert(self, rows: np.ndarray) -> None:
        filed, other = filing_terms(self._store, rows)
        self.roots = grown(self.roots, self._store.n_terms, fill=NONE)
        unknown = distinct(filed[self.roots[filed] == NONE])
        self.roots[unknown] = self._add_roots(len(unknown))
        self.filed = grown(self.filed, self._store.high, fill=NO_TERM)
        self.filed[rows] = filed
        self._insert(rows, self.roots[filed], other)

    def remove(self, rows: np.ndarray) -> None:
        """Remove rows, which are still in the store."""
        self._remove(rows, self.roots[self.filed[rows]])


class RqTree(QuadtreeMethod):
    name = "rq-tree"
    paper = "ap-tree"
    effort_ceiling = 0.05
    checked_with = ("", "tau_num=2", "tau_num=1 copies=1 depth=5", "tau_num=5 copies=16 tau_area=0.01")
    structure_type = QuadForest
    structure: QuadForest

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return run_search(_search, (self.structure.arrays, self.structure.roots), self.store, messages)


@kernel
def _search(quad, roots, store, messages, marks, starts):
    """Fill starts; return the rows that hold, the number of nodes visited and the number of entries read."""
    lists, counts = quad.lists, quad.lists.counts
    out, found, keys = np.empty(1024, np.int32), np.empty(64, np.int32), np.empty(64, np.int64)
    n = nodes = entries = 0
    for m in range(len(starts) - 1):
        box = messages.boxes[m]
        found, n_found = _overlapping_nodes(quad.nodes, roots, messages, m, found)
        keys, n_keys = with_room(keys, 0, n_found), 0
        for k in range(n_found):
            if counts[found[k]] > 0:
                prefetch(lists.boxes, 4 * lists.offsets[found[k]])
                keys[n_keys] = term_key(found[k], found[k])
                n_keys += 1
                entries += counts[found[k]]
        mark_terms(marks, messages, m, 1)
        out, stop = matching_entries(quad, ListKeys(keys, n_keys), marks, box, out, n)
        n = verified_rows(lists, store, marks, box, out, n, stop)
        mark_terms(marks, messages, m, 0)
        nodes += n_found
        starts[m + 1] = n
    return out[:n].copy(), nodes, entries


@kernel
def _overlapping_nodes(nodes, roots, messages, m, found):
    """Write the non-empty nodes that message m overlaps in the trees of its terms to `found`; return (found, n)."""
    entries = nodes.entries
    first, stop = messages.term_starts[m], messages.term_starts[m + 1]
    found = with_room(found, 0, stop - first)
    n = 0
    for k in range(first, stop):
        term = messages.terms[k]
        if term < len(roots) and roots[term] != NONE and entries[roots[term]] > 0:
            found[n] = roots[term]
            n += 1
    return add_nodes_below(nodes, span_of(nodes.bounds, messages.boxes[m]), found, n)
