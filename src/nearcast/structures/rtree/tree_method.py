"""Base classes of the methods that annotate the nodes of an R-tree."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np

from nearcast.geo.space import Space
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.structures.rtree.grow import is_overfull
from nearcast.structures.rtree.nodes import ROOT, TreeArrays
from nearcast.structures.rtree.shrink import root_is_thin
from nearcast.structures.rtree.tree import RTree


class Annotations(Protocol):
    """What a method keeps for each node. `rows` is the view of the rows from which the method derives it."""

    @property
    def nbytes(self) -> int: ...

    def build(self, tree: TreeArrays, rows: Any) -> None:
        """Annotate all nodes again: the tree was built, or its height has changed."""

    def insert(self, tree: TreeArrays, rows: Any, new: np.ndarray, done: int) -> int:
        """Insert new[done:] until the root is overfull or nodes run out; return how many of `new` are done."""

    def remove(self, tree: TreeArrays, rows: Any, old: np.ndarray, done: int) -> int:
        """Remove old[done:] until the root has a single child; return how many of `old` are done."""

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, arrays: dict[str, np.ndarray]) -> None: ...


class AnnotatedTree(Method):
    """A method of any kind. Subclasses make the tree and the annotations."""

    paper = "rt-tree"
    tree: RTree
    annotations: Annotations

    @abstractmethod
    def view(self) -> Any:
        """The arrays of the rows that the annotations are derived from."""

    def _annotate(self) -> None:
        self.annotations.build(self.tree.arrays, self.view())

    def build(self, rows: np.ndarray) -> None:
        self.tree.build(rows, self.store.arrays.boxes[rows], self.store.high)
        self._annotate()

    def insert(self, rows: np.ndarray) -> None:
        done = 0
        while done < len(rows):
            self.tree.make_room(self.store.high)
            done = self.annotations.insert(self.tree.arrays, self.view(), rows, done)
            if is_overfull(self.tree.arrays, ROOT):
                self.tree.raise_root()
                self._annotate()

    def remove(self, rows: np.ndarray) -> None:
        done = 0
        while done < len(rows):
            done = self.annotations.remove(self.tree.arrays, self.view(), rows, done)
            if root_is_thin(self.tree.arrays):
                self.tree.lower_root()
                self._annotate()

    @property
    def nbytes(self) -> int:
        return self.tree.nbytes + self.annotations.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.tree.state() | self.annotations.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.tree.restore(arrays)
        self.annotations.restore(arrays)


class TreeMethod(AnnotatedTree):
    """A method of kind `match`. Nodes have `b` to `most` entries."""

    def __init__(self, store: RowStore, space: Space, b: int, most: int) -> None:
        super().__init__(store, space)
        self.tree = RTree(b, most)
