"""A pool of working memory, so that threads which match at the same time do not share arrays.

`match` may run on several threads. Each call borrows one scratch object and gives it back; the pool makes a new object
when all others are in use. So there are as many objects as threads ever matched at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class ScratchPool(Generic[T]):
    """Hands out scratch objects. `make` returns a new one, with every array in the state that a search expects."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._idle: list[T] = []

    @contextmanager
    def borrow(self, fit: Callable[[T], T] = lambda scratch: scratch) -> Iterator[T]:
        """A scratch object that no other thread has, passed through `fit`, which may replace it by a larger one.

        The object returns to the pool at the end of the block. After an exception it is dropped: a search that was
        interrupted may leave marks behind.
        """
        try:
            scratch = self._idle.pop()  # atomic; a test for emptiness beforehand would race with other threads
        except IndexError:
            scratch = self._make()
        scratch = fit(scratch)
        yield scratch
        self._idle.append(scratch)
