"""The live subscriptions of one kind: their rows, and the method that indexes them.

A set stores rows, replaces and removes them by subscription id, rebuilds the method after growth, compacts row numbers
after removals, splits batches over threads, and saves its state. It adds to a method what all methods share: rows
without terms, NOT terms, exact shapes, expiry, and each pair once and in order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from nearcast.arrays.ragged import distinct, starts_of
from nearcast.geo.shape_columns import NO_SHAPES, ShapeColumns
from nearcast.geo.shapes import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.intake import by_owner, checked_messages, checked_rows
from nearcast.matching.method import Method, make_method, point_message
from nearcast.matching.owners import Owners
from nearcast.matching.predicate import FLAG_CHAINED, FLAG_LIVE, mark_terms
from nearcast.matching.row_params import EXACT_TESTS, NO_WEIGHTS
from nearcast.matching.store import RowStore
from nearcast.matching.verify import joined, owners_sorted, verified
from nearcast.model import MATCH, Found, Kind, MessageBatch, RowBatch, Work

TERMLESS_METHOD = "spatial-first"
"""Serves rows of kind `match` that have no terms, whatever method serves the others."""

_SMALLEST_COMPACTION = 1024
_PARAMS_PART = "asked"  # the name of the parameters' arrays in index format 3

State = tuple[dict[str, np.ndarray], dict[str, Any]]


class SubscriptionSet:
    """Subscriptions as rows in; messages as terms in; ids (and scores, of scored kinds) out.

    `weights` (float64, by term) weigh terms for scored kinds. They are fixed; later terms weigh as the heaviest.
    """

    store: RowStore
    owners: Owners
    method: Method
    termless: Method | None
    # Counts of `match_one`, kept as plain numbers: adding a `Work` takes 1 us.
    _nodes = _candidates = _matches = 0

    def __init__(
        self,
        method: str,
        space: Space,
        options: dict[str, Any] | None = None,
        kind: Kind = MATCH,
        weights: np.ndarray = NO_WEIGHTS,
    ) -> None:
        self.kind = kind
        self.space = space
        self.options = dict(options or {})
        self._work = Work()
        self._start(method, RowStore(space, EXACT_TESTS[kind.name](weights)))

    def _start(self, method: str, store: RowStore) -> None:
        """Begin with an empty method over a store."""
        self.store = store
        self.owners = Owners()
        self.method = make_method(method, store, self.space, self.options)
        stores_apart = self.kind is MATCH and not self.method.takes_termless_rows
        self.termless = make_method(TERMLESS_METHOD, store, self.space, {}) if stores_apart else None
        self._rows_at_build = self._n_termless = self._n_chained = 0

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
        return self._work.plus(Work(self._nodes, self._candidates, self._matches))

    # -- changes

    def expect(self, messages: MessageBatch) -> None:
        """Give the method a sample of the messages to come, before the first subscriptions."""
        self.method.expect(checked_messages(messages, np.iinfo(np.int32).max))

    def insert(self, batch: RowBatch, shapes: ShapeColumns = NO_SHAPES) -> None:
        """Add subscriptions; a subscription whose id is known is replaced."""
        batch = checked_rows(batch, self.kind)
        self.remove(batch.owner_ids)
        if self.store.high == 0:
            batch = by_owner(batch)  # row numbers then follow ids, and sorted rows are sorted ids
        rows = self.store.add(batch, shapes)
        chained = self.owners.add(batch.owner_ids, rows, self.store.high)
        self.store.flag(chained, FLAG_CHAINED)
        self._n_chained += len(chained)
        own, termless = self._divided(rows)
        if self.termless is not None and len(termless):
            self.termless.insert(termless)
            self._n_termless += len(termless)
        if self._rows_at_build == 0 or self.store.live > self.method.rebuild_growth * self._rows_at_build:
            self.method.build(self._divided(self.store.live_rows())[0])
            self._rows_at_build = self.store.live
        elif len(own):
            self.method.insert(own)

    def remove(self, ids: np.ndarray) -> None:
        """Forget subscriptions by id; an unknown id is no error."""
        if len(self.owners) == 0:
            return
        ids = distinct(np.asarray(ids, np.int64))
        rows = self.owners.rows(ids)
        if len(rows) == 0:
            return
        self._unindex(rows)
        self.store.remove(rows)
        self.owners.remove(ids)
        if self.store.high > _SMALLEST_COMPACTION and 4 * self.store.live < self.store.high:
            self._compact()

    def _unindex(self, rows: np.ndarray) -> None:
        own, termless = self._divided(rows)
        if len(own):
            self.method.remove(own)
        if self.termless is not None and len(termless):
            self.termless.remove(termless)
            self._n_termless -= len(termless)
        self._n_chained -= int(np.count_nonzero(self.store.arrays.flags[rows] & FLAG_CHAINED))

    def _divided(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows that the method indexes, rows that are stored apart)."""
        if self.termless is None:
            return rows, rows[:0]
        has_terms = self.store.arrays.n_terms[rows] > 0
        return rows[has_terms], rows[~has_terms]

    def _compact(self) -> None:
        """Renumber the live rows and rebuild: returns the memory of removed rows, at amortised O(1) a removal."""
        batch, shapes = self.store.batch(self.store.live_rows())
        batch = by_owner(batch)  # rows of one owner must be neighbours again for the chains
        expected = self.method.expected
        self._start(self.method.name, RowStore(self.space, EXACT_TESTS[self.kind.name](self.store.params.weights)))
        if expected is not None:
            self.method.expect(expected)
        if batch.size:
            self.insert(batch, shapes)

    # -- matching

    def match(self, messages: MessageBatch, threads: int = 1) -> Found:
        """The subscriptions of each message. Several threads may call this at once, between changes."""
        messages = checked_messages(messages, self.store.n_terms)
        parts = _cut(messages, threads)
        if len(parts) == 1:
            answers = [self._match_part(parts[0])]
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                answers = list(pool.map(self._match_part, parts))
        for _, work in answers:
            self._work = self._work.plus(work)
        return _concatenated([found for found, _ in answers])

    def match_one(self, terms: np.ndarray, x: float, y: float) -> np.ndarray:
        """The subscriptions of one message at a point, by the shortest path. Terms: int32, sorted, unique, >= 0."""
        store, method = self.store, self.method
        if len(terms) and terms.item(-1) >= store.n_terms:
            terms = terms[: np.searchsorted(terms, store.n_terms)]
        if self._n_termless or store.live_unverified or self._n_chained or method.reports_costs:
            found, work = self._match_part(point_message(terms, x, y))
            self._work = self._work.plus(work)
            return found.ids
        ids, nodes, candidates = method.match_point(terms, x, y)
        if len(ids) > 1:
            ids.sort()
        self._nodes += nodes
        self._candidates += candidates
        self._matches += len(ids)
        return ids

    def _match_part(self, messages: MessageBatch) -> tuple[Found, Work]:
        hits, work = self.method.match(messages)
        if self.termless is not None and self._n_termless:
            more, more_work = self.termless.match(messages)
            hits, work = joined(hits, more), work.plus(more_work)
        hits = verified(self.store, messages, hits)
        found = owners_sorted(self.store, hits, self._n_chained > 0)
        return found, work._replace(matches=len(found.ids))

    def score(self, subscription: int, message: MessageBatch) -> tuple[float, float]:
        """The best score of one subscription on one message, and the least score that it delivers.

        A subscription whose expression can never hold has no row; its score is 0 of at least 1.
        """
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
            parts[_PARAMS_PART] = (self.store.params.state(), {})
        if not self.kind.is_plain:
            parts["shapes"] = (shapes.arrays(), shapes.header())
        if self.termless is not None:
            parts["termless"] = self.termless.state()
        return parts

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any], kind: Kind = MATCH) -> SubscriptionSet:
        """The set of a saved state."""
        made = cls(header["method"], Space.from_header(header["space"]), header["options"], kind)
        params, parts = made.store.params, header["parts"]
        shapes = ShapeTable(made.space)
        if "shapes" in parts:
            shapes = ShapeTable.from_arrays(part_of(arrays, "shapes"), parts["shapes"])
        if _PARAMS_PART in parts:
            params.restore(part_of(arrays, _PARAMS_PART))
        store = RowStore.restored(part_of(arrays, "store"), parts["store"], shapes, params, made.space)
        made._start(header["method"], store)
        made.owners = Owners.restored(part_of(arrays, "owners"))
        made.method.restore(part_of(arrays, "method"), parts["method"])
        if made.termless is not None:
            made.termless.restore(part_of(arrays, "termless"), parts["termless"])
            is_live = store.arrays.flags & FLAG_LIVE > 0
            made._n_termless = int(np.count_nonzero(is_live & (store.arrays.n_terms == 0)))
        made._rows_at_build, made._n_chained = header["rows_at_build"], header.get("chained", 0)
        return made


def part_of(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays of one part, by their names within the part."""
    return {key.split(".", 1)[1]: array for key, array in arrays.items() if key.startswith(f"{name}.")}


def _cut(messages: MessageBatch, threads: int) -> list[MessageBatch]:
    """At most `threads` parts of about equally many terms: long messages cost more than short ones."""
    parts = max(1, min(threads, messages.size))
    total = messages.term_starts[-1] + messages.size
    weights = messages.term_starts + np.arange(messages.size + 1)
    edges = np.searchsorted(weights, np.linspace(0, total, parts + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], edges, [messages.size]]))
    if len(bounds) == 1:
        return [messages]
    return [messages.part(int(a), int(b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]


def _concatenated(parts: list[Found]) -> Found:
    if len(parts) == 1:
        return parts[0]
    starts = starts_of(np.concatenate([np.diff(part.starts) for part in parts]))
    scores = [part.scores for part in parts if part.scores is not None]
    return Found(np.concatenate([part.ids for part in parts]), starts, np.concatenate(scores) if scores else None)
