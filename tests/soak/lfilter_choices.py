"""A script, not a test: times say whether `lfilter` chooses well. `python tests/soak/lfilter_choices.py A 1000000 2`

The last number is the seed of subscriptions and messages; the costs were fitted to others (lfilter_fit.py). For each
group of messages: microseconds a message of `lfilter`, its parts and `rt++-tree` (batches in turns, the lower quartile
of the rounds), and how often the way chosen is right among messages where trie and quadtree differ more than twofold.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from lfilter_clock import strategies_weighed, times_by_strategy

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.bench.runs.case import filled_store
from nearcast.bench.workloads.corpus import Corpus, SyntheticCorpus, message_group
from nearcast.bench.workloads.subscriptions import message_batch
from nearcast.bench.workloads.workload import GROUPS, PRESETS, Workload
from nearcast.indexes.lfilter import LFilter
from nearcast.indexes.lfilter.choice import BY_CELLS, BY_TRIE, STRATEGIES
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.matching.variant import variant_of
from nearcast.model import MessageBatch

METHODS = ("lfilter", "mbr-trie", "pt-quadtree", "rt++-tree", "mbr-trie probe=tokens", "mbr-trie probe=trie")
MESSAGES = {"short": 200, "long": 60}
ROUNDS = {"short": 40, "long": 15}
NEAR_ENOUGH = 1.2  # a strategy is right if it takes at most this many times the better one's time


def world(base: str, n: int, seed: int) -> tuple[Workload, Corpus, RowStore]:
    workload = PRESETS[base].but(subscriptions=n, seed=seed)
    corpus = SyntheticCorpus(workload)
    return workload, corpus, filled_store(corpus, workload)


def built(name: str, workload: Workload, store: RowStore) -> Method:
    method = variant_of(name).make(store, workload.geometry)
    method.build(store.live_rows())
    return method


def messages_of(group: str, workload: Workload, corpus: Corpus, store: RowStore) -> MessageBatch:
    numbers = np.arange(MESSAGES[group.split("-")[0]])
    return checked_messages(message_batch(message_group(corpus, workload, group, numbers)), store.n_terms)


def cpu_of(method: Method, messages: MessageBatch) -> float:
    started = time.process_time_ns()
    method.match(messages)
    return (time.process_time_ns() - started) / messages.size / 1e3


def times_of(methods: dict[str, Method], messages: MessageBatch, rounds: int) -> dict[str, float]:
    """Microseconds a message in a batch."""
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, method in methods.items():
            times[name].append(cpu_of(method, messages))
    return {name: float(np.percentile(own, 25)) for name, own in times.items()}


def strategies_taken(method: LFilter, messages: MessageBatch) -> np.ndarray:
    """In one batch: all messages take the trie at once, or each is weighed for itself."""
    before = method.choices[BY_TRIE, 0]
    method.match(messages)
    if method.choices[BY_TRIE, 0] - before == messages.size:
        return np.full(messages.size, BY_TRIE)
    return strategies_weighed(method, messages)


def format_choices(method: LFilter, messages: MessageBatch) -> str:
    times, taken = times_by_strategy(method, messages), strategies_taken(method, messages)
    two = np.sort(times[[BY_TRIE, BY_CELLS]], axis=0)
    clear = two[1] > 2 * two[0]
    right = times[taken, np.arange(len(taken))] <= NEAR_ENOUGH * two[0]
    share = f"right {right[clear].mean():.0%} of {clear.sum()}" if clear.any() else "no clear ones"
    taken_by = dict(zip(STRATEGIES, np.bincount(taken, minlength=len(STRATEGIES)).tolist(), strict=True))
    mean = dict(zip(STRATEGIES, times.mean(axis=1).round(1).tolist(), strict=True))
    return f"{taken_by}; alone {mean}; {share}"


def main(base: str, n: int, seed: int) -> None:
    workload, corpus, store = world(base, n, seed)
    methods = {name: built(name, workload, store) for name in METHODS}
    for group in GROUPS:
        messages = messages_of(group, workload, corpus, store)
        times = times_of(methods, messages, ROUNDS[group.split("-")[0]])
        report = "  ".join(f"{name} {value:.1f}" for name, value in times.items())
        ratio = times["lfilter"] / min(times["mbr-trie"], times["pt-quadtree"])
        probe = times["mbr-trie"] / min(times["mbr-trie probe=tokens"], times["mbr-trie probe=trie"])
        sys.stdout.write(f"{base} {n} seed {seed} {group}: {report}\n  lfilter / better part {ratio:.2f}; ")
        sys.stdout.write(f"probe by cost / better {probe:.2f}; {format_choices(methods['lfilter'], messages)}\n")  # type: ignore[arg-type]
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
