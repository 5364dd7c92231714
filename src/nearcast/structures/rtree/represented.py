"""Trees in which a row is represented by terms that are chosen by frequency, and the options of that choice."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from nearcast.geo.space import Space
from nearcast.matching.store import RowStore
from nearcast.structures.representative import Representatives
from nearcast.structures.rtree.tree_method import TreeMethod


class RepresentedTree(TreeMethod):
    """`tokens` and `cells` choose the terms (see representative.py); nodes have `b` to `B` entries."""

    checked_with = ("", "b=2 B=4 cells=9", "b=3 B=7 tokens=idf", "b=2 B=5 tokens=df", "b=4 B=9 tokens=random")

    def __init__(
        self, store: RowStore, space: Space, tokens: str = "locality", cells: int = 10_000, b: int = 25, B: int = 50
    ) -> None:
        super().__init__(store, space, b, B)
        self._representatives = Representatives(store, space, tokens, cells)
        self.make_empty()

    @abstractmethod
    def make_empty(self) -> None:
        """Make the annotations, and what else the method keeps, without rows."""

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
