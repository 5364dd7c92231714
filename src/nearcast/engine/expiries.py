"""The expiry times of live subscriptions, and the thread that forgets expired ones.

A subscription that has expired matches nothing, also before it is forgotten: matching compares times. So forgetting can
wait. It happens in slices, between which other changes get their turn, and never in a thread that publishes.
"""

from __future__ import annotations

import heapq
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from nearcast.model import NEVER, Id

_SLICE = 100
"""Subscriptions that are forgotten at a time by the thread: less than a millisecond of Python's lock."""

_PAUSE_S = 0.0002
"""Between two slices. A thread that waits for Python's lock would else wait for 5 ms before the lock is passed on; a
sleep of 0 does not pass it on."""

_FEW = 64


class Expiries:
    """A heap of (expires, id). The writer changes it; publishers read `next_due` and call `start`.

    `expire_some(most)`, a bound method, forgets up to `most` subscriptions and returns whether there are more.
    """

    def __init__(self, expire_some: Callable[[int], bool]) -> None:
        self.next_due = NEVER
        """When the next subscription expires, or earlier."""
        self._heap: list[tuple[int, Any]] = []  # an entry is out of date if `_times` has another time for its id
        self._times: dict[Id, int] = {}
        self._expire_some = weakref.WeakMethod(expire_some)  # the engine refers to this object
        self._running = threading.Lock()

    def replace(self, number: Id, expires: int) -> None:
        """Set the expiry time of a subscription."""
        if expires == NEVER:
            self.discard(number)
            return
        self._times[number] = expires
        heapq.heappush(self._heap, (expires, number))
        self._drop_old_entries()

    def discard(self, number: Id) -> None:
        if self._times.pop(number, None) is not None:
            self._drop_old_entries()

    def _drop_old_entries(self) -> None:
        """Rebuild the heap once most of its entries are out of date."""
        if len(self._heap) > 2 * len(self._times) + _FEW:
            self._heap = [(expires, number) for number, expires in self._times.items()]
            heapq.heapify(self._heap)
        self.next_due = self._heap[0][0] if self._heap else NEVER

    def take_due(self, now: int, most: int) -> list[Id]:
        """Up to `most` subscriptions that have expired. They are no longer here."""
        due: list[Id] = []
        while self._heap and self._heap[0][0] <= now and len(due) < most:
            expires, number = heapq.heappop(self._heap)
            if self._times.get(number) == expires:
                del self._times[number]
                due.append(number)
        self._drop_old_entries()
        return due

    def count_due(self, now: int) -> int:
        """How many subscriptions have expired."""
        if now < self.next_due:
            return 0
        return sum(expires <= now for expires in self._times.values())

    def start(self) -> None:
        """Forget what has expired in another thread, unless one is doing so."""
        if self._running.acquire(blocking=False):
            threading.Thread(target=self._run, name="nearcast-expiry", daemon=True).start()

    def _run(self) -> None:
        try:
            while (expire_some := self._expire_some()) is not None and expire_some(_SLICE):
                del expire_some  # keeps the engine alive
                time.sleep(_PAUSE_S)
        finally:
            self._running.release()
