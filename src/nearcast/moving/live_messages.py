"""The live messages: their terms, places and expiry, by slot number.

The slot of an expired message is used again, but only after `recycle`: a method may keep numbers of expired messages in
its lists until it has swept them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.intmap import ABSENT, IntMap
from nearcast.arrays.ragged import starts_of
from nearcast.matching.store import gathered, scatter
from nearcast.model import NEVER, MessageBatch

_SMALLEST_COMPACTION = 1024


class MessageArrays(NamedTuple):
    """What kernels read. The terms of a message are sorted; all of it is undefined where no live message is."""

    boxes: np.ndarray  # float64[n,4]
    offsets: np.ndarray  # int64[n]  where the terms lie
    n_terms: np.ndarray  # int32[n]
    is_live: np.ndarray  # uint8[n]
    terms: np.ndarray  # int32[...]


class LiveMessages:
    """Messages by slot, and slots by message id."""

    def __init__(self) -> None:
        ints, longs = np.empty(0, np.int32), np.empty(0, np.int64)
        self._arrays = MessageArrays(np.empty((0, 4)), longs, ints, np.empty(0, np.uint8), ints)  # with spare room
        self.ids = longs
        self._expires = longs
        self._slots = IntMap()
        self.high = 0  # slots ever numbered
        self.n_terms = 0  # terms are 0 .. n_terms - 1
        self._free: list[int] = []
        self._dead: list[np.ndarray] = []
        self.n_dead = 0
        self._arena_used = self._arena_dead = 0
        self._next_expiry = NEVER  # no live message expires before

    def __len__(self) -> int:
        return self._slots.size

    @property
    def arrays(self) -> MessageArrays:
        *columns, terms = self._arrays
        return MessageArrays._make([*(column[: self.high] for column in columns), terms])

    @property
    def nbytes(self) -> int:
        columns = (*self._arrays, self.ids, self._expires)
        return sum(int(column.nbytes) for column in columns) + self._slots.nbytes

    def slots(self) -> np.ndarray:
        """int32[n]: the slots of all live messages, in ascending order."""
        return np.flatnonzero(self.arrays.is_live).astype(np.int32)

    def slots_of(self, ids: np.ndarray) -> np.ndarray:
        """int32[...]: the slots of those ids that are live."""
        found = self._slots.get(ids)
        return np.asarray(found[found != ABSENT])

    def are_live(self, ids: np.ndarray) -> np.ndarray:
        """bool[n]: whether messages of these ids are live."""
        return np.asarray(self._slots.get(np.ascontiguousarray(ids)) != ABSENT)

    def expired(self, now: int) -> np.ndarray:
        """int32[...]: the slots of live messages whose expiry is not after `now`."""
        if now < self._next_expiry:
            return np.empty(0, np.int32)
        slots = self.slots()
        expires = self._expires[slots]
        later = expires[expires > now]
        self._next_expiry = int(later.min()) if len(later) else NEVER
        return np.asarray(slots[expires <= now])

    def add(self, batch: MessageBatch, expires: np.ndarray) -> np.ndarray:
        """Store messages whose ids are not live; return their slots. Terms are sorted sets."""
        slots = self._number(batch.size)
        counts = np.diff(batch.term_starts)
        offsets = self._arena_used + batch.term_starts[:-1] - batch.term_starts[0]
        self._arena_used += len(batch.terms)
        terms = grown(self._arrays.terms, self._arena_used)
        self._arrays = self._arrays._replace(terms=terms)
        scatter(batch.terms, batch.term_starts, offsets, terms)
        own = self._arrays
        own.boxes[slots], own.offsets[slots], own.n_terms[slots] = batch.boxes, offsets, counts
        own.is_live[slots] = 1
        self.ids[slots], self._expires[slots] = batch.ids, expires
        self._slots.put(batch.ids, slots)
        if batch.size:
            self._next_expiry = min(self._next_expiry, int(expires.min()))
        if len(batch.terms):
            self.n_terms = max(self.n_terms, int(batch.terms.max()) + 1)
        return slots

    def kill(self, slots: np.ndarray) -> None:
        """Forget live messages. Their slots stay reserved until `recycle`."""
        if len(slots) == 0:
            return
        own = self._arrays
        own.is_live[slots] = 0
        self._slots.remove(self.ids[slots])
        self._arena_dead += int(own.n_terms[slots].sum(dtype=np.int64))
        self._dead.append(slots)
        self.n_dead += len(slots)
        if self._arena_dead > _SMALLEST_COMPACTION and 2 * self._arena_dead > self._arena_used:
            self._compact_terms()

    def recycle(self) -> None:
        """Let new messages use the slots of dead ones. No method refers to a dead slot any more."""
        for slots in self._dead:
            self._free += slots.tolist()
        self._dead, self.n_dead = [], 0

    def batch(self, slots: np.ndarray) -> tuple[MessageBatch, np.ndarray]:
        """(the messages of live slots, without times; their expiry)."""
        own = self._arrays
        counts = own.n_terms[slots]
        terms = gathered(own.terms, own.offsets[slots], counts)
        no_times = np.zeros(len(slots), np.int64)
        made = MessageBatch(self.ids[slots], terms, starts_of(counts), own.boxes[slots], no_times)
        return made, self._expires[slots]

    def _number(self, n: int) -> np.ndarray:
        reused = min(n, len(self._free))
        again = self._free[len(self._free) - reused :]
        del self._free[len(self._free) - reused :]
        first = self.high
        self.high += n - reused
        boxes, offsets, n_terms, is_live, terms = self._arrays
        columns = (grown(column, self.high) for column in (boxes, offsets, n_terms))
        self._arrays = MessageArrays._make([*columns, grown(is_live, self.high, fill=0), terms])
        self.ids, self._expires = grown(self.ids, self.high), grown(self._expires, self.high)
        return np.concatenate([np.array(again, np.int32), np.arange(first, self.high, dtype=np.int32)])

    def _compact_terms(self) -> None:
        slots, own = self.slots(), self._arrays
        counts = own.n_terms[slots]
        self._arrays = own._replace(terms=gathered(own.terms, own.offsets[slots], counts))
        own.offsets[slots] = starts_of(counts)[:-1]
        self._arena_used, self._arena_dead = len(self._arrays.terms), 0
