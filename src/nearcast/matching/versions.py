"""One writer, many readers: numbered versions of a group of sets, and the calls that are reading them.

A change prepares the next version beside the current one and publishes it at its end. A reader registers, takes what is
published, and never waits for a change. Rows that a change removes stay in the index for the readers of older versions.
The next change that finds no such reader takes them out.

Some methods write to arrays that readers read. Before such a write the change excludes readers: it waits for those that
are there, and new ones wait for its end.

Whatever two threads could see in different orders is one operation on a dict or an attribute; Python makes these
atomic.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

_LONGEST_WAIT_S = 0.05
"""Between two looks at the readers. A reader that leaves wakes the writer at once."""


class Member(Protocol):
    """A set whose changes are published together with those of the other members."""

    def publish(self) -> None:
        """Make the state of the next version the one that readers take."""

    def reclaim(self, oldest: int) -> bool:
        """Take out the rows that were removed up to version `oldest`; return whether there were any."""


class Versions(AbstractContextManager[None]):
    """The current version of a group of sets, and who reads which version.

    Members are referred to weakly: an index that nobody uses any more is freed at once, not by the cycle collector.
    """

    def __init__(self) -> None:
        self.number = 0
        self._members: list[weakref.ref[Member]] = []
        self._publish_group: weakref.WeakMethod[Callable[[], None]] | None = None
        self._writing = threading.RLock()
        self._depth = 0
        self._reading: dict[object, int] = {}
        self._is_closed = False
        self._opened, self._left = threading.Event(), threading.Event()

    def add(self, member: Member) -> None:
        """Publish this set with the others."""
        self._members.append(weakref.ref(member))

    def after_publishing(self, method: Callable[[], None]) -> None:
        """Call this bound method whenever the members have published."""
        self._publish_group = weakref.WeakMethod(method)

    @property
    def next_number(self) -> int:
        """The version that the current change will publish."""
        return self.number + 1

    # -- readers

    @contextmanager
    def read(self) -> Iterator[None]:
        """Register as a reader. Take what is published inside the block, not before."""
        reader = self.enter()
        try:
            yield
        finally:
            self.leave(reader)

    def enter(self) -> object:
        """Register as a reader, under a number that is not newer than what will be read. `leave` must follow."""
        reader = object()
        self._reading[reader] = self.number
        while self._is_closed:
            self.leave(reader)
            self._opened.wait()
            self._reading[reader] = self.number
        return reader

    def leave(self, reader: object) -> None:
        del self._reading[reader]
        if self._is_closed:
            self._left.set()

    @property
    def oldest(self) -> int:
        """The oldest version that may still be read."""
        reading = [*self._reading.values()]  # copied first: readers come and go
        return min(reading) if reading else self.number

    # -- the writer

    def change(self) -> AbstractContextManager[None]:
        """Change the members, one thread at a time. The end of the outermost block publishes the changes.

        A block that raises publishes as well: whatever it changed before stays changed.
        """
        return self  # no object of its own: one subscription has five nested blocks

    def __enter__(self) -> None:
        self._writing.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                self._publish()
        finally:
            if self._is_closed and self._depth == 0:
                self._admit_readers()
            self._writing.release()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Keep changes out. Readers go on."""
        with self._writing:
            yield

    def try_change(self, change: Callable[[], None]) -> None:
        """Make a change unless another one is being made. For upkeep that can wait; the caller is not a reader."""
        if self._writing.acquire(blocking=False):
            try:
                with self.change():
                    change()
            finally:
                self._writing.release()

    def exclude_readers(self) -> None:
        """Wait until nobody reads, and keep readers out until the end of the change."""
        if self._is_closed:
            return
        self._opened.clear()
        self._is_closed = True
        while self._reading:
            self._left.clear()
            if self._reading:
                self._left.wait(_LONGEST_WAIT_S)

    def _admit_readers(self) -> None:
        self._is_closed = False
        self._opened.set()

    def _publish(self) -> None:
        members = [member for reference in self._members if (member := reference()) is not None]
        self._publish_all(members)
        self.number += 1
        oldest = self.oldest  # read after publishing: whoever registers later reads the new version
        if any([member.reclaim(oldest) for member in members]):
            self._publish_all(members)

    def _publish_all(self, members: list[Member]) -> None:
        for member in members:
            member.publish()
        publish_group = None if self._publish_group is None else self._publish_group()
        if publish_group is not None:
            publish_group()
