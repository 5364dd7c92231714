"""The tree as a whole: built, changed, saved and opened."""

from __future__ import annotations

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import IntMap
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.indexes.iq_tree.chances import Masses, doublings_of, masses_of
from nearcast.indexes.iq_tree.cover import covers
from nearcast.indexes.iq_tree.filing import (
    LISTS,
    LISTS_FREE,
    Entries,
    Filed,
    all_filed,
    file_some,
    reach_nodes,
    with_lists,
    without,
)
from nearcast.matching.sample import few_of
from nearcast.matching.store import RowStore
from nearcast.model import MessageBatch
from nearcast.structures.expected_messages import MOST, Expected
from nearcast.structures.quadtree.cells import frame
from nearcast.structures.quadtree.growth import QuadOptions, Quadtrees
from nearcast.structures.quadtree.lists import laid_out
from nearcast.structures.quadtree.met_lists import terms_to_file
from nearcast.structures.quadtree.nodes import ROOT, USED, QuadtreeArrays, root_nodes
from nearcast.structures.quadtree.room import with_nodes
from nearcast.structures.term_order import NO_TERM

_LONGEST = 10**9


class CellTree(Quadtrees):
    """Rows of a store in the cells that are the cheapest over `horizon` messages, none below level `depth`.

    What the costs are made of is learnt at the build and kept until the next one; of a row its term, and how often that
    is met, are kept, and its cells are computed again when it goes.
    """

    def __init__(self, store: RowStore, space: Space, horizon: int, depth: int) -> None:
        if not isinstance(horizon, int) or isinstance(horizon, bool) or not 1 <= horizon <= _LONGEST:
            raise InvalidInput(f"horizon is a whole number from 1 to {_LONGEST}, not {horizon!r}")
        super().__init__(store, space, QuadOptions(tau_num=1, tau_area=0, depth=depth, copies=1), 1)
        self._horizon = horizon
        self.sample: MessageBatch | None = None
        self.free, self.head = np.zeros(0, np.int32), np.zeros(2, np.int64)
        self.filed = np.zeros(0, np.int32)  # by row: the term under which it is
        self.doublings = np.zeros(0, np.uint8)  # by row: how often that term is met
        self._learn(np.zeros((0, 4)))

    def expect(self, messages: MessageBatch) -> None:
        self.sample = few_of(messages, MOST) if messages.size else None

    def _learn(self, boxes: np.ndarray) -> None:
        """Where messages will be, and which terms they will have: by the sample, and by the rows."""
        store, sample = self._store, self.sample
        places = np.zeros((0, 4)) if sample is None else sample.boxes
        self.masses = masses_of(boxes, places, self.arrays.nodes.bounds)
        by_term = np.arange(1, store.n_terms + 1, dtype=np.int32)
        self._expected = Expected(sample, by_term, store.frequencies, store.n_terms)

    def build(self, rows: np.ndarray) -> None:
        """Start anew with these rows."""
        rows, boxes = np.sort(rows), self._store.arrays.boxes[rows]
        nodes = root_nodes(1, frame(boxes, self._space.bounds), self._settings)
        nothing = np.zeros(0, np.int64)
        self.arrays = QuadtreeArrays(nodes, laid_out(nothing, nothing), IntMap().arrays, np.zeros(1, np.int64))
        self._learn(boxes)
        self.filed = np.full(self._store.high, NO_TERM, np.int32)
        self.doublings = np.zeros(self._store.high, np.uint8)
        entries = self._entries(rows, *self._terms_of(rows))
        self._take_over(all_filed(self.arrays.nodes, entries))

    def insert(self, rows: np.ndarray) -> None:
        self._expected.know(self._store.n_terms)
        self.filed = grown(self.filed, self._store.high, fill=NO_TERM)
        self.doublings = grown(self.doublings, self._store.high, fill=0)
        entries, filed = self._entries(rows, *self._terms_of(rows)), self._whole
        done, space = file_some(filed, entries, 0)
        while done < len(entries.nodes):
            filed = with_lists(filed, space)
            done, space = file_some(filed, entries, done)
        self._take_over(filed)

    def remove(self, rows: np.ndarray) -> None:
        """Forget rows, which are still in the store."""
        filed = self.filed[rows]
        self._take_over(without(self._whole, self._entries(rows, filed, filed)))

    def _terms_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rarest term of each row, which is noted, and what its entries show."""
        rarest, shown = terms_to_file(self._store, rows)
        self.filed[rows] = rarest
        self.doublings[rows] = doublings_of(self._expected.chances[rarest + 1], self._horizon)
        return rarest, shown

    def _entries(self, rows: np.ndarray, terms: np.ndarray, shown: np.ndarray) -> Entries:
        """An entry for each cell of each row, with its node, which is made if need be."""
        boxes, (_, limit, _) = self._store.arrays.boxes, self._settings
        bounds = self.arrays.nodes.bounds
        cells, items = covers(self.masses, bounds, limit, boxes, rows, self.doublings[rows])
        nodes = np.empty(len(cells), np.int32)
        done = reach_nodes(self.arrays.nodes, cells, 0, nodes)
        while done < len(cells):
            self.arrays = with_nodes(self.arrays, 4)
            done = reach_nodes(self.arrays.nodes, cells, done, nodes)
        return Entries(rows, terms, shown, boxes, nodes, items)

    @property
    def _whole(self) -> Filed:
        return Filed(self.arrays, self.free, self.head)

    def _take_over(self, filed: Filed) -> None:
        self.arrays, self.free, self.head = filed

    @property
    def counts(self) -> tuple[int, int, int]:
        """Nodes, lists, entries."""
        nodes = self.arrays.nodes
        n_nodes = int(np.count_nonzero(nodes.levels[: nodes.head[USED]] >= 0))
        return n_nodes, int(self.head[LISTS] - self.head[LISTS_FREE]), int(nodes.entries[ROOT])

    def state(self) -> dict[str, np.ndarray]:
        arrays = super().state() | {"free": self.free, "head": self.head, "filed": self.filed}
        arrays |= {"doublings": self.doublings, "chances": self._expected.chances}
        arrays |= {"masses": self.masses.cells, "grid": np.array([self.masses.grid])}
        if self.sample is not None:
            arrays |= {f"expected_{name}": array for name, array in self.sample._asdict().items()}
        return arrays

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.free, self.head = arrays["free"], arrays["head"]
        self.filed, self.doublings = arrays["filed"], arrays["doublings"]
        if "expected_ids" in arrays:
            self.sample = MessageBatch(*(arrays[f"expected_{name}"] for name in MessageBatch._fields))
        self._learn(np.zeros((0, 4)))
        self.masses = Masses(arrays["masses"], int(arrays["grid"][0]))
        self._expected.chances = arrays["chances"]
