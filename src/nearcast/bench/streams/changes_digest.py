"""A digest of changes, by which the methods of a stream are compared."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa

from nearcast.model import Changes


class ChangesDigest:
    """A hash of (message, subscription, sign, score) in the order of the changes, and their number."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self.n_changes = 0

    def add(self, changes: Changes | None) -> None:
        """Add the changes of a call."""
        if changes is not None:
            self._add(changes.message_ids, changes.subscription_ids, changes.signs, changes.scores)

    def add_table(self, table: pa.Table) -> None:
        """Add the changes of a call that returned a table. Unknown scores count as NaN."""
        columns = [table[name].to_numpy() for name in ("message", "subscription", "change", "score")]
        self._add(*columns)

    def _add(self, messages: np.ndarray, subscriptions: np.ndarray, signs: np.ndarray, scores: np.ndarray) -> None:
        self.n_changes += len(signs)
        for values in (messages, subscriptions, signs):
            self._hash.update(np.ascontiguousarray(values).tobytes())
        self._hash.update(np.ascontiguousarray(np.asarray(scores, np.float64)).tobytes())

    @property
    def text(self) -> str:
        return f"{self.n_changes} changes, {self._hash.hexdigest()}"
