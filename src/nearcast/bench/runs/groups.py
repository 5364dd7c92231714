"""Matching one group of messages: all methods in turns, as batches, one message at a time, and by threads."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from nearcast.bench.runs.agreement import Disagreement, digest, require_agreement, sorted_hits
from nearcast.bench.runs.case import Methods, Record, Settings
from nearcast.bench.runs.timing import share_within, timed
from nearcast.matching.method import Method
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import Found, Hits, MessageBatch

TIMES_THE_MESSAGES = 16
"""The batch for threads has this many times the messages of the group: starting two threads took 0.25 ms, as long as
200 messages at 1.2 µs."""

_BLOCK = 50  # single messages of one method before the next has its turn: noise hits all alike, caches stay warm


def run_group(methods: Methods, messages: MessageBatch, settings: Settings, what: str) -> tuple[list[Record], Hits]:
    """The raw measurements of each method, and the answer of the method that had the most messages."""
    passes = settings.rounds + 1  # one pass checks the agreement
    batches = {name: _affordable(method, messages, settings, passes) for name, method in methods.items()}
    found: dict[str, Hits] = {}
    records: dict[str, Record] = {}
    for name, method in methods.items():
        hits, work = method.match(batches[name])
        found[name] = sorted_hits(hits)
        records[name] = {
            "method": name,
            "messages": batches[name].size,
            "terms": len(batches[name].terms),
            "work": {piece: int(count) for piece, count in work._asdict().items()},
            "digest": digest(found[name]),
            "rounds_cpu_s": {},  # by number of messages: the method's own number, and those of slower methods
            "singles_cpu_us": [],
        }
    require_agreement(found, what)
    _run_batches(methods, batches, settings, records)
    _run_singles(methods, batches, settings, records)
    return list(records.values()), max(found.values(), key=lambda hits: len(hits.starts))


def _affordable(
    method: Method | SubscriptionSet, messages: MessageBatch, settings: Settings, passes: int
) -> MessageBatch:
    """The first messages, as many as can be matched within the budget, so often. Single messages come on top."""
    n = share_within(lambda n: method.match(messages.part(0, n)), messages.size, settings.budget_s, passes)
    return messages.part(0, n)


def _run_batches(
    methods: Methods, batches: dict[str, MessageBatch], settings: Settings, records: dict[str, Record]
) -> None:
    sizes = sorted({batch.size for batch in batches.values()})
    # A new order each time: a method that follows a similar one finds its code in the caches.
    order = Random(settings.rounds)
    for _ in range(settings.rounds):
        for size in sizes:
            for name in order.sample(list(methods), len(methods)):
                if size <= batches[name].size:
                    _, took = timed(methods[name].match, batches[name].part(0, size))
                    records[name]["rounds_cpu_s"].setdefault(str(size), []).append(took.cpu_s)


def _run_singles(
    methods: Methods, batches: dict[str, MessageBatch], settings: Settings, records: dict[str, Record]
) -> None:
    for start in range(0, settings.singles, _BLOCK):
        for name, method in methods.items():
            for i in range(start, min(start + _BLOCK, settings.singles, batches[name].size)):
                _, took = timed(method.match, batches[name].part(i, i + 1))
                records[name]["singles_cpu_us"].append(round(took.cpu_s * 1e6, 3))


# -- threads


def run_threads(methods: Methods, messages: MessageBatch, settings: Settings, what: str) -> list[Record]:
    """Wall time of every round by number of threads: the matcher splits one batch, as in `index.match(..., threads=N)`.

    Raises Disagreement if the number of threads changes an answer.
    """
    threads = settings.threads
    sets = {label: _set_of(method) for label, method in methods.items()}
    batches = {}
    for label, live in sets.items():
        batches[label] = _affordable(live, messages, settings, (settings.rounds + 1) * len(threads))
        _require_same([live.match(batches[label], count) for count in threads], f"'{label}' on {what}", threads)
    walls: dict[str, dict[str, list[float]]] = {label: {str(count): [] for count in threads} for label in methods}
    for _ in range(settings.rounds):
        for count in threads:
            for label, live in sets.items():
                _, took = timed(live.match, batches[label], count)
                walls[label][str(count)].append(took.wall_s)
    return [{"method": label, "messages": batches[label].size, "wall_s": walls[label]} for label in methods]


def _set_of(method: Method) -> SubscriptionSet:
    """A set around a built method. All rows of the benchmark have terms, and each is one subscription."""
    made = SubscriptionSet(method.name, method.space)
    made.store, made.method = method.store, method
    made.publish()
    return made


def _require_same(found: list[Found], what: str, threads: Sequence[int]) -> None:
    for other, count in zip(found[1:], threads[1:], strict=True):
        if not (np.array_equal(found[0].starts, other.starts) and np.array_equal(found[0].ids, other.ids)):
            raise Disagreement(f"{what} finds other subscriptions with {count} threads than with {threads[0]}")
