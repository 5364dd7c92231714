"""Policies: how many messages a refill fetches, and how many a buffer keeps.

`raising`   ours: fetches 4 k. A full buffer drops dominated messages and raises its theta. Its size has a limit.
`kmax`      keeps between k and 3 k messages, dominated or not (60 at k = 20, as the paper tuned it).
`skyband`   keeps every undominated message that scores at least 0.95 of the k-th score at the refill.
`cskyband`  fetches the number of messages that minimises the cost model; keeps the undominated ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.topk.buffered.buffers import NO_LIMIT


class Policy(ABC):
    """How a buffer is refilled. Subclasses that set `name` are registered under it."""

    name: ClassVar[str]
    counts_dominators: ClassVar[bool] = False
    """Dominated messages are dropped at once, which needs a count for each entry; else when the buffer is full."""
    share_of_kth: ClassVar[float] = 0.0
    """A refill fetches everything that scores at least this share of the k-th best; 0: it fetches the best `depth`."""

    @abstractmethod
    def depths(self, ks: np.ndarray) -> np.ndarray:
        """int64[n]: how many messages a refill fetches for rows with these k, at least k."""

    def sizes(self, ks: np.ndarray) -> np.ndarray:
        """int32[n,2]: a buffer with more entries than [0] is full; it then keeps [1]."""
        return np.full((len(ks), 2), NO_LIMIT, np.int32)

    def learn(self, work: int, n_refills: int) -> None:
        """Take note of the work of some refills, in comparisons."""
        return None


class Raising(Policy):
    name = "raising"
    depth = 4.0

    def depths(self, ks: np.ndarray) -> np.ndarray:
        return np.asarray(np.ceil(self.depth * ks), np.int64)

    def sizes(self, ks: np.ndarray) -> np.ndarray:
        """Keeps the k-skyband that `depth` k messages are expected to have; full at a third more."""
        kept = np.ceil(ks * (1.0 + np.log(self.depth / 2)))
        return np.stack([np.ceil(kept * 4 / 3) + 1, kept], axis=1).clip(max=NO_LIMIT).astype(np.int32)


class KMax(Policy):
    name = "kmax"

    def depths(self, ks: np.ndarray) -> np.ndarray:
        return 3 * ks.astype(np.int64)

    def sizes(self, ks: np.ndarray) -> np.ndarray:
        kept = self.depths(ks).clip(max=NO_LIMIT)
        return np.stack([kept, kept], axis=1).astype(np.int32)


class Skyband(Policy):
    name = "skyband"
    counts_dominators = True
    share_of_kth = 0.95

    def depths(self, ks: np.ndarray) -> np.ndarray:
        return ks.astype(np.int64)


POLICIES: dict[str, type[Policy]] = {policy.name: policy for policy in (Raising, KMax, Skyband)}


def make_policy(name: str) -> Policy:
    """The policy of that name."""
    if name not in POLICIES:
        raise InvalidInput(f"refill is {name!r}; it is one of {', '.join(sorted(POLICIES))}", column="refill")
    return POLICIES[name]()
