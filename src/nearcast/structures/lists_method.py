"""Base class of the methods that consist of one structure of posting lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.matching.method import Method
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.keyword_lists import KeywordLists
from nearcast.structures.spatial_lists import SpatialLists


class ListsMethod(Method):
    """Passes every call to `lists`, which the constructor of a subclass sets."""

    lists: KeywordLists | SpatialLists

    def build(self, rows: np.ndarray) -> None:
        self.lists.build(rows)

    def insert(self, rows: np.ndarray) -> None:
        self.lists.insert(rows)

    def remove(self, rows: np.ndarray) -> None:
        self.lists.remove(rows)

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self.lists.match(messages)

    @property
    def nbytes(self) -> int:
        return self.lists.nbytes

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return self.lists.state()

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.lists.restore(arrays, header)
