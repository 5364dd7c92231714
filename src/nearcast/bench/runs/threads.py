"""Throughput by threads: one batch through the matcher, cut over threads as `index.match(..., threads=N)` cuts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.measure import share_within, timed_all_threads
from nearcast.matching.matcher import Matcher
from nearcast.matching.method import Method
from nearcast.model import Found, MessageBatch

TIMES_THE_MESSAGES = 16
"""Messages in a batch, for each of the group's: starting two threads took 0.25 ms, 200 messages' worth at 1.2 µs."""

Plan = tuple[Sequence[int], int, float]
"""Numbers of threads, rounds, seconds of CPU time for each method."""


def run_threads(methods: dict[str, Method], messages: MessageBatch, plan: Plan, what: str) -> list[dict[str, Any]]:
    """Wall time of every round by number of threads. Raises Disagreement where threads change what is found."""
    threads, rounds, budget_s = plan
    matchers = {label: _around(method) for label, method in methods.items()}
    batches = {}
    for label, matcher in matchers.items():
        batches[label] = _share(matcher, messages, budget_s, (rounds + 1) * len(threads))
        _require_same([matcher.match(batches[label], count) for count in threads], f"'{label}' on {what}", threads)
    walls: dict[str, dict[str, list[float]]] = {label: {str(count): [] for count in threads} for label in methods}
    for _ in range(rounds):
        for count in threads:
            for label, matcher in matchers.items():
                _, took = timed_all_threads(matcher.match, batches[label], count)
                walls[label][str(count)].append(took.wall_s)
    return [{"method": label, "messages": batches[label].size, "wall_s": walls[label]} for label in methods]


def _around(method: Method) -> Matcher:
    """A matcher over a method that is built already: the benchmark's rows all have terms, and owners of their own."""
    made = Matcher(method.name, method.space)
    made.store, made.method = method.store, method
    return made


def _share(matcher: Matcher, messages: MessageBatch, budget_s: float, rounds: int) -> MessageBatch:
    n = share_within(lambda n: matcher.match(messages.part(0, n)), messages.size, budget_s, rounds)
    return messages.part(0, n)


def _require_same(found: list[Found], what: str, threads: Sequence[int]) -> None:
    for other, count in zip(found[1:], threads[1:], strict=True):
        if not (np.array_equal(found[0].starts, other.starts) and np.array_equal(found[0].ids, other.ids)):
            raise Disagreement(f"{what} finds other subscriptions with {count} threads than with {threads[0]}")
