"""One version of the live subscriptions of a kind: what readers match with, while a writer prepares the next version.

A snapshot never changes. It adds to a method what all methods share: rows without terms, NOT terms, exact shapes,
expiry, and each pair once and in order.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from nearcast.arrays.ragged import distinct, starts_of
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import PointSearcher, Searcher, point_message
from nearcast.matching.store import StoreView
from nearcast.matching.verify import found
from nearcast.model import NO_TIME, Found, MessageBatch, Work

_MOST_WAITING = 1024


class WorkCounter:
    """The sum of the work that threads report. Reporting never waits: reports queue, and are summed up later."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, ...]] = deque()
        self._sum = Work()
        self._summing = threading.Lock()

    def add(self, work: tuple[int, ...]) -> None:
        """Add work: a Work, or its first values (making a Work takes longer than the rest)."""
        self._waiting.append(work)
        if len(self._waiting) > _MOST_WAITING and self._summing.acquire(blocking=False):
            try:
                self._sum_up()
            finally:
                self._summing.release()

    @property
    def total(self) -> Work:
        with self._summing:
            self._sum_up()
            return self._sum

    def _sum_up(self) -> None:
        for _ in range(len(self._waiting)):
            self._sum = self._sum.plus(Work(*self._waiting.popleft()))


class Snapshot(NamedTuple):
    """The rows of one version, and how to search them."""

    store: StoreView
    searcher: Searcher
    termless: PointSearcher | None  # of the rows without terms, where they are apart; None while there are none
    points: PointSearcher | None  # for single messages, if the method has its own way
    has_chains: bool  # some subscriptions have several rows
    counter: WorkCounter

    def match(self, messages: MessageBatch, threads: int = 1) -> Found:
        """The subscriptions of each message."""
        messages = checked_messages(messages, self.store.n_terms)
        parts = _cut(messages, threads)
        if len(parts) == 1:
            answers = [self._match_part(parts[0])]
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                answers = list(pool.map(self._match_part, parts))
        for _, work in answers:
            self.counter.add(work)
        return _concatenated([answer for answer, _ in answers])

    def match_one(self, terms: np.ndarray, x: float, y: float, time: int = NO_TIME) -> np.ndarray:
        """The subscriptions of one message at a point, by the shortest path. Terms: int32, sorted, unique, >= 0."""
        n_terms = self.store.n_terms
        if len(terms) and terms.item(-1) >= n_terms:
            terms = terms[: np.searchsorted(terms, n_terms)]
        if self.points is None:
            found, work = self._match_part(point_message(terms, x, y, time))
            self.counter.add(work)
            return found.ids
        ids, nodes, candidates = self.points.match_point(terms, x, y, time)
        if self.termless is not None:
            more, more_nodes, more_candidates = self.termless.match_point(terms, x, y, time)
            nodes, candidates = nodes + more_nodes, candidates + more_candidates
            if len(more):
                ids = distinct(np.concatenate((ids, more)))
        self.counter.add((nodes, candidates, len(ids)))
        return ids

    def _match_part(self, messages: MessageBatch) -> tuple[Found, Work]:
        (hits, work), more = self.searcher.match(messages), None
        if self.termless is not None:
            more, more_work = self.termless.match(messages)
            work = work.plus(more_work)
        answer = found(self.store, messages, hits, more, self.has_chains)
        return answer, work._replace(matches=len(answer.ids))


def _cut(messages: MessageBatch, threads: int) -> list[MessageBatch]:
    """At most `threads` parts of about equally many terms: long messages cost more than short ones."""
    parts = min(threads, messages.size)
    if parts < 2:
        return [messages]
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
