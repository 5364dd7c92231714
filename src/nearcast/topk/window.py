"""The messages of the window, and which of them expire before the next one arrives.

Messages are numbered by arrival. Their columns lie in rings: a message is at its number modulo the length, a power of
two. Of a window of n messages the newest n stay. Of a window of a period, a message stays while the time of the newest
message is less than the period later; messages of one time expire together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.model import NO_TIME
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.window_size import WindowSize

RENUMBERING = 1 << 30
"""What renumbering subtracts from arrival numbers, so that they fit into int32. Positions in rings do not change."""

LAST_ARRIVAL = (1 << 31) - (1 << 24)
"""Renumber before arrivals pass this number."""

_SMALLEST_RING = 64


class Ring(NamedTuple):
    """The columns of the messages. All lengths are powers of two."""

    ids: np.ndarray  # int64[c]
    places: np.ndarray  # float64[c,2]
    times: np.ndarray  # int64[c]   microseconds, or NO_TIME
    starts: np.ndarray  # int64[c]   position of the message's first term, to be taken modulo the length of `terms`
    counts: np.ndarray  # int32[c]   how many terms
    terms: np.ndarray  # int32[t]
    values: np.ndarray  # float64[t]


class Window:
    """Messages first .. stop-1 are live. Messages stop .. loaded-1 are in the rings but have not arrived yet."""

    last_arrival = LAST_ARRIVAL

    def __init__(self, size: WindowSize) -> None:
        self.size = size
        self.first = self.stop = self.loaded = 0
        self.now = NO_TIME  # the time of the newest message, or of `expire_at`
        self.ring = _empty_ring(_SMALLEST_RING, _SMALLEST_RING)

    def __len__(self) -> int:
        return self.stop - self.first

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in self.ring))

    def load(self, messages: IncomingMessages) -> None:
        """Copy messages into the rings; `arrive` then takes one after another."""
        first_term, next_term = self._terms_in_use()
        self._make_room(self.loaded - self.first + messages.size, next_term - first_term + len(messages.terms))
        _, next_term = self._terms_in_use()
        _load(self.ring, self.loaded, next_term, messages)
        self.loaded += messages.size

    def _terms_in_use(self) -> tuple[int, int]:
        """The positions of the first term in use, and after the last one."""
        if self.loaded == self.first:
            return 0, 0
        ring, mask = self.ring, len(self.ring.ids) - 1
        last = (self.loaded - 1) & mask
        return int(ring.starts[self.first & mask]), int(ring.starts[last] + ring.counts[last])

    def _make_room(self, n_messages: int, n_terms: int) -> None:
        columns, terms = len(self.ring.ids), len(self.ring.terms)
        if n_messages <= columns and n_terms <= terms:
            return
        old = self.ring
        self.ring = _empty_ring(_power_of_two(n_messages, columns), _power_of_two(n_terms, terms))
        _move(old, self.ring, self.first, self.loaded)

    def expired_before(self, time: int) -> int:
        """The arrival number up to which messages expire when a message of this time comes."""
        if not self.size.is_period:
            return max(self.first, self.stop + 1 - self.size.n_messages)
        return self.first_after(time)

    def first_after(self, time: int) -> int:
        """The first live message that is still in a window of a period at this time."""
        return int(_first_after(self.ring, self.first, self.stop, time - self.size.period_us))

    def ids_of(self, arrivals: np.ndarray) -> np.ndarray:
        return np.asarray(self.ring.ids[arrivals & (len(self.ring.ids) - 1)])

    def live_ids(self) -> np.ndarray:
        """int64[n]: the ids of the live messages, and of those that are about to arrive."""
        return self.ids_of(np.arange(self.first, self.loaded))

    def renumber(self) -> None:
        """Subtract RENUMBERING from all numbers. The window has fewer messages than that."""
        self.first -= RENUMBERING
        self.stop -= RENUMBERING
        self.loaded -= RENUMBERING

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The live messages, and the header."""
        first_term, next_term = self._terms_in_use()
        ring = _empty_ring(_power_of_two(len(self), 1), _power_of_two(next_term - first_term, 1))
        _move(self.ring, ring, self.first, self.stop)
        return dict(ring._asdict()), {"first": self.first, "stop": self.stop, "now": self.now, "size": list(self.size)}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Window:
        made = cls(WindowSize(*header["size"]))
        made.ring = Ring(*(arrays[name] for name in Ring._fields))
        made.first, made.stop, made.loaded, made.now = header["first"], header["stop"], header["stop"], header["now"]
        return made


def _power_of_two(needed: int, least: int) -> int:
    return max(least, 1 << max(0, needed - 1).bit_length())


def _empty_ring(n_messages: int, n_terms: int) -> Ring:
    whole = (np.int64, np.int64, np.int32)
    times, starts, counts = (np.zeros(n_messages, dtype) for dtype in whole)
    places = np.zeros((n_messages, 2))
    ids = np.zeros(n_messages, np.int64)
    return Ring(ids, places, times, starts, counts, np.zeros(n_terms, np.int32), np.zeros(n_terms))


@kernel
def _load(ring, first, first_term, messages):
    column_mask, term_mask = len(ring.ids) - 1, len(ring.terms) - 1
    for i in range(len(messages.ids)):
        at = (first + i) & column_mask
        ring.ids[at] = messages.ids[i]
        ring.places[at, 0] = messages.places[i, 0]
        ring.places[at, 1] = messages.places[i, 1]
        ring.times[at] = messages.times[i]
        ring.starts[at] = first_term + messages.term_starts[i]
        ring.counts[at] = messages.term_starts[i + 1] - messages.term_starts[i]
    for k in range(len(messages.terms)):
        ring.terms[(first_term + k) & term_mask] = messages.terms[k]
        ring.values[(first_term + k) & term_mask] = messages.values[k]


@kernel
def _move(old, ring, first, stop):
    """Copy messages first..stop-1 from one ring to another; their terms then start at 0."""
    end = 0
    old_mask, mask = len(old.terms) - 1, len(ring.terms) - 1
    for arrival in range(first, stop):
        source, at = arrival & (len(old.ids) - 1), arrival & (len(ring.ids) - 1)
        ring.ids[at] = old.ids[source]
        ring.places[at, 0] = old.places[source, 0]
        ring.places[at, 1] = old.places[source, 1]
        ring.times[at] = old.times[source]
        ring.starts[at] = end
        ring.counts[at] = old.counts[source]
        for k in range(old.starts[source], old.starts[source] + old.counts[source]):
            ring.terms[end & mask] = old.terms[k & old_mask]
            ring.values[end & mask] = old.values[k & old_mask]
            end += 1


@kernel
def _first_after(ring, first, stop, time):
    arrival = first
    while arrival < stop and ring.times[arrival & (len(ring.times) - 1)] <= time:
        arrival += 1
    return arrival
