"""Throughput by threads: the matcher splits one batch over threads, as in `index.match(..., threads=N)`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Methods, Record, Settings
from nearcast.bench.runs.timing import share_within, timed_all_threads
from nearcast.matching.method import Method
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import Found, MessageBatch

TIMES_THE_MESSAGES = 16
"""The batch has this many times the messages of the group: starting two threads took 0.25 ms, as long as 200 messages
at 1.2 µs."""


def run_threads(methods: Methods, messages: MessageBatch, settings: Settings, what: str) -> list[Record]:
    """Wall time of every round by number of threads. Raises Disagreement if the number of threads changes an answer."""
    threads = settings.threads
    sets = {label: _set_of(method) for label, method in methods.items()}
    batches = {}
    for label, live in sets.items():
        batches[label] = _affordable(live, messages, settings)
        _require_same([live.match(batches[label], count) for count in threads], f"'{label}' on {what}", threads)
    walls: dict[str, dict[str, list[float]]] = {label: {str(count): [] for count in threads} for label in methods}
    for _ in range(settings.rounds):
        for count in threads:
            for label, live in sets.items():
                _, took = timed_all_threads(live.match, batches[label], count)
                walls[label][str(count)].append(took.wall_s)
    return [{"method": label, "messages": batches[label].size, "wall_s": walls[label]} for label in methods]


def _set_of(method: Method) -> SubscriptionSet:
    """A set around a built method. All rows of the benchmark have terms, and each is one subscription."""
    made = SubscriptionSet(method.name, method.space)
    made.store, made.method = method.store, method
    return made


def _affordable(live: SubscriptionSet, messages: MessageBatch, settings: Settings) -> MessageBatch:
    passes = (settings.rounds + 1) * len(settings.threads)
    n = share_within(lambda n: live.match(messages.part(0, n)), messages.size, settings.budget_s, passes)
    return messages.part(0, n)


def _require_same(found: list[Found], what: str, threads: Sequence[int]) -> None:
    for other, count in zip(found[1:], threads[1:], strict=True):
        if not (np.array_equal(found[0].starts, other.starts) and np.array_equal(found[0].ids, other.ids)):
            raise Disagreement(f"{what} finds other subscriptions with {count} threads than with {threads[0]}")
