"""Annotations that are one hash table for the whole tree, keyed by (node, term)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from nearcast.arrays.intmap import ABSENT, IntMapArrays
from nearcast.structures.rtree.nodes import TreeArrays


class TableAnnotations:
    """Subclasses name the kernels that follow the tree. Each takes the table and its size, and returns both."""

    prefix: ClassVar[str]
    """Of the names of the arrays on disk."""
    value_type: ClassVar[type] = np.int32
    build_kernel: ClassVar[Callable[..., Any]]
    insert_kernel: ClassVar[Callable[..., Any]]
    remove_kernel: ClassVar[Callable[..., Any]]

    def __init__(self) -> None:
        self.arrays, self._size = self._empty(), 0

    def _empty(self) -> IntMapArrays:
        return IntMapArrays(np.zeros(16, np.int64), np.full(16, ABSENT, self.value_type))

    @property
    def nbytes(self) -> int:
        return int(self.arrays.keys.nbytes + self.arrays.values.nbytes)

    def build(self, tree: TreeArrays, rows: Any) -> None:
        self.arrays, self._size = self.build_kernel(tree, self._empty(), rows)

    def insert(self, tree: TreeArrays, rows: Any, new: np.ndarray, done: int) -> int:
        done, self.arrays, self._size = self.insert_kernel(tree, self.arrays, self._size, rows, new, done)
        return int(done)

    def remove(self, tree: TreeArrays, rows: Any, old: np.ndarray, done: int) -> int:
        done, self.arrays, self._size = self.remove_kernel(tree, self.arrays, self._size, rows, old, done)
        return int(done)

    def state(self) -> dict[str, np.ndarray]:
        return {f"{self.prefix}_{name}": array for name, array in self.arrays._asdict().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = IntMapArrays(arrays[f"{self.prefix}_keys"], arrays[f"{self.prefix}_values"])
        self._size = int(np.count_nonzero(self.arrays.values != ABSENT))
