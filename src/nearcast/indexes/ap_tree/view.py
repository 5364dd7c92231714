"""What readers of one version of an AP-tree search: batches, and single messages with all arrays as pointers."""

from __future__ import annotations

import threading

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.pointers import (
    PackedArrays,
    unsafe_floats,
    unsafe_int32,
    unsafe_int32_lines,
    unsafe_small_lines,
)
from nearcast.indexes.ap_tree.cuts import Ranks
from nearcast.indexes.ap_tree.layout import TreeView
from nearcast.indexes.ap_tree.search import Scratch, match_tree
from nearcast.matching.store import StoreView
from nearcast.model import Hits, MessageBatch, Work
from nearcast.structures.row_pointers import FIRST_OWN, delivered_ids, one_message, store_arrays, unsafe_rows
from nearcast.structures.scratch import ZeroedPool
from nearcast.structures.structure_method import run_kernel

# Positions after the store's arrays: the ranks by term, then the tree's arrays.
_RANKS, _TREE = range(FIRST_OWN, FIRST_OWN + 2)


@kernel
def _match_point(pointers, bits, terms, x, y, time):
    """The subscriptions of one point message, ascending; nodes visited; entries compared."""
    message, bounds = one_message(terms, x, y, time), np.zeros(2, np.int64)
    scratch = Scratch(bits, bits[:0])  # a point meets each row once, so no bit for each row is needed
    by_term = unsafe_int32(pointers, _RANKS)
    rows, nodes, seen = match_tree(_unsafe_tree(pointers), unsafe_rows(pointers), by_term, message, scratch, bounds)
    return delivered_ids(pointers, message, rows), nodes, seen


@kernel
def _unsafe_tree(pointers):
    return TreeView(
        unsafe_int32_lines(pointers, _TREE, 8),
        unsafe_int32(pointers, _TREE + 1),
        unsafe_int32_lines(pointers, _TREE + 2, 2),
        unsafe_int32(pointers, _TREE + 3),
        unsafe_floats(pointers, _TREE + 4),
        unsafe_int32_lines(pointers, _TREE + 5, 8),
        unsafe_small_lines(pointers, _TREE + 6, 8),
    )


class PointMemory(threading.local):
    """A bit for each rank, for each thread. Searches leave them zero."""

    _bits = np.zeros(0, np.uint64)

    def bits(self, n: int) -> np.ndarray:
        if len(self._bits) < n:
            self._bits = np.zeros(n + n // 2, np.uint64)
        return self._bits


class ApTreeView:
    """A version of a tree. Threads may share it."""

    def __init__(
        self, tree: TreeView, ranks: Ranks, store: StoreView, scratch: ZeroedPool[Scratch], memory: PointMemory
    ) -> None:
        self._tree, self._by_term, self._store = tree, ranks.by_term, store
        self._n_words, self._scratch, self._memory = (ranks.count >> 6) + 1, scratch, memory
        self._packed = PackedArrays((*store_arrays(store), ranks.by_term, *tree))

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        with self._scratch.sized(self._n_words, (self._store.high >> 6) + 1) as scratch:
            return run_kernel(match_tree, messages, self._tree, self._store.arrays, self._by_term, messages, scratch)

    def match_point(self, terms: np.ndarray, x: float, y: float, time: int) -> tuple[np.ndarray, int, int]:
        """The subscriptions of one point message, ascending; nodes visited; entries compared."""
        return _match_point(self._packed.pointers, self._memory.bits(self._n_words), terms, float(x), float(y), time)
