"""A method with what the matcher does after it: for subscriptions of several rows each, as expressions have."""

from __future__ import annotations

import numpy as np

from nearcast.matching.method import Method
from nearcast.matching.verify import owners_sorted, verified
from nearcast.model import Hits, MessageBatch, Work


class Whole:
    """The runner times it like a method: rows in, subscriptions out, each once and none that its NOT forbids."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.name = method.name
        self.build, self.insert, self.remove, self.expect = method.build, method.insert, method.remove, method.expect

    @property
    def nbytes(self) -> int:
        return self.method.nbytes

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        """The numbers of subscriptions, sorted; nodes and candidates as the method counts them."""
        store = self.method.store
        hits, work = self.method.match(messages)
        ids, starts = owners_sorted(store, verified(store, messages, hits), True)
        return Hits(ids.astype(np.int32), starts), work._replace(matches=len(ids))
