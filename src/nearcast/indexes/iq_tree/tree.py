"""The structure of `iq-tree`: builds, changes, saves and restores the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.indexes.iq_tree.chances import Masses, doublings_of, masses_of
from nearcast.indexes.iq_tree.cover import covers
from nearcast.indexes.iq_tree.filing import (
    LISTS,
    LISTS_FREE,
    Entries,
    FiledArrays,
    file_all,
    file_some,
    reach_nodes,
    with_room_for_list,
    without_entries,
)
from nearcast.matching.store import RowStore
from nearcast.structures.expected_messages import ExpectedMessages, SampledStructure
from nearcast.structures.quadtree import quadtrees
from nearcast.structures.quadtree.cells import frame
from nearcast.structures.quadtree.list_scan import filing_terms
from nearcast.structures.quadtree.nodes import ROOT, USED, root_nodes
from nearcast.structures.quadtree.room import with_nodes
from nearcast.structures.term_order import NO_TERM

_LONGEST = 10**9


class CellTree(quadtrees.Quadtrees, SampledStructure):
    """Rows of a store in the cells that cost least over `horizon` messages, none below level `depth`.

    The probabilities of cells and terms are estimated at a build and kept until the next. Each row's term and expected
    frequency are kept, so that its cells can be computed again when it is removed.
    """

    def __init__(self, store: RowStore, space: Space, horizon: int, depth: int) -> None:
        if not isinstance(horizon, int) or isinstance(horizon, bool) or not 1 <= horizon <= _LONGEST:
            raise InvalidInput(f"horizon is a whole number from 1 to {_LONGEST}, not {horizon!r}")
        super().__init__(store, space, quadtrees.QuadOptions(tau_num=1, tau_area=0, depth=depth, copies=1), 1)
        self._horizon = horizon
        self.free, self.head = np.zeros(0, np.int32), np.zeros(2, np.int64)
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
        nodes = root_nodes(1, frame(boxes, self._space.bounds), self._settings)
        self.arrays = quadtrees.without_entries(nodes, 0)
        self._learn(boxes)
        self.filed = np.full(self._store.high, NO_TERM, np.int32)
        self.doublings = np.zeros(self._store.high, np.uint8)
        entries = self._entries(rows, *self._file_terms(rows))
        self._filed = file_all(self.arrays.nodes, entries)

    def insert(self, rows: np.ndarray) -> None:
        self._expected.extend_to(self._store.n_terms)
        self.filed = grown(self.filed, self._store.high, fill=NO_TERM)
        self.doublings = grown(self.doublings, self._store.high, fill=0)
        entries, filed = self._entries(rows, *self._file_terms(rows)), self._filed
        done, space = file_some(filed, entries, 0)
        while done < len(entries.nodes):
            filed = with_room_for_list(filed, space)
            done, space = file_some(filed, entries, done)
        self._filed = filed

    def remove(self, rows: np.ndarray) -> None:
        """Remove rows, which are still in the store."""
        terms = self.filed[rows]
        entries = self._entries(rows, terms, terms)
        self._filed = without_entries(self._filed, entries)

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
            self.arrays = with_nodes(self.arrays, 4)
            done = reach_nodes(self.arrays.nodes, cells, done, nodes)
        return Entries(rows, terms, others, boxes, nodes, items)

    @property
    def _filed(self) -> FiledArrays:
        return FiledArrays(self.arrays, self.free, self.head)

    @_filed.setter
    def _filed(self, filed: FiledArrays) -> None:
        self.arrays, self.free, self.head = filed

    @property
    def counts(self) -> tuple[int, int, int]:
        """Nodes, lists, entries."""
        nodes = self.arrays.nodes
        n_nodes = int(np.count_nonzero(nodes.levels[: nodes.head[USED]] >= 0))
        return n_nodes, int(self.head[LISTS] - self.head[LISTS_FREE]), int(nodes.entries[ROOT])

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        arrays |= {"free": self.free, "head": self.head, "filed": self.filed}
        arrays |= {"doublings": self.doublings, "chances": self._expected.chances}
        arrays |= {"masses": self.masses.cells, "grid": np.array([self.masses.grid])}
        return arrays | self._sample_state(), header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self.free, self.head = arrays["free"], arrays["head"]
        self.filed, self.doublings = arrays["filed"], arrays["doublings"]
        self._restore_sample(arrays)
        self._learn(np.zeros((0, 4)))
        self.masses = Masses(arrays["masses"], int(arrays["grid"][0]))
        self._expected.chances = arrays["chances"]
