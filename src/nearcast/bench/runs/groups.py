"""Matching one group of messages: all methods in turns, as batches and one message at a time."""

from __future__ import annotations

from random import Random

from nearcast.bench.runs.agreement import digest, require_agreement, sorted_hits
from nearcast.bench.runs.case import Methods, Record, Settings
from nearcast.bench.runs.timing import share_within, timed
from nearcast.matching.method import Method
from nearcast.model import Hits, MessageBatch

_BLOCK = 50  # single messages of one method before the next has its turn: noise hits all alike, caches stay warm


def run_group(methods: Methods, messages: MessageBatch, settings: Settings, what: str) -> tuple[list[Record], Hits]:
    """The raw measurements of each method, and the answer of the method that had the most messages."""
    batches = {name: _affordable(method, messages, settings) for name, method in methods.items()}
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


def _affordable(method: Method, messages: MessageBatch, settings: Settings) -> MessageBatch:
    """The first messages, as many as the method can match within its budget. The single messages come on top."""
    passes = settings.rounds + 1  # one pass checks the agreement
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
