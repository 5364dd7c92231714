"""Matching of one point message: the same kernels as for a batch, with all arrays passed as pointers."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.arrays.pointers import (
    pointers_to,
    unsafe_floats,
    unsafe_int32,
    unsafe_int32_lines,
    unsafe_small_lines,
    unsafe_words,
)
from nearcast.indexes.ap_tree.layout import TreeView
from nearcast.indexes.ap_tree.search import Scratch, match_tree
from nearcast.indexes.ap_tree.tree import ApTreeStore
from nearcast.matching.store import RowArrays, RowStore
from nearcast.model import MessageBatch
from nearcast.structures.row_pointers import FIRST_OWN, store_arrays, unsafe_owners, unsafe_rows

# Positions after the store's arrays: the ranks by term, a bit for each rank, then the tree's arrays.
_RANKS, _BITS, _TREE = range(FIRST_OWN, FIRST_OWN + 3)


@kernel
def _match_point(pointers, terms, x, y):
    """The owners of all rows that match one point message, unordered; nodes visited; entries compared."""
    starts = np.array((0, len(terms)))
    message = MessageBatch(starts, terms, starts, np.array(((x, y, x, y),)), starts)  # ids and times are not read
    bits, owners = unsafe_words(pointers, _BITS), unsafe_owners(pointers)
    scratch = Scratch(bits, bits[:0])  # a point meets each row once, so no bit for each row is needed
    by_term, bounds = unsafe_int32(pointers, _RANKS), np.zeros(2, np.int64)
    rows, nodes, seen = match_tree(_unsafe_tree(pointers), unsafe_rows(pointers), by_term, message, scratch, bounds)
    ids = np.empty(len(rows), np.int64)
    for k in range(len(rows)):
        ids[k] = owners[rows[k]]
    return ids, nodes, seen


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


class PackedArguments(NamedTuple):
    """The arguments of the kernel for one thread. They are outdated when the store has other arrays than `store`."""

    store: RowArrays
    pointers: np.ndarray
    arrays: tuple[np.ndarray, ...]  # what the pointers point to: keeps the memory alive


def _packed(structure: ApTreeStore, store: RowStore) -> PackedArguments:
    bits = np.zeros((structure.ranks.count >> 6) + 1, np.uint64)
    arrays = (*store_arrays(store), structure.ranks.by_term, bits, *structure.tree.view)
    return PackedArguments(store.arrays, pointers_to(arrays), arrays)


class PointMatcher(threading.local):
    """Matches one point message at a time. Each thread has its own packed arguments: they contain bits to write to.

    The method makes a new matcher whenever its rows change. Rows of other structures also change the store's arrays,
    so `match` compares these on every call.
    """

    arguments: PackedArguments | None = None

    def match(
        self, structure: ApTreeStore, store: RowStore, terms: np.ndarray, x: float, y: float
    ) -> tuple[np.ndarray, int, int]:
        """The owners of the rows that match, unordered; nodes visited; entries compared."""
        arguments = self.arguments
        if arguments is None or arguments.store is not store.arrays:
            arguments = self.arguments = _packed(structure, store)
        return _match_point(arguments.pointers, terms, float(x), float(y))
