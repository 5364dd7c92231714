"""Drift detection for `auto`: compares the average cost of recent messages with the cost that it planned for."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

import numpy as np

from nearcast.arrays.ragged import starts_of
from nearcast.indexes.auto.trial import MOST_MESSAGES
from nearcast.model import MessageBatch

DRIFT = 2.0  # messages have drifted at this many times the planned work or terms
PATIENCE = 10.0  # a plan and a switch may take a tenth of the matching time since the last plan
EVERY = 1024  # one call in this many messages is sampled: 16 us, a fiftieth of the time of the fastest method
BLOCK = 4  # consecutive messages kept of a sampled batch


class Load(NamedTuple):
    """The average message."""

    terms: float
    work: float  # nanoseconds, by costs.py


class DriftDetector:
    """A sample of recent messages, and the load since the last comparison. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recent: deque[MessageBatch] = deque(maxlen=MOST_MESSAGES // BLOCK)
        self._planned: Load | None = None
        self._planning_s = 0.0
        self._passed = 0
        self._singles_left = EVERY
        self.due = False
        """True once messages have drifted and a new plan is due."""
        self._begin()

    def _begin(self) -> None:
        self._messages = self._terms = self._work = self._seconds = 0.0

    def start(self, planned: Load | None, planning_s: float) -> None:
        """Compare with this load from now on. None disables the comparison."""
        with self._lock:
            self._planned, self._planning_s, self.due = planned, planning_s, False
            self._begin()

    def weight(self, n_messages: int) -> float:
        """How many calls this call stands for in the sample; 0 if it is not sampled."""
        before = self._passed  # a count lost between threads only thins the sample
        self._passed = before + n_messages
        return 0.0 if before // EVERY == self._passed // EVERY else max(1.0, EVERY / n_messages)

    def samples_single(self) -> bool:
        """Whether this call for a single message is sampled. It then stands for EVERY calls."""
        self._singles_left -= 1  # a count lost between threads only thins the sample
        if self._singles_left > 0:
            return False
        self._singles_left = EVERY
        return True

    def add(self, messages: MessageBatch, work: float, seconds: float, weight: float) -> None:
        """Add a matched batch to the sample."""
        block = _block(messages, self._passed)
        with self._lock:
            self._recent.append(block)
            self._messages += weight * messages.size
            self._terms += weight * len(messages.terms)
            self._work += weight * work
            self._seconds += weight * seconds
            if self._seconds >= PATIENCE * self._planning_s and self._has_enough():
                self.due = self.due or self._drifted()
                self._begin()

    def _has_enough(self) -> bool:
        return sum(block.size for block in self._recent) >= MOST_MESSAGES // 4

    def _drifted(self) -> bool:
        if self._planned is None:
            return False
        terms, work = self._terms / self._messages, self._work / self._messages
        longer = (terms + 1) / (self._planned.terms + 1)
        return longer > DRIFT or longer < 1 / DRIFT or work > DRIFT * self._planned.work

    @property
    def recent(self) -> MessageBatch | None:
        """The latest messages, or None while there are too few."""
        with self._lock:
            return _joined(list(self._recent)) if self._has_enough() else None


def _block(messages: MessageBatch, number: int) -> MessageBatch:
    """A copy of a few consecutive messages of a batch."""
    first = number // EVERY % max(1, messages.size - BLOCK + 1)
    part = messages.part(first, min(first + BLOCK, messages.size))
    return MessageBatch(*(array.copy() for array in part))


def _joined(blocks: list[MessageBatch]) -> MessageBatch:
    counts = np.concatenate([np.diff(block.term_starts) for block in blocks])
    ids, terms, _, boxes, times = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return MessageBatch(ids, terms, starts_of(counts), boxes, times)
