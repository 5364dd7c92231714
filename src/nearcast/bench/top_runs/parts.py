"""CPU time of a stream by part: search, inserts, expiry, message index, refills, thetas, changes.

Parts are timed around kernel calls, message by message. `norm-lists` then takes the steps of the other methods, with a
kernel call for each part, in place of its one kernel for a whole batch: its parts are comparable with theirs, and their
sum is larger than what it takes in batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nearcast.topk.buffered.buffered_method import BufferedTop

SEARCH, INSERTS, EXPIRY, INDEX, REFILLS, THETAS, CHANGES, REST = PARTS = (
    *("search", "inserts", "expiry", "message index", "refills", "thetas", "changes", "rest"),
)
"""`thetas`: the index of rows follows thetas that changed. `rest`: Python between the calls, and loading messages."""


class PartTimer:
    """Seconds by part. A part that calls another one stops meanwhile."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._part, self._since = REST, 0.0

    def start(self) -> None:
        self._since = time.thread_time()

    def switch(self, part: str) -> str:
        """Go on with another part; return the one that ran."""
        now, before = time.thread_time(), self._part
        self.seconds[before] = self.seconds.get(before, 0.0) + now - self._since
        self._part, self._since = part, now
        return before

    def timed(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            outer = self.switch(part)
            try:
                return call(*args)
            finally:
                self.switch(outer)

        return run


@contextmanager
def timing_parts(method: BufferedTop) -> Iterator[PartTimer]:
    """Time the parts of a method, which publishes by single steps meanwhile."""
    timer, publish = PartTimer(), BufferedTop.publish.__get__(method)
    calls = [
        (method, "_expire", EXPIRY),
        (method.dissemination, "find", SEARCH),
        (method, "_arrive", INSERTS),
        (method.messages, "append", INDEX),
        (method.refiller, "refill", REFILLS),
        (method.dissemination, "thetas_changed", THETAS),
        (method, "_finish", CHANGES),
        (method, "_changes", CHANGES),
    ]
    for owner, name, part in calls:
        setattr(owner, name, timer.timed(getattr(owner, name), part))
    setattr(method, "publish", publish)  # noqa: B010  mypy refuses to assign a method
    timer.start()
    try:
        yield timer
    finally:
        timer.switch(REST)
        del method.publish
        for owner, name, _ in calls:
            delattr(owner, name)
