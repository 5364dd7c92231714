"""Spatial first: lists by place.

Paper      baseline; the spatial-first competitor of all four papers.
Idea       File each row under one cell of a hierarchy of grids; a message reads the few cells whose boxes may reach
           it and filters by terms.
Layout     a loose grid (cell -> list) and postings: an entry holds the row, its box in float32 rounded outward, and its
           rarest term.
Cost       insert O(1); match O(cells of 17 levels + their entries); 32 bytes a row and 30 a cell.
Deviates   the papers use an R-tree; a grid by size of box gives the same pruning without a tree to walk, and takes
           inserts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.geo.space import Space
from nearcast.matching.method import Method
from nearcast.matching.spatial_lists import SpatialLists
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch, Work


class SpatialFirst(Method):
    name = "spatial-first"
    paper = "baseline"
    cost_ns = (100.0, 3.0)
    effort_ceiling = 0.2

    def __init__(self, store: RowStore, space: Space) -> None:
        super().__init__(store, space)
        self._lists = SpatialLists(store, space)

    def build(self, rows: np.ndarray) -> None:
        self._lists.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self._lists.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self._lists.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self._lists.match(messages)

    @property
    def nbytes(self) -> int:
        return self._lists.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self._lists.state()

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._lists.restore(arrays, header)
