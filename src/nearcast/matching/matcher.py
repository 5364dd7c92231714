"""The matcher: a method for kind `match` and all that is common to methods, on rows and terms.

What it adds to a method: rows without terms (held apart, by place), replacing and removing by subscription id, NOT
terms, exact shapes and expiry, each pair once and in order, threads, giving memory back, and the state to save. What it
shares with the ranker is in row_keeper.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.geo.region import Region
from nearcast.geo.shapes import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.intake import by_owner, checked_messages, checked_rows
from nearcast.matching.method import Method, make_method
from nearcast.matching.owners import Owners
from nearcast.matching.predicate import FLAG_CHAINED
from nearcast.matching.row_keeper import RowKeeper, State, part_of
from nearcast.matching.store import RowStore
from nearcast.matching.verify import joined, owners_sorted, verified
from nearcast.model import Found, MessageBatch, RowBatch, Work
from nearcast.structures.spatial_lists import SpatialLists


class Matcher(RowKeeper):
    """Subscriptions as rows in; messages as terms in; ids out."""

    method: Method
    _nodes = _candidates = _matches = 0  # of `match_one`: kept as numbers, since to add one more `Work` takes 1 us

    def _make(self, method: str) -> None:
        self.method = make_method(method, self.store, self.space, self.options)
        self.termless = SpatialLists(self.store, self.space)
        self._n_chained = 0

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.termless.nbytes

    @property
    def stats(self) -> Work:
        return self._work.plus(Work(self._nodes, self._candidates, self._matches))

    # -- changes

    def expect(self, messages: MessageBatch) -> None:
        """A sample of the messages to come, for methods that use it: tell it before the first subscriptions."""
        self.method.expect(checked_messages(messages, np.iinfo(np.int32).max))

    def insert(self, batch: RowBatch, regions: list[Region] | None = None) -> None:
        """Add subscriptions; one whose id is known is replaced."""
        batch = checked_rows(batch)
        self.remove(batch.owner_ids)
        if self.store.high == 0:
            batch = by_owner(batch)  # so that row numbers follow ids, and sorting rows sorts ids
        rows = self.store.add(batch, regions or [])
        chained = self.owners.add(batch.owner_ids, rows, self.store.high)
        self.store.flag(chained, FLAG_CHAINED, True)
        self._n_chained += len(chained)
        if len(termless := self._termless(rows)):
            self.termless.insert(termless)
        self._index(rows)

    def _leave(self, rows: np.ndarray) -> None:
        super()._leave(rows)
        if len(termless := self._termless(rows)):
            self.termless.remove(termless)
        self._n_chained -= int(np.count_nonzero(self.store.arrays.flags[rows] & FLAG_CHAINED))

    def _own(self, rows: np.ndarray) -> np.ndarray:
        if self.method.takes_termless_rows:
            return rows
        return np.asarray(rows[self.store.arrays.n_terms[rows] > 0])

    def _termless(self, rows: np.ndarray) -> np.ndarray:
        """Those that the method leaves to the common structure."""
        if self.method.takes_termless_rows:
            return rows[:0]
        return np.asarray(rows[self.store.arrays.n_terms[rows] == 0])

    def _compact(self) -> None:
        batch, regions = self.store.batch(self.store.live_rows())
        batch = by_owner(batch)  # rows of one owner must be neighbours again for the chains
        expected = self.method.expected
        self._start(self.method.name)
        if expected is not None:
            self.method.expect(expected)
        if batch.size:
            self.insert(batch, regions)

    # -- matching

    def match_one(self, terms: np.ndarray, x: float, y: float) -> np.ndarray:
        """The subscriptions of one message at a point, the shortest way. Terms: int32, sorted, unique, not negative."""
        store, method = self.store, self.method
        if len(terms) and terms.item(-1) >= store.n_terms:
            terms = self._known(terms)
        if self.termless.size or store.live_late or self._n_chained or method.tells_costs:
            return self._match_alone(terms, x, y).ids
        ids, nodes, candidates = method.match_point(terms, x, y)
        if len(ids) > 1:
            ids.sort()
        self._nodes += nodes
        self._candidates += candidates
        self._matches += len(ids)
        return ids

    def _match_part(self, messages: MessageBatch) -> tuple[Found, Work]:
        hits, work = self.method.match(messages)
        if self.termless.size:
            more, more_work = self.termless.match(messages)
            hits, work = joined(hits, more), work.plus(more_work)
        hits = verified(self.store, messages, hits)
        found = Found(*owners_sorted(self.store, hits, self._n_chained > 0))
        return found, work._replace(matches=len(found.ids))

    # -- files

    def state(self) -> State:
        arrays, header = super().state()
        return arrays, header | {"chained": self._n_chained}

    def _parts(self) -> dict[str, State]:
        shapes = self.store.shape_table
        more = {"shapes": (shapes.arrays(), shapes.header()), "termless": self.termless.state()}
        return super()._parts() | more

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Matcher:
        made = cls(header["method"], Space.from_header(header["space"]), header["options"])
        parts = header["parts"]
        shapes = ShapeTable.from_arrays(part_of(arrays, "shapes"), parts["shapes"])
        made.store = RowStore.restored(part_of(arrays, "store"), parts["store"], shapes, made.space)
        made.owners = Owners.restored(part_of(arrays, "owners"))
        made.method = make_method(header["method"], made.store, made.space, made.options)
        made.method.restore(part_of(arrays, "method"), parts["method"])
        made.termless = SpatialLists(made.store, made.space)
        made.termless.restore(part_of(arrays, "termless"), parts["termless"])
        made._rows_at_build, made._n_chained = header["rows_at_build"], header["chained"]
        return made
