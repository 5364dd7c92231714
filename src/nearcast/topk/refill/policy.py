"""Policies: how many messages a refill fetches, and how many a buffer keeps.

`raising`   ours: fetches 2 k. A full buffer drops dominated messages and raises its theta. Its size has a limit.
`kmax`      keeps between k and 3 k messages, dominated or not (60 at k = 20, as the paper tuned it).
`skyband`   keeps every undominated message that scores at least 0.95 of the k-th score at the refill.
`cskyband`  fetches the number of messages that minimises the cost model; keeps the undominated ones.
"""

from __future__ import annotations

import math
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
        """int32[n,2]: a buffer with more entries than [0] is full; it then keeps [1].

        Policies that count dominators use it for complete buffers alone: those get a cut as after a refill.
        """
        depths = np.maximum(self.depths(ks), 2 * ks)
        kept = [skyband_size(int(k), int(n)) for k, n in zip(ks, depths, strict=True)]
        most = [skyband_size(int(k), 2 * int(n)) + 1 for k, n in zip(ks, depths, strict=True)]
        return np.ceil(np.array([most, kept]).reshape(2, -1).T).clip(max=NO_LIMIT).astype(np.int32)

    def learn(self, work: int, n_refills: int) -> None:
        """Take note of the work of some refills, in entries of a buffer that are moved."""
        return None

    def observe(self, n_arrived: int, n_expired: int) -> None:
        """Take note of the messages that arrived and expired in a step."""
        return None

    def state(self) -> dict[str, float]:
        """What it has learned, for `restore`."""
        return {}

    def restore(self, state: dict[str, float]) -> None:
        """Go on with what another one of this name has learned; an empty state changes nothing."""
        return None


class Raising(Policy):
    name = "raising"
    depth = 2.0
    """With 2.5 a fresh buffer takes 31 bytes more at k = 20, and map notes need a quarter fewer refills."""
    kept_of = 2.0
    """With 2, 3 and 4 buffers have 25, 30 and 34 messages on map notes; 2 keeps a subscription under 400 bytes."""

    def depths(self, ks: np.ndarray) -> np.ndarray:
        return np.asarray(np.ceil(self.depth * ks), np.int64)

    def sizes(self, ks: np.ndarray) -> np.ndarray:
        """Keeps the k-skyband that `kept_of` k messages are expected to have; full at a third more."""
        kept = np.ceil(ks * (1.0 + np.log(self.kept_of)))
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


class CostSkyband(Policy):
    """Fetches the n messages that minimise upkeep + refills per step of the window.

    Of n messages that reach theta, k (1 + ln(n / k)) are expected in the k-skyband (the paper leaves the 1 out). The
    share n / |W| of all messages reaches theta, so a step costs

        n / |W| * (size of the skyband + cost of a refill / steps of a walk from n down to k - 1)

    The best n does not depend on |W|, and no history of scores is needed: theta is the score of the n-th best at the
    refill. Costs are in entries of a buffer that are moved. In a window of a period, arrivals and expiries differ in
    number: the steps of the walk are then summed up for their shares, with a barrier at 2 n as in the paper.
    """

    name = "cskyband"
    counts_dominators = True

    def __init__(self) -> None:
        self._cost = 10_000.0  # of a refill, a moving average that begins near what 100 µs are
        self._arrival_share = 0.5
        self._depth_of: dict[int, int] = {}
        self._made_for = (0.0, 0.0)

    def depths(self, ks: np.ndarray) -> np.ndarray:
        cost, share = self._made_for
        if abs(self._cost - cost) > 0.2 * cost or abs(self._arrival_share - share) > 0.02:
            self._made_for, self._depth_of = (self._cost, self._arrival_share), {}
        return np.array([self._depth(int(k)) for k in ks], np.int64)

    def _depth(self, k: int) -> int:
        if k not in self._depth_of:
            tried = np.unique(np.ceil(k * np.geomspace(1.0, 20.0, 60)).astype(np.int64))
            self._depth_of[k] = int(min(tried.tolist(), key=lambda n: step_cost(k, n, self._cost, self._arrival_share)))
        return self._depth_of[k]

    def learn(self, work: int, n_refills: int) -> None:
        weight = min(1.0, 0.02 * n_refills)
        self._cost += weight * (work / max(1, n_refills) - self._cost)

    def observe(self, n_arrived: int, n_expired: int) -> None:
        total = n_arrived + n_expired
        if total:
            self._arrival_share += min(1.0, total / 1000) * (n_arrived / total - self._arrival_share)

    def state(self) -> dict[str, float]:
        return {"cost": self._cost, "arrival_share": self._arrival_share}

    def restore(self, state: dict[str, float]) -> None:
        self._cost = state.get("cost", self._cost)
        self._arrival_share = state.get("arrival_share", self._arrival_share)


def step_cost(k: int, n: int, refill_cost: float, arrival_share: float) -> float:
    """What a step costs, times |W|, if a refill fetches n messages."""
    return n * (skyband_size(k, n) + refill_cost / walk_steps(k, n, arrival_share))


def skyband_size(k: int, n: int) -> float:
    """The expected k-skyband of n messages whose scores do not depend on time."""
    return k * (1.0 + math.log(n / k)) if n > k else float(n)


def walk_steps(k: int, n: int, arrival_share: float) -> float:
    """Expected steps of a walk from n to k - 1 that goes up with this probability, with a barrier at 2 n."""
    if arrival_share == 0.5:  # Eq. 12
        return float(2 * (n - k + 1) * n + (n - k + 1) * (n - k + 2))
    down = min(max(1.0 - arrival_share, 1e-3), 1.0)
    steps, total = 1.0 / down, 0.0  # from i to i - 1, beginning at the barrier
    for i in range(2 * n - 1, k - 1, -1):
        steps = (1.0 + (1.0 - down) * steps) / down
        if i <= n:
            total += steps
        if steps > 1e12:
            return 1e12
    return total


POLICIES: dict[str, type[Policy]] = {policy.name: policy for policy in (Raising, KMax, Skyband, CostSkyband)}


def make_policy(name: str) -> Policy:
    """The policy of that name."""
    if name not in POLICIES:
        raise InvalidInput(f"refill is {name!r}; it is one of {', '.join(sorted(POLICIES))}", column="refill")
    return POLICIES[name]()
