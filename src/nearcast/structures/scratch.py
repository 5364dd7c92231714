"""A pool of working memory, so that threads which match at the same time do not share arrays.

`match` may run on several threads. Each call borrows one scratch object and gives it back; the pool makes a new object
when all others are in use. So there are as many objects as threads ever matched at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, TypeVar

import numpy as np

from nearcast.arrays.growable import grown

T = TypeVar("T")
Z = TypeVar("Z", bound=Iterable[np.ndarray])


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


class ZeroedPool(ScratchPool[Z]):
    """Hands out named tuples of arrays that every search leaves zero."""

    def __init__(self, kind: Callable[..., Z], *dtypes: type[np.generic]) -> None:
        super().__init__(lambda: kind(*(np.zeros(0, dtype) for dtype in dtypes)))
        self._kind = kind

    def sized(self, *sizes: int) -> AbstractContextManager[Z]:
        """Borrow a tuple whose arrays have at least these sizes."""
        return self.borrow(lambda old: self._kind(*(grown(a, n, fill=0) for a, n in zip(old, sizes, strict=True))))


class Marks(threading.local):
    """One byte a term, for each thread. Every search leaves the marks zero."""

    _marks = np.zeros(0, np.uint8)

    def sized(self, n_terms: int) -> np.ndarray:
        """At least this many marks."""
        if len(self._marks) < n_terms:
            self._marks = np.zeros(n_terms + n_terms // 2, np.uint8)
        return self._marks
