"""Stays that are not yet long enough: a subscription with a dwell time enters a message only after staying."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import pyarrow as pa

from nearcast.model import Id

Pair = tuple[Id, Id]
"""(subscription, message)"""

_FEW = 64


class Stays:
    """Pairs that match but do not count yet, and when they will count."""

    def __init__(self) -> None:
        self._counts_from: dict[Pair, int] = {}
        self._heap: list[tuple[int, Pair]] = []  # an entry is out of date if `_counts_from` has another time for it

    def state(self, subscriptions: pa.DataType, messages: pa.DataType) -> pa.Table:
        """The pairs and when they count, with ids of these types."""
        pairs = list(self._counts_from)
        return pa.table(
            {
                "subscription": pa.array([pair[0] for pair in pairs], subscriptions),
                "message": pa.array([pair[1] for pair in pairs], messages),
                "from": pa.array(self._counts_from.values(), pa.int64()),
            }
        )

    def begin(self, pair: Pair, counts_from: int) -> None:
        """A pair begins to match, and counts from this time on."""
        self._counts_from[pair] = counts_from
        heapq.heappush(self._heap, (counts_from, pair))
        if len(self._heap) > 2 * len(self._counts_from) + _FEW:
            self._heap = [(time, each) for each, time in self._counts_from.items()]
            heapq.heapify(self._heap)

    def end(self, pair: Pair) -> bool:
        """A pair ceases to match. Returns whether it did not count yet."""
        return self._counts_from.pop(pair, None) is not None

    def forget(self, subscription: Id) -> None:
        """Forget the stays of a subscription."""
        for pair in [pair for pair in self._counts_from if pair[0] == subscription]:
            del self._counts_from[pair]

    def take_due(self, now: int) -> list[Pair]:
        """The pairs that count from now on. They are no longer here."""
        due: list[Pair] = []
        while self._heap and self._heap[0][0] <= now:
            counts_from, pair = heapq.heappop(self._heap)
            if self._counts_from.get(pair) == counts_from:
                del self._counts_from[pair]
                due.append(pair)
        return due

    def without_early(self, subscription: Id, messages: Iterable[Id]) -> list[Id]:
        """Those of the messages that count for the subscription."""
        return [message for message in messages if (subscription, message) not in self._counts_from]
