"""The live subscriptions of one kind: their rows, and the method that indexes them.

A set stores rows, replaces and removes them by subscription id, rebuilds the method after growth, compacts row numbers
after removals, and saves its state. Each change publishes a snapshot, with which readers match.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nearcast.arrays.checked import checked_column
from nearcast.arrays.ragged import distinct, sorted_sets
from nearcast.errors import InvalidInput
from nearcast.geo.shapes.columns import NO_SHAPES, ShapeColumns, checked_shapes
from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.intake import by_owner, checked_messages, checked_rows, checked_terms
from nearcast.matching.method import Method, make_method, point_searcher
from nearcast.matching.owners import Owners
from nearcast.matching.predicate import FLAG_CHAINED, FLAG_LEAVING, FLAG_LIVE, mark_terms
from nearcast.matching.row_params import EXACT_TESTS, NO_WEIGHTS
from nearcast.matching.snapshot import Snapshot, WorkCounter
from nearcast.matching.store import NO_ROWS, RowStore
from nearcast.matching.versions import Versions
from nearcast.model import MATCH, NO_TIME, Found, Kind, MessageBatch, RowBatch, Work

TERMLESS_METHOD, TERMLESS_OPTIONS = "pyramid", {"termless": True, "young": 256}
"""Serves rows of kind `match` that have no terms, whatever method serves the others. Its young part is one list that
every message reads.
"""

_SMALLEST_COMPACTION = 1024

State = tuple[dict[str, np.ndarray], dict[str, Any]]


class SubscriptionSet:
    """Subscriptions as rows in; messages as terms in; ids (and scores, of scored kinds) out.

    `weights` (float64, by term) weigh terms for scored kinds. They are fixed; later terms weigh as the heaviest.
    Threads may share a set. Changes take turns; matching takes the snapshot of the last change and never waits for
    one, unless the method changes in place (`Method.changes_in_place`). Sets with the same `versions` change together.
    """

    store: RowStore
    owners: Owners
    method: Method
    termless: Method | None
    snapshot: Snapshot

    def __init__(
        self,
        method: str,
        space: Space,
        options: dict[str, Any] | None = None,
        kind: Kind = MATCH,
        weights: np.ndarray = NO_WEIGHTS,
        versions: Versions | None = None,
    ) -> None:
        self.kind = kind
        self.space = space
        self.options = dict(options or {})
        self.versions = Versions() if versions is None else versions
        self._counter = WorkCounter()
        self._start(method, RowStore(space, EXACT_TESTS[kind.name](weights)))
        self.publish()
        self.versions.add(self)

    def _start(self, method: str, store: RowStore) -> None:
        """Begin with an empty method over a store."""
        self.store = store
        self.owners = Owners()
        self.method = make_method(method, store, self.space, self.options)
        stores_apart = self.kind is MATCH and not self.method.takes_termless_rows
        self.termless = make_method(TERMLESS_METHOD, store, self.space, TERMLESS_OPTIONS) if stores_apart else None
        self._rows_at_build = self._n_termless = self._n_chained = 0
        self._leaving: list[tuple[int, np.ndarray]] = []  # (version that removed them, rows), until readers are gone

    def __len__(self) -> int:
        """The number of subscriptions. A subscription whose expression can never hold has no row and is not counted."""
        return len(self.owners)

    @property
    def nbytes(self) -> int:
        parts = (self.store, self.store.shape_table, self.store.params, self.owners, self.method, self.termless)
        return sum(part.nbytes for part in parts if part is not None)

    @property
    def stats(self) -> Work:
        """The work done so far."""
        return self._counter.total

    def live_ids(self) -> np.ndarray:
        """int64[...]: the ids of all subscriptions, some of them repeated."""
        return np.asarray(self.store.owner_ids[self.store.live_rows()])

    # -- changes

    def expect(self, messages: MessageBatch) -> None:
        """Give the method a sample of the messages to come, before the first subscriptions."""
        self.method.expect(checked_messages(messages, np.iinfo(np.int32).max))

    def insert(self, batch: RowBatch, shapes: ShapeColumns = NO_SHAPES) -> None:
        """Add subscriptions; a subscription whose id is known is replaced."""
        shapes = checked_shapes(shapes)
        batch = checked_rows(batch, self.kind, shapes.size)
        with self.versions.change():
            self._remove(batch.owner_ids)
            self._add(batch, shapes)

    def insert_checked(self, batch: RowBatch, shapes: ShapeColumns = NO_SHAPES) -> None:
        """Add subscriptions whose ids are unknown, as `checked_rows` returned them."""
        with self.versions.change():
            self._add(batch, shapes)

    def remove(self, ids: np.ndarray) -> None:
        """Forget subscriptions by id; an unknown id is no error."""
        if len(self.owners):
            with self.versions.change():
                self._remove(np.asarray(ids, np.int64))

    def _add(self, batch: RowBatch, shapes: ShapeColumns) -> None:
        self._exclude_readers()
        if self.store.high == 0:
            batch = by_owner(batch)  # row numbers then follow ids, and sorted rows are sorted ids
        rows = self.store.add(batch, shapes)
        chained = self.owners.add(batch.owner_ids, rows, self.store.high)
        if len(chained):
            self.store.flag(chained, FLAG_CHAINED)
            self._n_chained += len(chained)
        own, termless = self._parted(rows, batch.term_starts[1:] > batch.term_starts[:-1])
        if self.termless is not None and len(termless):
            self.termless.insert(termless)
            self._n_termless += len(termless)
        if self._rows_at_build == 0 or self.store.live > self.method.rebuild_growth * self._rows_at_build:
            self.method.build(self._divided(self.store.stored_rows())[0])
            self._rows_at_build = self.store.live
        elif len(own):
            self.method.insert(own)

    def _remove(self, ids: np.ndarray) -> None:
        if len(self.owners) == 0:
            return
        ids = distinct(ids) if len(ids) > 1 else ids
        rows = self.owners.rows(ids)
        if len(rows) == 0:
            return
        self.owners.remove(ids)
        if self._changes_in_place:
            self._exclude_readers()
            self._take_out(rows)
        else:
            self.store.flag(rows, FLAG_LEAVING)
            self._leaving.append((self.versions.next_number, rows))

    @property
    def _changes_in_place(self) -> bool:
        return self.method.changes_in_place

    def _exclude_readers(self) -> None:
        if self._changes_in_place:
            self.versions.exclude_readers()

    def _take_out(self, rows: np.ndarray) -> None:
        """Remove rows that no reader sees any more."""
        own, termless = self._divided(rows)
        if len(own):
            self.method.remove(own)
        if self.termless is not None and len(termless):
            self.termless.remove(termless)
            self._n_termless -= len(termless)
        self._n_chained -= int(np.count_nonzero(self.store.arrays.flags[rows] & FLAG_CHAINED))
        self.store.remove(rows)
        if self.store.high > _SMALLEST_COMPACTION and 2 * self.store.live < self.store.high:
            self._compact()

    def _divided(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows that the method indexes, rows that are stored apart)."""
        return self._parted(rows, self.store.arrays.n_terms[rows] > 0)

    def _parted(self, rows: np.ndarray, has_terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same, of rows that have terms or none."""
        if self.termless is None or np.count_nonzero(has_terms) == len(rows):
            return rows, rows[:0]
        return rows[has_terms], rows[~has_terms]

    def _compact(self) -> None:
        """Renumber the live rows and rebuild: returns the memory of removed rows, at amortised O(1) a removal."""
        batch, shapes = self.store.batch(self.store.live_rows())
        self._begin_anew(batch, shapes, self.store.params.weights, self.method.expected)

    def renumber_terms(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        """Give each term t the number numbers[t] (int32; -1 for unused terms), as part of a change.

        Terms keep their order. `weights` are by new numbers.
        """
        batch, shapes = self.store.batch(self.store.live_rows())
        batch = batch._replace(terms=numbers[batch.terms], not_terms=numbers[batch.not_terms])
        expected = self.method.expected
        if expected is not None:
            known = np.where(expected.terms < len(numbers), numbers[np.minimum(expected.terms, len(numbers) - 1)], -1)
            terms, starts = sorted_sets(known.astype(np.int32), expected.term_starts)
            expected = expected._replace(terms=terms, term_starts=starts)
        self._begin_anew(batch, shapes, weights, expected)

    def _begin_anew(
        self, batch: RowBatch, shapes: ShapeColumns, weights: np.ndarray, expected: MessageBatch | None
    ) -> None:
        """Replace all rows. Readers keep what they have."""
        self._start(self.method.name, RowStore(self.space, EXACT_TESTS[self.kind.name](weights)))
        if expected is not None:
            self.method.expect(expected)
        if batch.size:
            self._add(by_owner(batch), shapes)  # rows of one owner must be neighbours again for the chains

    # -- versions

    def publish(self) -> None:
        """Make the present state the one that readers match with."""
        view = self.store.view(self._hidden_rows())
        searcher = self.method.searcher(view)
        points = None if self.method.reports_costs else point_searcher(searcher)
        apart = self.termless if self._n_termless else None
        termless = None if apart is None else point_searcher(apart.searcher(view))
        self.snapshot = Snapshot(view, searcher, termless, points, self._n_chained > 0, self._counter)

    def reclaim(self, oldest: int) -> bool:
        """Take out the rows that were removed up to version `oldest`; return whether there were any."""
        due = [rows for version, rows in self._leaving if version <= oldest]
        self._leaving = [each for each in self._leaving if each[0] > oldest]
        if due:
            self._take_out(np.concatenate(due))
        return bool(due)

    def _hidden_rows(self) -> np.ndarray:
        return np.sort(np.concatenate([rows for _, rows in self._leaving])) if self._leaving else NO_ROWS

    # -- matching

    def match(self, messages: MessageBatch, threads: int = 1) -> Found:
        """The subscriptions of each message."""
        with self.versions.read():
            found = self.snapshot.match(messages, threads)
        self.keep_up()
        return found

    def match_one(self, terms: np.ndarray, x: float, y: float, time: int = NO_TIME) -> np.ndarray:
        """The subscriptions of one message at a point, by the shortest path."""
        terms, (x, y) = checked_terms(terms), checked_column([x, y], np.float64, "place", 2).tolist()
        if not (math.isfinite(x) and math.isfinite(y)):
            raise InvalidInput(f"the place ({x}, {y}) is not finite")
        reader = self.versions.enter()
        try:
            ids = self.snapshot.match_one(terms, x, y, time)
        finally:
            self.versions.leave(reader)
        self.keep_up()
        return ids

    def keep_up(self) -> None:
        """Let the method do what can wait, unless a change is being made. The caller is not a reader."""
        if self.method.needs_upkeep:
            self.versions.try_change(self.method.keep_up)

    def score(self, subscription: int, message: MessageBatch) -> tuple[float, float]:
        """The best score of one subscription on one message, and the least score that it delivers.

        A subscription whose expression can never hold has no row; its score is 0 of at least 1.
        """
        with self.versions.pause():
            message, marks = checked_messages(message, self.store.n_terms), np.zeros(self.store.n_terms, np.uint8)
            mark_terms(marks, message, 0, 1)
            params, rows = self.store.params, self.owners.rows(np.array([subscription], np.int64))
            scores = [(params.score(self.store, row, marks, message.boxes[0]), params.least_score(row)) for row in rows]
        return max(scores, key=lambda each: each[0] - each[1], default=(0.0, 1.0))

    # -- files

    def state(self) -> State:
        """All arrays, by part, and the header."""
        parts = self._parts()
        arrays = {f"{part}.{name}": array for part, (own, _) in parts.items() for name, array in own.items()}
        header = {
            "method": self.method.name,
            "options": self.options,
            "space": self.space.header(),
            "rows_at_build": self._rows_at_build,
            "chained": self._n_chained,
            "parts": {part: part_header for part, (_, part_header) in parts.items()},
        }
        return arrays, header

    def _parts(self) -> dict[str, State]:
        shapes = self.store.shape_table
        parts: dict[str, State] = {
            "store": self.store.state(),
            "owners": (self.owners.state(), {}),
            "method": self.method.state(),
        }
        if self.kind.parameters:
            parts["params"] = (self.store.params.state(), {})
        if not self.kind.is_plain:
            parts["shapes"] = (shapes.arrays(), shapes.header())
        if self.termless is not None:
            parts["termless"] = self.termless.state()
        return parts

    @classmethod
    def restored(
        cls,
        arrays: dict[str, np.ndarray],
        header: dict[str, Any],
        kind: Kind = MATCH,
        versions: Versions | None = None,
    ) -> SubscriptionSet:
        """The set of a saved state."""
        space = Space.from_header(header["space"])
        made = cls(header["method"], space, header["options"], kind, versions=versions)
        params, parts = made.store.params, header["parts"]
        shapes = ShapeTable(made.space)
        if "shapes" in parts:
            shapes = ShapeTable.from_arrays(part_of(arrays, "shapes"), parts["shapes"])
        if "params" in parts:
            params.restore(part_of(arrays, "params"))
        store = RowStore.restored(part_of(arrays, "store"), parts["store"], shapes, params, made.space)
        made._start(header["method"], store)
        made.owners = Owners.restored(part_of(arrays, "owners"))
        made.method.restore(part_of(arrays, "method"), parts["method"])
        if made.termless is not None:
            made.termless.restore(part_of(arrays, "termless"), parts["termless"])
            is_live = store.arrays.flags & FLAG_LIVE > 0
            made._n_termless = int(np.count_nonzero(is_live & (store.arrays.n_terms == 0)))
        made._rows_at_build, made._n_chained = header["rows_at_build"], header.get("chained", 0)
        leaving = np.flatnonzero(store.arrays.flags & FLAG_LEAVING).astype(np.int32)
        if len(leaving):
            made._take_out(leaving)
        made.publish()
        return made


def part_of(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays of one part, by their names within the part."""
    return {key.split(".", 1)[1]: array for key, array in arrays.items() if key.startswith(f"{name}.")}
