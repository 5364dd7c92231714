"""Methods of kind `match` whose rows live in one data structure: all calls but `match` go to that structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from nearcast.matching.method import Method
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work


class Structure(Protocol):
    """An index over rows of a store. Its calls mean what those of the same name mean in `RowMethod`."""

    @property
    def nbytes(self) -> int: ...

    def build(self, rows: np.ndarray) -> None: ...

    def insert(self, rows: np.ndarray) -> None: ...

    def remove(self, rows: np.ndarray) -> None: ...

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]: ...

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None: ...


class StructureMethod(Method):
    """Subclasses set `structure` in their constructor and define `match`."""

    structure: Structure

    def build(self, rows: np.ndarray) -> None:
        self.structure.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self.structure.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.structure.remove(rows)

    @property
    def nbytes(self) -> int:
        return self.structure.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.structure.state()

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.structure.restore(arrays, header)


def run_search(
    search: Callable[..., Any], views: tuple[Any, ...], store: RowStore | StoreView, messages: MessageBatch
) -> tuple[Hits, Work]:
    """Run the kernel search(*views, rows, messages, marks, starts): see run_kernel."""
    return run_kernel(
        search, messages, *views, store.arrays, messages, np.zeros(store.n_terms + 1, np.uint8)
    )  # one for TERMLESS_KEY


def run_kernel(search: Callable[..., Any], messages: MessageBatch, *arguments: Any) -> tuple[Hits, Work]:
    """Run the kernel search(*arguments, starts), which fills starts and returns (rows, nodes, candidates)."""
    starts = np.zeros(messages.size + 1, np.int64)
    rows, nodes, candidates = search(*arguments, starts)
    return Hits(rows, starts), Work(nodes, candidates, len(rows))
