"""The messages of the window by term: a stretch of postings for each term, ordered in blocks of near messages.

A posting has the point of a message, the value of the term, and the message's gain: its largest tf / norm. The other
terms of a row, of weights w, can then add no more than the gain times the sum of w^2. The first `ordered` postings of a
long stretch are in k-d order, and every BLOCK of them has a header with the box of its points, the largest value and
the largest gain. New postings go behind them. A stretch is ordered anew when its unordered part is long or its room is
full; postings of expired messages are dropped then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.arrays.jit import kernel
from nearcast.structures.arena import has_many_holes
from nearcast.topk.embedding import Embedding, embed
from nearcast.topk.refill.kd_order import BLOCK, order_stretch, set_headers
from nearcast.topk.window import Window

LONG = 4 * BLOCK
"""A stretch with fewer postings is not ordered, and has no headers."""

LONGEST_TAIL = 512
LARGEST_GAIN = 1e30
"""Keeps products with a sum of weights finite in float32."""


class Postings(NamedTuple):
    """Columns of all postings."""

    points: np.ndarray  # float32[n,3]
    values: np.ndarray  # float32[n]
    gains: np.ndarray  # float32[n]
    arrivals: np.ndarray  # int32[n]
    lows: np.ndarray  # float32[n_blocks,3]  of block p // BLOCK of ordered postings
    highs: np.ndarray  # float32[n_blocks,3]
    tops: np.ndarray  # float32[n_blocks,2]  largest value and gain


class Stretches(NamedTuple):
    """Where the postings of a term are."""

    starts: np.ndarray  # int64[n_terms]
    rooms: np.ndarray  # int32[n_terms]
    counts: np.ndarray  # int32[n_terms]
    ordered: np.ndarray  # int32[n_terms]  how many are under headers


class MessageIndex:
    """Postings of the window's messages."""

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self.stretches = Stretches(np.empty(0, np.int64), *(np.empty(0, np.int32) for _ in range(3)))
        self.postings = _postings(0)
        self.head = np.zeros(2, np.int64)  # the end of the postings; postings in rooms that are in use

    @property
    def nbytes(self) -> int:
        return int(sum(array.nbytes for array in (*self.stretches, *self.postings)))

    def fit(self, weights: np.ndarray) -> None:
        """Make room for the terms that have weights."""
        if len(weights) > len(self.stretches.counts):
            self.stretches = Stretches(*(grown(column, len(weights), fill=0) for column in self.stretches))

    def append(self, window: Window, arrival: int, weights: np.ndarray, done: int = 0) -> None:
        """Add the postings of a message, from its term `done` on. Messages before `window.first` have expired."""
        self.fit(weights)
        while True:
            bounds = np.array([arrival, window.first, done], np.int64)
            done = append_from(window.ring, bounds, weights, self.embedding, self.stretches, self.postings, self.head)
            if done < 0:
                return
            if has_many_holes(int(self.head[0]), int(self.head[1])):
                self.rebuild(window, arrival, weights)
                done = 0
            else:
                self._grow()

    def _grow(self) -> None:
        old = self.postings
        self.postings = _postings(len(old.values) * 5 // 4 + 1024)
        for name, column in old._asdict().items():
            getattr(self.postings, name)[: len(column)] = column

    def rebuild(self, window: Window, stop: int, weights: np.ndarray) -> None:
        """Index the live messages before `stop` anew, without holes."""
        self.fit(weights)
        count_postings(window.ring, window.first, stop, self.stretches)
        self.head[:] = allot(self.stretches)
        self.postings = _postings(int(self.head[0]) * 5 // 4 + 1024)
        bounds = np.array([stop, window.first, 0], np.int64)
        append_live(window.ring, bounds, weights, self.embedding, self.stretches, self.postings, self.head)

    def renumber(self, shift: int) -> None:
        """Subtract from all arrival numbers; those of dropped postings may become anything."""
        self.postings.arrivals[:] -= shift


def _postings(n: int) -> Postings:
    n_blocks = n // BLOCK + 1
    columns = (np.zeros((n, 3), np.float32), np.zeros(n, np.float32), np.zeros(n, np.float32), np.zeros(n, np.int32))
    headers = (np.zeros((n_blocks, 3), np.float32), np.zeros((n_blocks, 3), np.float32))
    return Postings(*columns, *headers, np.zeros((n_blocks, 2), np.float32))


@kernel
def _room_for(count):
    """The room of a stretch that gets `count` postings: half as much again; whole blocks if it will be ordered."""
    room = count + count // 2 + 2
    return room if room < LONG else (room + BLOCK - 1) // BLOCK * BLOCK


@kernel
def _aligned(position, room):
    """Stretches that can be ordered start at a block."""
    return position if room < LONG else (position + BLOCK - 1) // BLOCK * BLOCK


@kernel
def count_postings(ring, first, stop, stretches):
    """Set `counts` to the number of live postings of each term."""
    stretches.counts[:] = 0
    mask = len(ring.terms) - 1
    for arrival in range(first, stop):
        at = arrival & (len(ring.ids) - 1)
        for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
            stretches.counts[ring.terms[k & mask]] += 1


@kernel
def allot(stretches):
    """Give each term a room for the postings counted, and empty it; return the end and the postings in rooms."""
    end, used = 0, 0
    for term in range(len(stretches.counts)):
        count = stretches.counts[term]
        room = _room_for(count) if count > 0 else 0
        start = _aligned(end, room)
        stretches.starts[term] = start
        stretches.rooms[term] = room
        stretches.counts[term] = 0
        stretches.ordered[term] = 0
        end = start + room
        used += room
    return end, used


@kernel
def append_from(ring, bounds, weights, embedding, stretches, postings, head):
    """Append the postings of a message from its term `bounds[2]` on; return -1, or the term for which room lacks.

    `bounds` are the message's arrival number and the first live one.
    """
    arrival, first = bounds[0], bounds[1]
    at, mask = arrival & (len(ring.ids) - 1), len(ring.terms) - 1
    gain = gain_of(ring, at, weights)
    px, py, pz = embed(embedding, ring.places[at, 0], ring.places[at, 1])
    for k in range(bounds[2], ring.counts[at]):
        source = (ring.starts[at] + k) & mask
        term = ring.terms[source]
        if stretches.counts[term] == stretches.rooms[term] and not _widen(stretches, postings, head, term, first):
            return k
        p = stretches.starts[term] + stretches.counts[term]
        postings.points[p, 0] = px
        postings.points[p, 1] = py
        postings.points[p, 2] = pz
        postings.values[p] = ring.values[source]
        postings.gains[p] = gain
        postings.arrivals[p] = arrival
        stretches.counts[term] += 1
        if stretches.counts[term] - stretches.ordered[term] > LONGEST_TAIL + stretches.ordered[term] // 8:
            _drop_expired(stretches, postings, term, first)
            _order(stretches, postings, term)
    return -1


@kernel
def append_live(ring, bounds, weights, embedding, stretches, postings, head):
    """Append the postings of the messages bounds[1] .. bounds[0]-1. There is room for them."""
    stop = bounds[0]
    for arrival in range(bounds[1], stop):
        bounds[0] = arrival
        append_from(ring, bounds, weights, embedding, stretches, postings, head)


@kernel
def gain_of(ring, at, weights):
    """The largest tf / norm of a message's terms that have a weight."""
    gain, mask = 0.0, len(ring.terms) - 1
    for k in range(ring.starts[at], ring.starts[at] + ring.counts[at]):
        weight = weights[ring.terms[k & mask]]
        if weight > 0.0:
            gain = max(gain, ring.values[k & mask] / weight / weight)
    return min(gain, LARGEST_GAIN)


@kernel
def _widen(stretches, postings, head, term, first):
    """Make room for one more posting of a term, by dropping expired ones or moving; False if the arrays are full."""
    _drop_expired(stretches, postings, term, first)
    count, room = stretches.counts[term], stretches.rooms[term]
    if room > 8 and count <= room - room // 4:
        return True
    wanted = _room_for(count + 1)
    start = _aligned(head[0], wanted)
    if start + wanted > len(postings.values):
        return False
    for k in range(count):
        _copy(postings, stretches.starts[term] + k, start + k)
    head[0] = start + wanted
    head[1] += wanted - room
    stretches.starts[term] = start
    stretches.rooms[term] = wanted
    _order(stretches, postings, term)
    return True


@kernel
def _copy(postings, source, target):
    for d in range(3):
        postings.points[target, d] = postings.points[source, d]
    postings.values[target] = postings.values[source]
    postings.gains[target] = postings.gains[source]
    postings.arrivals[target] = postings.arrivals[source]


@kernel
def _drop_expired(stretches, postings, term, first):
    """Close the gaps of expired postings. The order stays, but no header is valid any more."""
    start, n = stretches.starts[term], 0
    for p in range(start, start + stretches.counts[term]):
        if postings.arrivals[p] >= first:
            if p != start + n:
                _copy(postings, p, start + n)
            n += 1
    stretches.ordered[term] = n // BLOCK * BLOCK if stretches.ordered[term] > 0 and n >= LONG else 0
    stretches.counts[term] = n
    set_headers(postings, start, stretches.ordered[term])


@kernel
def _order(stretches, postings, term):
    """Order the postings of a long stretch."""
    count = stretches.counts[term]
    stretches.ordered[term] = 0
    if count >= LONG and stretches.rooms[term] >= LONG:
        stretches.ordered[term] = order_stretch(postings, stretches.starts[term], count)
