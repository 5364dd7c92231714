"""Timing: CPU and wall time of calls, medians and percentiles, and how many messages fit into a budget."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_TRIAL_MESSAGES = 8
_SHORT_TRIAL_S, _MORE_TRIALS = 0.02, 4


class Timed(NamedTuple):
    """How long a call took."""

    cpu_s: float  # of this thread
    wall_s: float
    all_threads_s: float  # CPU time of all threads: Arrow and builds may use several


def timed(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, Timed]:
    """The result of a call, and its time. The thread's clock is read last and first: it times the shortest calls."""
    process, wall, cpu = time.process_time(), time.perf_counter(), time.thread_time()
    result = call(*args, **kwargs)
    cpu_s, wall_s = time.thread_time() - cpu, time.perf_counter() - wall
    return result, Timed(cpu_s, wall_s, time.process_time() - process)


def timed_one_by_one(
    call: Callable[..., T], arguments: Sequence[tuple[Any, ...]], clock: Callable[[], float]
) -> tuple[list[T], list[float]]:
    """The results of the calls, and the microseconds of each.

    Only one clock is read: reading the CPU clock is a system call, which made calls of 8 us look like 10.
    """
    results, taken = [], []
    for each in arguments:
        start = clock()
        result = call(*each)
        stop = clock()
        results.append(result)
        taken.append(round((stop - start) * 1e6, 3))
    return results, taken


def median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed."""
    if not values:
        return None
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def messages_within(budget_s: float, rounds: int, per_message_s: float, available: int) -> int:
    """The number of messages that fit into the budget over all rounds: all, or half, or a quarter ..., at least one.

    Halving keeps the number of different sizes small. Two methods are compared on the messages that both had, so every
    size is timed.
    """
    fitting = budget_s / (rounds * max(per_message_s, 1e-9))
    n = available
    while n > fitting and n > 1:
        n = (n + 1) // 2
    return n


def share_within(match: Callable[[int], object], available: int, budget_s: float, rounds: int) -> int:
    """The number of messages that fit into the budget, estimated by a trial. `match(n)` matches the first n."""
    trial = min(_TRIAL_MESSAGES, available)
    match(trial)  # warms up
    took_s = timed(match, trial)[1].all_threads_s
    if took_s < _SHORT_TRIAL_S:  # after one short trial `pyramid` once got 1,000 of 16,000 messages, its twin 4,000
        took_s = min(took_s, *(timed(match, trial)[1].all_threads_s for _ in range(_MORE_TRIALS)))
    return messages_within(budget_s, rounds, took_s / max(1, trial), available)
