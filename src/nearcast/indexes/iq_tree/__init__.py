"""IQ-Tree: a quadtree in which a cost model picks the cells of each row; a cell files rows under their rarest token.

Paper      ap-tree
Idea       Place first: a message visits the cells at its place on every level, and in each the lists of its tokens. A
           row with a rare token lies in few large cells, a row with a frequent token in many small ones, which follow
           its box closely.
Layout     nodes in flat arrays; one hash table (node, term) -> list; lists of (row, second rarest term, float32 box) in
           one arena; for each row its rarest term and how often messages are expected to have it.
Cost       insert and remove O(cells x depth + entries of a list); match O(levels x tokens + entries read); 24 bytes an
           entry, about 40 a list, 60 a node.
Deviates   The paper only cites another paper's cost model. Ours: a cell costs a row 1 for the copy, and 1 for each of
           `horizon` messages that is in the cell and has the row's rarest token. A row takes the cheapest cells.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.indexes.iq_tree.cover import Masses, covers, doublings_of, masses_of
from nearcast.indexes.iq_tree.filing import LISTS, LISTS_FREE, Entries, file_all, file_some, reach_nodes, take_out
from nearcast.indexes.iq_tree.search import search
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.expected_messages import ExpectedMessages, SampledMethod, SampledStructure
from nearcast.structures.quadtree.list_scan import filing_terms
from nearcast.structures.quadtree.lists import with_lists
from nearcast.structures.quadtree.nodes import ROOT, USED
from nearcast.structures.quadtree.quadtrees import QuadOptions, Quadtrees
from nearcast.structures.structure_method import run_search
from nearcast.structures.term_order import NO_TERM


class CellTree(Quadtrees, SampledStructure):
    """Rows of a store in the cells that cost least over `horizon` messages, none below level `depth`.

    The probabilities of cells and terms are estimated at a build and kept until the next. Each row's term and expected
    frequency are kept, so that its cells can be computed again when it is removed.
    """

    saved: ClassVar = {name: name for name in ("free", "head", "filed", "doublings")}

    def __init__(self, store: RowStore, space: Space, horizon: int, depth: int) -> None:
        if not isinstance(horizon, int) or isinstance(horizon, bool) or not 1 <= horizon <= 10**9:
            raise InvalidInput(f"horizon is a whole number from 1 to {10**9}, not {horizon!r}")
        super().__init__(store, space, QuadOptions(tau_num=1, tau_area=0, depth=depth, copies=1), 1)
        self._horizon = horizon
        self.free, self.head = np.zeros(0, np.int32), np.zeros(2, np.int64)  # of list numbers: see filing.py
        self.filed = np.zeros(0, np.int32)  # by row: the term under which it is filed
        self.doublings = np.zeros(0, np.uint8)  # by row: log2 of how often messages will have that term
        self._learn(np.zeros((0, 4)))

    def _learn(self, boxes: np.ndarray) -> None:
        """Estimate where messages will be and which terms they will have, from the sample and the rows."""
        store, sample = self._store, self.sample
        places = np.zeros((0, 4)) if sample is None else sample.boxes
        self.masses = masses_of(boxes, places, self.arrays.nodes.bounds)
        by_term = np.arange(1, store.n_terms + 1, dtype=np.int32)
        self._expected = ExpectedMessages(sample, by_term, store.frequencies, store.n_terms)

    def build(self, rows: np.ndarray) -> None:
        rows, boxes = np.sort(rows), self._store.arrays.boxes[rows]
        self.arrays = self._empty_trees(1, boxes)
        self._learn(boxes)
        self.filed = np.full(self._store.high, NO_TERM, np.int32)
        self.doublings = np.zeros(self._store.high, np.uint8)
        entries = self._entries(rows, *self._file_terms(rows))
        self.arrays = file_all(self.arrays.nodes, entries)
        self.free, self.head = np.zeros(0, np.int32), np.array([len(self.arrays.lists.counts), 0], np.int64)

    def insert(self, rows: np.ndarray) -> None:
        self._expected.extend_to(self._store.n_terms)
        self.filed = grown(self.filed, self._store.high, fill=NO_TERM)
        self.doublings = grown(self.doublings, self._store.high, fill=0)
        entries = self._entries(rows, *self._file_terms(rows))
        done, space = file_some(self.arrays, self.free, self.head, entries, 0)
        while done < len(entries.nodes):
            self._reserve(space, 1)
            self.arrays = self.arrays._replace(lists=with_lists(self.arrays.lists, int(self.head[LISTS]) + 1))
            done, space = file_some(self.arrays, self.free, self.head, entries, done)

    def remove(self, rows: np.ndarray) -> None:
        """Remove rows, which are still in the store."""
        terms = self.filed[rows]
        self.free = grown(self.free, int(self.head[LISTS]))
        entries = self._entries(rows, terms, terms)
        take_out(self.arrays, self.free, self.head, entries)

    def _file_terms(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Note the rarest term of each row; return it and the term of the row's entries."""
        rarest, others = filing_terms(self._store, rows)
        self.filed[rows] = rarest
        self.doublings[rows] = doublings_of(self._expected.chances[rarest + 1], self._horizon)
        return rarest, others

    def _entries(self, rows: np.ndarray, terms: np.ndarray, others: np.ndarray) -> Entries:
        """An entry for each cell of each row; nodes that are missing are added."""
        boxes, (_, limit, _) = self._store.arrays.boxes, self._settings
        cells, items = covers(self.masses, self.arrays.nodes.bounds, limit, boxes, rows, self.doublings[rows])
        nodes = np.empty(len(cells), np.int32)
        done = reach_nodes(self.arrays.nodes, cells, 0, nodes)
        while done < len(cells):
            self._reserve_nodes(4)
            done = reach_nodes(self.arrays.nodes, cells, done, nodes)
        return Entries(rows, terms, others, boxes, nodes, items)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Nodes, lists, entries."""
        nodes = self.arrays.nodes
        n_nodes = int(np.count_nonzero(nodes.levels[: nodes.head[USED]] >= 0))
        return n_nodes, int(self.head[LISTS] - self.head[LISTS_FREE]), int(nodes.entries[ROOT])

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        learnt = {"chances": self._expected.chances, "masses": self.masses.cells, "grid": np.array([self.masses.grid])}
        return arrays | learnt | self._sample_state(), header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self._restore_sample(arrays)
        self._learn(np.zeros((0, 4)))
        self.masses = Masses(arrays["masses"], int(arrays["grid"][0]))
        self._expected.chances = arrays["chances"]


class IqTree(SampledMethod):
    name = "iq-tree"
    paper = "ap-tree"
    effort_ceiling = 0.1
    checked_with = ("", "horizon=1", "horizon=50 depth=2", "horizon=20000 depth=5", "horizon=5000 depth=24")
    structure: CellTree

    def __init__(self, store: RowStore, space: Space, horizon: int = 3_000, depth: int = 16) -> None:
        super().__init__(store, space)
        self.structure = CellTree(store, space, horizon, depth)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return run_search(search, (self.structure.arrays,), self.store, messages)

    @property
    def plan(self) -> str:
        nodes, lists, entries = self.structure.counts
        return f"{self.name}: {nodes:,} nodes, {lists:,} lists, {entries:,} entries"
