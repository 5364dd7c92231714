"""What readers of one version of `auto` search: the chosen method. Some messages are sampled to detect drift."""

from __future__ import annotations

import time

import numpy as np

from nearcast.indexes.auto import drift
from nearcast.indexes.auto.costs import nanoseconds
from nearcast.indexes.auto.drift import DriftDetector
from nearcast.matching.method import Method, PointSearcher, Searcher, point_message
from nearcast.model import Hits, MessageBatch, Work


class AutoView:
    """A version of the chosen method. Threads may share it."""

    def __init__(self, inner: Searcher, chosen: type[Method], drift: DriftDetector) -> None:
        self._inner, self._chosen, self._drift = inner, chosen, drift

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        weight = self._drift.weight(messages.size)
        if weight == 0.0:
            return self._inner.match(messages)
        start = time.perf_counter()
        hits, work = self._inner.match(messages)
        took = time.perf_counter() - start
        self._drift.add(messages, cost_of(self._chosen, messages, work[:3]), took, weight)
        return hits, work


class AutoPointView(AutoView):
    """A version of a chosen method that matches single messages by itself."""

    _inner: PointSearcher

    def match_point(self, terms: np.ndarray, x: float, y: float, sent: int) -> tuple[np.ndarray, int, int]:
        if not self._drift.samples_single():
            return self._inner.match_point(terms, x, y, sent)
        start = time.perf_counter()
        ids, nodes, candidates = self._inner.match_point(terms, x, y, sent)
        took, message = time.perf_counter() - start, point_message(terms, x, y)
        cost = cost_of(self._chosen, message, (nodes, candidates, len(ids)))
        self._drift.add(message, cost, took, drift.EVERY)
        return ids, nodes, candidates


def cost_of(method: type[Method], messages: MessageBatch, work: tuple[float, float, float]) -> float:
    """The cost of this work, in nanoseconds."""
    return nanoseconds(method, messages.size, len(messages.terms), work)
