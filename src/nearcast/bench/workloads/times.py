"""Times of messages, and expiry times of subscriptions, in workloads where some subscriptions expire.

Messages come within one day. A subscription that expires does so on the day before, on that day or on the day after.
"""

from __future__ import annotations

import numpy as np

from nearcast.bench.workloads.random_numbers import stream_key, units
from nearcast.bench.workloads.subscriptions import source_numbers
from nearcast.bench.workloads.workload import Workload
from nearcast.model import NEVER

FIRST_MESSAGE = 1_704_067_200_000_000
"""The earliest time of a message: 1 January 2024, in microseconds since 1970."""
DAY = 86_400_000_000


def message_times(workload: Workload, numbers: np.ndarray) -> np.ndarray | None:
    """int64[n]: the times of messages by number; None if no subscription expires."""
    if workload.expiring_share == 0:
        return None
    return FIRST_MESSAGE + (units(stream_key(workload.seed, "times"), numbers) * DAY).astype(np.int64)


def expiry_times(workload: Workload, first: int, n: int) -> np.ndarray:
    """int64[n]: when each of the subscriptions from number `first` on expires, or NEVER."""
    if workload.expiring_share == 0:
        return np.full(n, NEVER)
    sources = source_numbers(workload, first, first + n)
    expires = units(stream_key(workload.seed, "expiring"), sources) < workload.expiring_share
    days = 3 * units(stream_key(workload.seed, "expires"), sources) - 1
    return np.where(expires, FIRST_MESSAGE + (days * DAY).astype(np.int64), NEVER)
