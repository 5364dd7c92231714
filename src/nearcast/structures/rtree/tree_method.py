"""Base classes of the methods that annotate the nodes of an R-tree, and of their annotations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from nearcast.arrays.intmap import ABSENT, IntMapArrays
from nearcast.geo.space import Space
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.structures.representative import Representatives
from nearcast.structures.rtree.grow import is_overfull, raise_root
from nearcast.structures.rtree.nodes import ROOT, TreeArrays
from nearcast.structures.rtree.shrink import lower_root, root_is_thin
from nearcast.structures.rtree.tree import RTree, SavedArrays


class Annotations(SavedArrays, ABC):
    """What a method keeps for each node. `rows` is the view of the rows from which the method derives it."""

    insert_kernel: ClassVar[Callable[..., Any]]
    """Inserts new[done:] until the root is overfull or nodes run out; returns how many are done."""
    remove_kernel: ClassVar[Callable[..., Any]]
    """Removes old[done:] until the root has a single child; returns how many are done."""

    @abstractmethod
    def build(self, tree: TreeArrays, rows: Any) -> None:
        """Annotate all nodes again: the tree was built, or its height has changed."""

    @abstractmethod
    def change(self, kernel: Callable[..., Any], tree: TreeArrays, rows: Any, some: np.ndarray, done: int) -> int:
        """Run the kernel of a change on some[done:]; return how many are done."""


class TableAnnotations(Annotations):
    """One hash table for the whole tree, keyed by (node, term). Kernels take the table and its size and return both."""

    value_type: ClassVar[type] = np.int32
    build_kernel: ClassVar[Callable[..., Any]]

    def __init__(self) -> None:
        self.arrays, self._size = self._empty(), 0

    def _empty(self) -> IntMapArrays:
        return IntMapArrays(np.zeros(16, np.int64), np.full(16, ABSENT, self.value_type))

    def build(self, tree: TreeArrays, rows: Any) -> None:
        self.arrays, self._size = self.build_kernel(tree, self._empty(), rows)

    def change(self, kernel: Callable[..., Any], tree: TreeArrays, rows: Any, some: np.ndarray, done: int) -> int:
        done, self.arrays, self._size = kernel(tree, self.arrays, self._size, rows, some, done)
        return int(done)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self._size = int(np.count_nonzero(self.arrays.values != ABSENT))


class TreeMethod(Method):
    """A method of any kind. Nodes have `b` to `B` entries. Subclasses say how nodes are annotated."""

    paper = "rt-tree"
    checked_with: ClassVar[tuple[str, ...]] = ("", "b=2 B=4", "b=3 B=8")
    annotated_by: ClassVar[type[Annotations]]

    def __init__(self, store: RowStore, space: Space, b: int = 25, B: int = 50) -> None:
        super().__init__(store, space)
        self.tree = RTree(b, B)
        self.annotations: Annotations = self.annotated_by()

    @abstractmethod
    def view(self) -> Any:
        """The arrays of the rows that the annotations are derived from."""

    def _annotate(self) -> None:
        self.annotations.build(self.tree.arrays, self.view())

    def build(self, rows: np.ndarray) -> None:
        self.tree.build(rows, self.store.arrays.boxes[rows], self.store.high)
        self._annotate()

    def insert(self, rows: np.ndarray) -> None:
        notes, done = self.annotations, 0
        while done < len(rows):
            self.tree.make_room(self.store.high)
            done = notes.change(notes.insert_kernel, self.tree.arrays, self.view(), rows, done)
            if is_overfull(self.tree.arrays, ROOT):
                raise_root(self.tree.arrays)
                self._annotate()

    def remove(self, rows: np.ndarray) -> None:
        notes, done = self.annotations, 0
        while done < len(rows):
            done = notes.change(notes.remove_kernel, self.tree.arrays, self.view(), rows, done)
            if root_is_thin(self.tree.arrays):
                lower_root(self.tree.arrays)
                self._annotate()

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + self.annotations.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.tree.state() | self.annotations.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.tree.restore(arrays)
        self.annotations.restore(arrays)


class RepresentedTree(TreeMethod):
    """A row is represented by terms that `tokens` and `cells` choose (see representative.py)."""

    checked_with = ("", "b=2 B=4 cells=9", "b=3 B=7 tokens=idf", "b=2 B=5 tokens=df", "b=4 B=9 tokens=random")

    def __init__(
        self, store: RowStore, space: Space, tokens: str = "locality", cells: int = 10_000, b: int = 25, B: int = 50
    ) -> None:
        super().__init__(store, space, b, B)
        self._representatives = Representatives(store, space, tokens, cells)
        self.make_empty()

    @abstractmethod
    def make_empty(self) -> None:
        """Make what the method keeps besides the annotations, without rows."""

    def remove(self, rows: np.ndarray) -> None:
        super().remove(rows)
        self._representatives.forget(rows)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._representatives.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().state()
        return arrays | self._representatives.state(), header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        self._representatives.restore(arrays)
