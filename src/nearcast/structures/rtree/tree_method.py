"""What the tree methods have in common: a tree, something that hangs on its nodes, and the steps between the two."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from nearcast.geo.space import Space
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.structures.rtree.grow import is_overfull
from nearcast.structures.rtree.nodes import ROOT
from nearcast.structures.rtree.shrink import root_is_thin
from nearcast.structures.rtree.tree import RTree


class OnTree(Method):
    """For methods of every kind. Subclasses make the tree and hang what they keep on its nodes."""

    paper = "rt-tree"
    tree: RTree

    @abstractmethod
    def hang_all(self) -> None:
        """Hang everything on the tree anew: it was built, or its height has changed."""

    @abstractmethod
    def insert_some(self, rows: np.ndarray, done: int) -> int:
        """Insert rows from `done` on until the root is overfull or nodes run out; return how many are done."""

    @abstractmethod
    def remove_some(self, rows: np.ndarray, done: int) -> int:
        """Remove rows from `done` on until the root is thin; return how many are done."""

    def build(self, rows: np.ndarray) -> None:
        self.tree.build(rows, self.store.arrays.boxes[rows], self.store.high)
        self.hang_all()

    def insert(self, rows: np.ndarray) -> None:
        done = 0
        while done < len(rows):
            self.tree.make_room(self.store.high)
            done = self.insert_some(rows, done)
            if is_overfull(self.tree.arrays, ROOT):
                self.tree.raise_root()
                self.hang_all()

    def remove(self, rows: np.ndarray) -> None:
        done = 0
        while done < len(rows):
            done = self.remove_some(rows, done)
            if root_is_thin(self.tree.arrays):
                self.tree.lower_root()
                self.hang_all()

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.tree.state(), {}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.tree.restore(arrays)


class TreeMethod(OnTree):
    """For kind `match`. Nodes have `b` to `most` entries."""

    def __init__(self, store: RowStore, space: Space, b: int, most: int) -> None:
        super().__init__(store, space)
        self.tree = RTree(b, most)
