"""What keepers of every kind share: subscriptions as rows of a store, under one method, by id.

A keeper takes subscriptions in batches of rows, replaces and removes them by id, builds its method anew when it has
grown, numbers rows anew when most are gone, matches on several threads, and says its state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from nearcast.arrays.ragged import distinct, starts_of
from nearcast.geo.space import Space
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import RowMethod
from nearcast.matching.owners import Owners
from nearcast.matching.store import RowStore
from nearcast.model import NO_TIME, Found, MessageBatch, Work

_SMALLEST_COMPACTION = 1024

State = tuple[dict[str, np.ndarray], dict[str, Any]]


class RowKeeper(ABC):
    """Subclasses say which method, what goes with it, and what becomes of its hits."""

    store: RowStore
    owners: Owners
    method: RowMethod

    def __init__(self, method: str, space: Space, options: dict[str, Any] | None = None) -> None:
        self.space = space
        self.options = dict(options or {})
        self._work = Work()
        self._start(method)

    def _start(self, method: str) -> None:
        self.store = RowStore(self.space)
        self.owners = Owners()
        self._rows_at_build = 0
        self._make(method)

    @abstractmethod
    def _make(self, method: str) -> None:
        """An empty method over the store, and what goes with it."""

    def __len__(self) -> int:
        """How many subscriptions are held. One whose expression can never hold has no row and is not counted."""
        return len(self.owners)

    @property
    def nbytes(self) -> int:
        return self.store.nbytes + self.store.shape_table.nbytes + self.owners.nbytes + self.method.nbytes

    @property
    def stats(self) -> Work:
        """Work done so far."""
        return self._work

    # -- changes

    def _index(self, rows: np.ndarray) -> None:
        """Give new rows to the method, or build it anew where it has grown."""
        if self._rows_at_build == 0 or self.store.live > self.method.rebuild_growth * self._rows_at_build:
            self.method.build(self._own(self.store.live_rows()))
            self._rows_at_build = self.store.live
        elif len(own := self._own(rows)):
            self.method.insert(own)

    def _own(self, rows: np.ndarray) -> np.ndarray:
        """Those that the method holds."""
        return rows

    def remove(self, ids: np.ndarray) -> None:
        """Forget subscriptions by id; an unknown id is no error."""
        if len(self.owners) == 0:
            return
        ids = distinct(np.asarray(ids, np.int64))
        rows = self.owners.rows(ids)
        if len(rows) == 0:
            return
        self._leave(rows)
        self.store.remove(rows)
        self.owners.remove(ids)
        if self.store.high > _SMALLEST_COMPACTION and 4 * self.store.live < self.store.high:
            self._compact()

    def _leave(self, rows: np.ndarray) -> None:
        """Before rows leave the store."""
        if len(own := self._own(rows)):
            self.method.remove(own)

    @abstractmethod
    def _compact(self) -> None:
        """Number the live rows anew and build again: gives back what removals left, at O(1) a removal."""

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
            self._work = self._work.plus(work)
        return _together([found for found, _ in answers])

    def _match_alone(self, terms: np.ndarray, x: float, y: float) -> Found:
        """One message at a point, as a batch. Terms: int32, sorted, unique, below the store's."""
        starts, place = np.array((0, len(terms)), np.int64), np.array(((x, y, x, y),), np.float64)
        message = MessageBatch(np.zeros(1, np.int64), terms, starts, place, np.full(1, NO_TIME))
        found, work = self._match_part(message)
        self._work = self._work.plus(work)
        return found

    def _known(self, terms: np.ndarray) -> np.ndarray:
        """The sorted terms that some row may have."""
        if len(terms) and terms.item(-1) >= self.store.n_terms:
            return terms[: np.searchsorted(terms, self.store.n_terms)]
        return terms

    @abstractmethod
    def _match_part(self, messages: MessageBatch) -> tuple[Found, Work]: ...

    # -- files

    def state(self) -> State:
        """All arrays, by part, and the header."""
        parts = self._parts()
        arrays = {f"{part}.{name}": array for part, (held, _) in parts.items() for name, array in held.items()}
        header = {
            "method": self.method.name,
            "options": self.options,
            "space": self.space.header(),
            "rows_at_build": self._rows_at_build,
            "parts": {part: part_header for part, (_, part_header) in parts.items()},
        }
        return arrays, header

    def _parts(self) -> dict[str, State]:
        return {
            "store": self.store.state(),
            "owners": (self.owners.state(), {}),
            "method": self.method.state(),
        }


def part_of(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays of one part, by their names within it."""
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


def _together(parts: list[Found]) -> Found:
    if len(parts) == 1:
        return parts[0]
    starts = starts_of(np.concatenate([np.diff(part.starts) for part in parts]))
    scores = [part.scores for part in parts if part.scores is not None]
    return Found(np.concatenate([part.ids for part in parts]), starts, np.concatenate(scores) if scores else None)
