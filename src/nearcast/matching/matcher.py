"""The matcher: a method and all that is common to methods, on rows and terms.

What it adds to a method: rows without terms (held apart, by place), replacing and removing by subscription id, NOT
terms, exact shapes and expiry, each pair once and in order, threads, giving memory back, and the state to save.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.ragged import distinct
from nearcast.geo.region import Region
from nearcast.geo.shapes import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.intake import by_owner, checked_messages, checked_rows
from nearcast.matching.method import make_method
from nearcast.matching.owners import Owners
from nearcast.matching.predicate import FLAG_CHAINED
from nearcast.matching.spatial_lists import SpatialLists
from nearcast.matching.store import RowStore
from nearcast.matching.verify import joined, owners_sorted, verified
from nearcast.model import NO_TIME, MessageBatch, RowBatch, Work

_SMALLEST_COMPACTION = 1024


class Found(NamedTuple):
    """The subscriptions that each message of a batch concerns."""

    ids: np.ndarray  # int64[...]  subscription ids, ascending within a message, no repeats
    starts: np.ndarray  # int64[n_messages + 1]


class Matcher:
    """Subscriptions as rows in; messages as terms in; ids out."""

    def __init__(self, method: str, space: Space, options: dict[str, Any] | None = None) -> None:
        self.space = space
        self.options = dict(options or {})
        self.stats = Work()
        self._start(method)

    def _start(self, method: str) -> None:
        self.store = RowStore(self.space)
        self.owners = Owners()
        self.method = make_method(method, self.store, self.space, self.options)
        self.termless = SpatialLists(self.store, self.space)
        self._rows_at_build = 0
        self._n_chained = 0

    def __len__(self) -> int:
        """How many subscriptions are held. One whose expression can never hold has no row and is not counted."""
        return len(self.owners)

    @property
    def nbytes(self) -> int:
        parts = (self.store, self.store.shape_table, self.owners, self.method, self.termless)
        return sum(part.nbytes for part in parts)

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
        own, termless = self._divided(rows)
        if len(termless):
            self.termless.insert(termless)
        if self._rows_at_build == 0 or self.store.live > self.method.rebuild_growth * self._rows_at_build:
            self._build()
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
        own, termless = self._divided(rows)
        if len(own):
            self.method.remove(own)
        if len(termless):
            self.termless.remove(termless)
        self._n_chained -= int(np.count_nonzero(self.store.arrays.flags[rows] & FLAG_CHAINED))
        self.store.remove(rows)
        self.owners.remove(ids)
        if self.store.high > _SMALLEST_COMPACTION and 4 * self.store.live < self.store.high:
            self._compact()

    def _divided(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows that the method holds, and those that it leaves to the common structure."""
        if self.method.takes_termless_rows:
            return rows, rows[:0]
        has_terms = self.store.arrays.n_terms[rows] > 0
        return rows[has_terms], rows[~has_terms]

    def _build(self) -> None:
        self.method.build(self._divided(self.store.live_rows())[0])
        self._rows_at_build = self.store.live

    def _compact(self) -> None:
        """Number the live rows anew and build again: gives back what removals left, at O(1) a removal."""
        batch, regions = self.store.batch(self.store.live_rows())
        batch = by_owner(batch)  # rows of one owner must be neighbours again for the chains
        expected = self.method.expected
        self._start(self.method.name)
        if expected is not None:
            self.method.expect(expected)
        if batch.size:
            self.insert(batch, regions)

    # -- matching

    def match(self, messages: MessageBatch, threads: int = 1) -> Found:
        """The subscriptions of each message. Reads only: call it from as many threads as you like between changes."""
        messages = checked_messages(messages, self.store.n_terms)
        parts = _cut(messages, threads)
        if len(parts) == 1:
            answers = [self._match_part(parts[0])]
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                answers = list(pool.map(self._match_part, parts))
        for _, work in answers:
            self.stats = self.stats.plus(work)
        return _together([found for found, _ in answers])

    def match_one(self, terms: np.ndarray, x: float, y: float) -> np.ndarray:
        """The subscriptions of one message at a point, the shortest way. Terms: int32, sorted, unique, not negative."""
        if len(terms) and terms[-1] >= self.store.n_terms:
            terms = terms[: np.searchsorted(terms, self.store.n_terms)]
        if self.termless.size or self.store.live_late or self._n_chained:
            return self._match_one_in_full(terms, x, y)
        ids, nodes, candidates = self.method.match_point(terms, x, y)
        ids.sort()
        before = self.stats
        self.stats = Work(before.nodes + nodes, before.candidates + candidates, before.matches + len(ids))
        return ids

    def _match_one_in_full(self, terms: np.ndarray, x: float, y: float) -> np.ndarray:
        starts, place = np.array((0, len(terms)), np.int64), np.array(((x, y, x, y),), np.float64)
        message = MessageBatch(np.zeros(1, np.int64), terms, starts, place, np.full(1, NO_TIME))
        found, work = self._match_part(message)
        self.stats = self.stats.plus(work)
        return found.ids

    def _match_part(self, messages: MessageBatch) -> tuple[Found, Work]:
        hits, work = self.method.match(messages)
        if self.termless.size:
            more, more_work = self.termless.match(messages)
            hits, work = joined(hits, more), work.plus(more_work)
        hits = verified(self.store, messages, hits)
        found = Found(*owners_sorted(self.store, hits, self._n_chained > 0))
        return found, work._replace(matches=len(found.ids))

    # -- files

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All arrays, by part, and the header."""
        parts = {
            "store": self.store.state(),
            "owners": (self.owners.state(), {}),
            "shapes": (self.store.shape_table.arrays(), self.store.shape_table.header()),
            "method": self.method.state(),
            "termless": self.termless.state(),
        }
        arrays = {f"{part}.{name}": array for part, (held, _) in parts.items() for name, array in held.items()}
        header = {
            "method": self.method.name,
            "options": self.options,
            "space": self.space.header(),
            "rows_at_build": self._rows_at_build,
            "chained": self._n_chained,
            "parts": {part: part_header for part, (_, part_header) in parts.items()},
        }
        return arrays, header

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Matcher:
        made = cls(header["method"], Space.from_header(header["space"]), header["options"])

        def part(name: str) -> dict[str, np.ndarray]:
            return {key.split(".", 1)[1]: array for key, array in arrays.items() if key.startswith(f"{name}.")}

        shapes = ShapeTable.from_arrays(part("shapes"), header["parts"]["shapes"])
        made.store = RowStore.restored(part("store"), header["parts"]["store"], shapes, made.space)
        made.owners = Owners.restored(part("owners"))
        made.method = make_method(header["method"], made.store, made.space, made.options)
        made.method.restore(part("method"), header["parts"]["method"])
        made.termless = SpatialLists(made.store, made.space)
        made.termless.restore(part("termless"), header["parts"]["termless"])
        made._rows_at_build, made._n_chained = header["rows_at_build"], header["chained"]
        return made


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


def _together(parts: list[Found]) -> Found:
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return Found(np.concatenate([part.ids for part in parts]), starts)
