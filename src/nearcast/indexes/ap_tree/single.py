"""One message at a time: the same kernels, all their arrays handed over as one ticket."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from nearcast.arrays.jit import JIT_DISABLED, kernel
from nearcast.arrays.pointers import ticket_for
from nearcast.indexes.ap_tree.nodes import Shape
from nearcast.indexes.ap_tree.search import match_tree
from nearcast.indexes.ap_tree.tree import ApTreeStore
from nearcast.matching.store import RowArrays, RowStore
from nearcast.model import MessageBatch

# A ticket names the store's arrays, the owners, the ranks by term, a bit for each rank, then the tree's arrays.
_OWNERS, _RANKS, _BITS, _TREE = 6, 7, 8, 9

if not JIT_DISABLED:
    from nearcast.arrays.pointers import (
        unsafe_floats,
        unsafe_int32,
        unsafe_int32_lines,
        unsafe_int64,
        unsafe_small_lines,
        unsafe_words,
    )
    from nearcast.structures.row_pointers import unsafe_rows

    @kernel
    def _match_ticket(ticket, terms, x, y):
        """The owners of all rows that hold on one message at a point, unordered; nodes visited; entries looked at."""
        starts = np.array((0, len(terms)))
        message = MessageBatch(starts, terms, starts, np.array(((x, y, x, y),)), starts)  # ids and times are not read
        bits, owners = unsafe_words(ticket, _BITS), unsafe_int64(ticket, _OWNERS)
        scratch = (bits, bits[:0])  # a point meets a row once: no bit for each row is needed
        by_term, bounds = unsafe_int32(ticket, _RANKS), np.zeros(2, np.int64)
        rows, nodes, seen = match_tree(_tree_of(ticket), unsafe_rows(ticket), by_term, message, scratch, bounds)
        ids = np.empty(len(rows), np.int64)
        for k in range(len(rows)):
            ids[k] = owners[rows[k]]
        return ids, nodes, seen

    @kernel
    def _tree_of(ticket):
        return Shape(
            unsafe_int32_lines(ticket, _TREE, 8),
            unsafe_int32(ticket, _TREE + 1),
            unsafe_int32_lines(ticket, _TREE + 2, 2),
            unsafe_int32(ticket, _TREE + 3),
            unsafe_floats(ticket, _TREE + 4),
            unsafe_int32_lines(ticket, _TREE + 5, 8),
            unsafe_small_lines(ticket, _TREE + 6, 8),
        )


class _Desk(NamedTuple):
    """What a thread matches with: the ticket, the arrays that it names, and by what to tell that they are outdated."""

    store: RowArrays
    ticket: np.ndarray
    named: tuple[np.ndarray, ...]


def _laid(keeper: ApTreeStore, store: RowStore) -> _Desk:
    bits = np.zeros((keeper.ranks.count >> 6) + 1, np.uint64)
    named = (*store.arrays, store.owner_ids, keeper.ranks.by_term, bits, *keeper.tree.shape)
    return _Desk(store.arrays, ticket_for(named), named)


class Tickets(threading.local):
    """A ticket for each thread, since it names the bits on which a message is worked.

    The method takes new tickets whenever its rows change; here it is only seen when rows elsewhere change the store.
    """

    desk: _Desk | None = None

    def match(
        self, keeper: ApTreeStore, store: RowStore, terms: np.ndarray, x: float, y: float
    ) -> tuple[np.ndarray, int, int]:
        """The owners of the rows that hold on a message, unordered, and the work: nodes, entries."""
        desk = self.desk
        if desk is None or desk.store is not store.arrays:
            desk = self.desk = _laid(keeper, store)
        return _match_ticket(desk.ticket, terms, float(x), float(y))
