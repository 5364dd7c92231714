"""Subscriptions that come, go and are replaced by the thousand, and an oracle in NumPy that shares nothing with the
library: a table with a line for each id, and every line compared with every message.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.matching.checks.cases import empty
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import NEVER, NO_SHAPE, NO_TIME, MessageBatch, RowBatch
from nearcast.storage.index_folder import load_index, save_index

CHECKPOINTS = 20
HOT, MOST_TERMS, NO_TERM = 6, 8, -1
# The whole world, more than that, two that touch, a line, and points: drawn so often that equal rows abound.
POOL = np.array(
    [
        (0.0, 0.0, 1.0, 1.0),
        (-3.0, -3.0, 4.0, 4.0),
        (0.25, 0.25, 0.5, 0.5),
        (0.5, 0.5, 0.75, 0.75),
        (0.25, 0.0, 0.25, 1.0),
        (0.5, 0.5, 0.5, 0.5),
        (1.0, 1.0, 1.0, 1.0),
    ]
)


class World:
    """Every id that may ever be subscribed, each with the terms and the box that it has now or had last."""

    def __init__(self, seed: int, n_ids: int, vocabulary: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.ids = np.sort(self.rng.choice(40 * n_ids, n_ids, replace=False) - 20 * n_ids).astype(np.int64)
        self.vocabulary = vocabulary
        self.terms = np.full((n_ids, MOST_TERMS), NO_TERM, np.int32)  # NO_TERM first, the rest ascending
        self.boxes = np.zeros((n_ids, 4))
        self.live = np.zeros(n_ids, bool)

    def subscribe(self, size: int) -> RowBatch:
        """About `size` ids, known or not, in any order, with new terms and boxes."""
        lines = self.rng.permutation(np.unique(self.rng.integers(0, len(self.ids), size)))
        n = len(lines)
        terms, boxes = self._drawn_terms(n), self._drawn_boxes(n)
        self.terms[lines], self.boxes[lines], self.live[lines] = terms, boxes, True
        starts = np.concatenate([[0], np.cumsum((terms != NO_TERM).sum(axis=1))]).astype(np.int64)
        nothing = np.zeros(0, np.int32), np.zeros(n + 1, np.int64)
        flat, shapes, expires = terms[terms != NO_TERM], np.full(n, NO_SHAPE, np.int32), np.full(n, NEVER)
        return RowBatch(self.ids[lines], flat, starts, *nothing, boxes, shapes, expires)

    def unsubscribe(self, size: int) -> np.ndarray:
        """`size` ids, some of them unknown, some named twice."""
        lines = self.rng.integers(0, len(self.ids), size)
        self.live[lines] = False
        return np.asarray(self.ids[lines])

    def unsubscribe_all_but(self, n: int) -> np.ndarray:
        lines = self.rng.permutation(np.flatnonzero(self.live))[n:]
        self.live[lines] = False
        return np.asarray(self.ids[lines])

    def _drawn_terms(self, n: int) -> np.ndarray:
        """One to eight a line, small counts and small terms often; a third of the lines have hot terms only."""
        terms = (self.vocabulary * self.rng.random((n, MOST_TERMS)) ** 4).astype(np.int32)
        terms = np.where(self.rng.random((n, 1)) < 0.3, terms % HOT, terms)
        counts = 1 + (MOST_TERMS * self.rng.random((n, 1)) ** 3).astype(int)
        terms[np.arange(MOST_TERMS) >= counts] = NO_TERM
        terms.sort(axis=1)
        terms[:, 1:][terms[:, 1:] == terms[:, :-1]] = NO_TERM
        terms.sort(axis=1)
        return terms

    def _drawn_boxes(self, n: int) -> np.ndarray:
        low = self.rng.random((n, 2))
        sides = 0.3 * self.rng.random((n, 2)) ** 6
        sides[self.rng.random(n) < 0.1] = 0.0
        from_pool = POOL[self.rng.integers(0, len(POOL), n)]
        return np.where(self.rng.random((n, 1)) < 0.2, from_pool, np.hstack([low, low + sides]))

    def messages(self, n: int) -> MessageBatch:
        """In turn: a point anywhere, one on the corner of a live line's box, a range. Terms are those of live lines,
        and others, some of them in no subscription.
        """
        lines = np.flatnonzero(self.live)
        sets, boxes = [], np.empty((n, 4))
        for k in range(n):
            some = self.rng.choice(lines, 4)
            more = self.rng.integers(0, self.vocabulary + 10, self.rng.integers(0, 12))
            sets.append(np.unique(np.concatenate([[NO_TERM], self.terms[some].ravel(), more]))[1:])
            boxes[k] = self._drawn_place(self.boxes[some[0]], k % 3)
        terms, starts = np.concatenate(sets).astype(np.int32), np.cumsum([0, *map(len, sets)]).astype(np.int64)
        return MessageBatch(np.arange(n), terms, starts, boxes, np.full(n, NO_TIME))

    def _drawn_place(self, box: np.ndarray, kind: int) -> np.ndarray:
        corner = box[self.rng.integers(0, 2, 2) * 2 + (0, 1)]
        if kind < 2:
            return np.tile(corner if kind else self.rng.random(2), 2)
        if self.rng.random() < 0.3:
            return np.asarray(POOL[self.rng.integers(len(POOL))])
        return np.concatenate([corner, corner + self.rng.random(2) ** 3])

    def concerned(self, terms: np.ndarray, box: np.ndarray) -> np.ndarray:
        """The ids, ascending, that a message concerns."""
        has = np.zeros(self.vocabulary + 11, bool)
        has[terms] = has[NO_TERM] = True
        holds = self.live & has[self.terms].all(axis=1)
        holds &= (self.boxes[:, 0] <= box[2]) & (self.boxes[:, 2] >= box[0])
        holds &= (self.boxes[:, 1] <= box[3]) & (self.boxes[:, 3] >= box[1])
        return np.asarray(self.ids[holds])


def soak(method: str, updates: int, n_ids: int, folder: Path, vocabulary: int = 5000) -> None:
    """So many updates in batches of all sizes; at each checkpoint the matcher answers as the oracle does."""
    world, matcher, done = World(updates, n_ids, vocabulary), empty(method), 0
    largest = np.log10(max(10, n_ids // 50))
    for checkpoint in range(CHECKPOINTS):
        insert_share = (0.7, 0.35)[checkpoint // 3 % 2]  # growing, then shrinking
        while done < updates * (checkpoint + 1) // CHECKPOINTS:
            done += update(matcher, world, int(10 ** world.rng.uniform(0, largest)), insert_share)
        expect_right(matcher, world)
        if checkpoint % 6 == 2:
            matcher = saved_and_opened(matcher, folder)
            expect_right(matcher, world)
        if checkpoint == CHECKPOINTS // 2:
            matcher.remove(world.unsubscribe_all_but(n_ids // 100))
    expect_memory_is_used_again(matcher, world)


def update(matcher: SubscriptionSet, world: World, size: int, insert_share: float) -> int:
    """Some ids come or go; return how many."""
    if world.rng.random() < insert_share:
        batch = world.subscribe(size)
        matcher.insert(batch)
        return batch.size
    matcher.remove(world.unsubscribe(size))
    return size


def saved_and_opened(matcher: SubscriptionSet, folder: Path) -> SubscriptionSet:
    save_index(folder / "index", *matcher.state())
    return SubscriptionSet.restored(*load_index(folder / "index"))


def expect_right(matcher: SubscriptionSet, world: World, n_messages: int = 45) -> None:
    assert len(matcher) == matcher.store.live == np.count_nonzero(world.live)
    counted = np.bincount(world.terms[world.live][world.terms[world.live] != NO_TERM], minlength=world.vocabulary)
    assert (matcher.store.frequencies == counted[: matcher.store.n_terms]).all()
    messages = world.messages(n_messages)
    found = matcher.match(messages)
    for k in range(n_messages):
        terms, box = messages.terms[messages.term_starts[k] : messages.term_starts[k + 1]], messages.boxes[k]
        wanted = world.concerned(terms, box)
        assert np.array_equal(found.ids[found.starts[k] : found.starts[k + 1]], wanted), (terms, box)
        if k % 3 < 2:
            assert np.array_equal(matcher.match_one(terms, *box[:2]), wanted), (terms, box)
    assert len(found.ids) > n_messages, "too few matches to prove anything"


def expect_memory_is_used_again(matcher: SubscriptionSet, world: World) -> None:
    """Nearly all removed, most of the memory is given back; as many inserted again, it takes no more than before."""
    matcher.insert(world.subscribe(len(world.ids)))
    full, n = matcher.nbytes, len(matcher)
    for _ in range(3):
        matcher.remove(world.unsubscribe_all_but(n // 50))
        assert matcher.nbytes < full / 8, f"a fiftieth is left, yet {matcher.nbytes:,} of {full:,} bytes are held"
        expect_right(matcher, world)
        matcher.insert(world.subscribe(len(world.ids)))
        assert matcher.nbytes < 1.5 * full, f"{full:,} bytes grew to {matcher.nbytes:,}"
        expect_right(matcher, world)
