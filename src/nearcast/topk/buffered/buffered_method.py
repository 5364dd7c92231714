"""A method of kind `top` made of two parts: an index of rows for arrivals, and buffers with refills for expiries."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.arrays.ragged import starts_of
from nearcast.geo.space import Space
from nearcast.model import Changes
from nearcast.topk.buffered.buffers import COMPLETE, Buffers
from nearcast.topk.buffered.exact import ScoreInputs, exact_scores
from nearcast.topk.buffered.steps import (
    Log,
    arrive,
    count_holders,
    empty_log,
    empty_touched,
    expire,
    finish,
    link_new,
    rows_to_refill,
    with_log_room,
    with_touched_room,
)
from nearcast.topk.buffered.wheel import Wheel
from nearcast.topk.dissemination.contract import Concerned, Dissemination
from nearcast.topk.embedding import embedding_of
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.method import Results, TopMethod
from nearcast.topk.refill.best import Refiller
from nearcast.topk.refill.policy import make_policy
from nearcast.topk.refill.postings import MessageIndex
from nearcast.topk.rows import TopRows
from nearcast.topk.score import THETA, Metric
from nearcast.topk.window import RENUMBERING, Window

ARRIVED, EXPIRED, INSERTS, TOUCHED = range(4)
"""Positions in the counts of work."""


class BufferedTop(TopMethod):
    """Subclasses say which index of rows and which policy they use."""

    def __init__(self, rows: TopRows, window: Window, metric: Metric, space: Space, refill: str) -> None:
        super().__init__(rows, window, metric, space)
        self.policy = make_policy(refill)
        self.embedding = embedding_of(space, metric)
        self.dissemination = self.make_dissemination()
        self.buffers = Buffers(self.policy.counts_dominators)
        self.wheel = Wheel()
        self.messages = MessageIndex(self.embedding)
        self.refiller = Refiller(rows, window, metric, self.messages, self.policy)
        self._touched, self._log = empty_touched(), empty_log()
        self._counts = np.zeros(4, np.int64)

    def make_dissemination(self) -> Dissemination:
        """The index of rows, empty."""
        raise NotImplementedError

    # -- rows

    def insert(self, numbers: np.ndarray) -> None:
        arrays = self.rows.arrays
        self.buffers.add_rows(numbers, len(arrays.ks), self.policy.sizes(arrays.ks[numbers]))
        self.wheel.add_rows(len(arrays.ks))
        self.wheel.fit(len(self.window.ring.ids), self.buffers.arrays)
        self._touched = with_touched_room(self._touched, len(arrays.ks), 0, 0)
        arrays.numbers[numbers, THETA] = COMPLETE
        if len(self.window):
            self.messages.fit(self.weights)
            self.refiller.refill(numbers, self.buffers, self.weights)
            self.wheel.link(numbers, self.buffers.arrays)
            if 2 * len(numbers) > len(self.rows):
                self.buffers.pack()
        self.dissemination.add(numbers, self.weights)

    def remove(self, numbers: np.ndarray) -> None:
        self.dissemination.remove(numbers)
        self.wheel.unlink(numbers)
        self.buffers.remove_rows(numbers)

    def terms_moved(self, kept: np.ndarray) -> None:
        self.dissemination.terms_moved(kept)

    # -- steps

    def publish(self, messages: IncomingMessages) -> Changes:
        window, used, ends = self.window, 0, np.zeros(messages.size, np.int64)
        window.load(messages)
        self.wheel.fit(len(window.ring.ids), self.buffers.arrays)
        for step, time in enumerate(messages.times.tolist()):
            used = self._step(window.expired_before(time), window.stop, used)
            ends[step] = used
        return self._changes(ends, messages.times)

    def expire_until(self, first: int, time: int) -> Changes:
        used = self._step(first, None, 0)
        return self._changes(np.array([used]), np.array([time], np.int64))

    def _step(self, first: int, arrival: int | None, used: int) -> int:
        """Expire messages before `first`, let a message arrive, refill; return the new end of the log."""
        if self.window.size.is_period:
            self.policy.observe(arrival is not None, first - self.window.first)
        n_touched = self._expire(first)
        if arrival is not None:
            self.window.stop += 1
            self._counts[ARRIVED] += 1
            used = self._arrive(arrival, used)
            self.messages.append(self.window, arrival, self.weights)
        return self._finish(n_touched, used) if n_touched else used

    def _expire(self, first: int) -> int:
        window, wheel, buffers, rows = self.window, self.wheel.arrays, self.buffers.arrays, self.rows.arrays
        old, window.first = window.first, first
        if old == first:
            return 0
        self._counts[EXPIRED] += first - old
        n, n_entries = count_holders(wheel, buffers, rows, old, first)
        if n == 0:
            return 0
        self._touched = with_touched_room(self._touched, len(rows.ks), n, n_entries)
        self._counts[TOUCHED] += n
        return int(expire(wheel, buffers, rows, old, first, self._touched))

    def _arrive(self, arrival: int, used: int) -> int:
        concerned = self.dissemination.find(self.window, arrival, self.weights)
        n = len(concerned.rows)
        if n == 0:
            return used
        self._counts[INSERTS] += n
        self.buffers.make_room(concerned.rows, 1)
        self._log = with_log_room(self._log, used, 2 * n)
        buffers, found = self.buffers.arrays, concerned.rows.copy()
        log = Log(*(column[used:] for column in self._log))
        marked = Concerned(concerned.rows, concerned.scores)
        used += int(arrive(buffers, self.buffers.head, self._inputs(), marked, arrival, self._touched, log))
        link_new(self.wheel.arrays, buffers, found, arrival, self._touched)
        raised = concerned.rows[concerned.rows >= 0]
        if len(raised):
            self.dissemination.thetas_changed(raised)
        return used

    def _finish(self, n_touched: int, used: int) -> int:
        rows, numbers = self.rows.arrays, self._touched.rows_to_refill
        n = int(rows_to_refill(self.buffers.arrays, rows, self._touched, n_touched, numbers))
        if n:
            self.refiller.refill(numbers[:n], self.buffers, self.weights)
            self.dissemination.thetas_changed(numbers[:n])
        touched = self._touched.rows[:n_touched]
        n_changes = int(self._touched.starts[n_touched]) + int(self.buffers.arrays.counts[touched].sum())
        self._log = with_log_room(self._log, used, n_changes)
        return int(
            finish(self.wheel.arrays, self.buffers.arrays, self._inputs(), self._touched, n_touched, self._log, used)
        )

    def _changes(self, ends: np.ndarray, times: np.ndarray) -> Changes:
        """The log as changes, sorted by step and subscription. `ends` are the ends of the steps in the log."""
        used = int(ends[-1]) if len(ends) else 0
        ids = self.rows.arrays.ids[self._log.rows[:used]]
        ranks = self.rows.names.ranks(ids)
        if len(ends) == 1:
            order, times = np.argsort(ranks, kind="stable"), np.full(used, times[0])
        else:
            steps = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
            order, times = np.lexsort((ranks, steps)), times[steps]
        arrivals = self._log.arrivals[:used][order].astype(np.int64)
        columns = (self._log.signs[:used][order], self._log.scores[:used][order])
        return Changes(self.window.ids_of(arrivals), ids[order], *columns, times)

    def renumber(self) -> None:
        self.buffers.renumber(RENUMBERING)
        self.messages.renumber(RENUMBERING)
        self.dissemination.renumber()

    def results(self, row: int) -> Results:
        buffers = self.buffers.arrays
        start = int(buffers.starts[row])
        n = min(int(buffers.counts[row]), int(self.rows.arrays.ks[row]))
        scores = np.empty(n)
        exact_scores(self._inputs(), buffers, row, n, scores)
        return Results(buffers.arrivals[start : start + n].astype(np.int64), scores)

    def _inputs(self) -> ScoreInputs:
        return ScoreInputs(self.window.ring, self.rows.arrays, self.metric)

    # -- figures and files

    @property
    def nbytes(self) -> int:
        parts = (self.buffers, self.wheel, self.messages, self.dissemination)
        return sum(part.nbytes for part in parts) + self._touched.is_touched.nbytes

    @property
    def stats(self) -> dict[str, int]:
        counts = dict(zip(("arrived", "expired", "inserts", "touched"), self._counts.tolist(), strict=True))
        return {**counts, **self.dissemination.stats, **self.refiller.stats}

    @property
    def mean_buffer(self) -> float:
        """Mean entries of a buffer."""
        return float(self.buffers.arrays.counts.sum()) / max(1, len(self.rows))

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The entries of all buffers, and what the policy has learned. The two indexes are built again."""
        buffers, high = self.buffers.arrays, self.rows.high
        starts = starts_of(buffers.counts[:high].astype(np.int64))
        at = np.arange(starts[-1]) + np.repeat(buffers.starts[:high] - starts[:-1], buffers.counts[:high])
        return {"starts": starts, "rounded": buffers.rounded[at], "arrivals": buffers.arrivals[at]}, {
            "policy": self.policy.state()
        }

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        live, rows, starts = self.rows.live_rows(), self.rows.arrays, arrays["starts"]
        self.policy.restore(header.get("policy", {}))
        self.buffers.add_rows(live, len(rows.ks), self.policy.sizes(rows.ks[live]))
        self.wheel.add_rows(len(rows.ks))
        self._touched = with_touched_room(self._touched, len(rows.ks), 0, 0)
        self.buffers.restore(live, arrays["rounded"], arrays["arrivals"], starts)
        self.wheel.fit(len(self.window.ring.ids), self.buffers.arrays)
        self.messages.rebuild(self.window, self.window.stop, self.weights)
        self.dissemination.add(live, self.weights)
