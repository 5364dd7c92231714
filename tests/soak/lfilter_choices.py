"""A script, not a test: times say whether `lfilter` chooses well. `python tests/soak/lfilter_choices.py A 1000000`

For each group of messages: microseconds a message of `lfilter`, its parts and `rt++-tree` (batches, the best of a few
rounds in turn), and how often the way chosen is right among messages where trie and quadtree differ more than twofold.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.bench.corpus import MadeUp, message_group
from nearcast.bench.runner import filled_store
from nearcast.bench.subscriptions import message_batch
from nearcast.bench.workload import GROUPS, PRESETS
from nearcast.matching.lfilter.search import BY_CELLS, BY_TRIE, CHEAPEST, WAYS
from nearcast.matching.method import Method
from nearcast.matching.variant import variant_of
from nearcast.model import MessageBatch

METHODS = ("lfilter", "mbr-trie", "pt-quadtree", "rt++-tree", "mbr-trie probe=tokens", "mbr-trie probe=trie")
ROUNDS = 5
NEAR_ENOUGH = 1.2  # a way is right that takes at most so much more than the better one


def cpu_of(method: Method, messages: MessageBatch) -> float:
    started = time.process_time()
    method.match(messages)
    return (time.process_time() - started) / messages.size * 1e6


def times_of(methods: dict[str, Method], messages: MessageBatch) -> dict[str, float]:
    best = dict.fromkeys(methods, np.inf)
    for _ in range(ROUNDS):
        for name, method in methods.items():
            best[name] = min(best[name], cpu_of(method, messages))
    return best


def choices(method: Method, messages: MessageBatch) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds by way and message, and the way that each message takes."""
    single = [messages.part(k, k + 1) for k in range(messages.size)]
    times = np.full((len(WAYS), messages.size), np.inf)
    for way in range(len(WAYS)):
        method._way = way  # type: ignore[attr-defined]
        for _ in range(ROUNDS):
            times[way] = np.minimum(times[way], [cpu_of(method, message) for message in single])
    method._way = CHEAPEST  # type: ignore[attr-defined]
    taken = []
    for message in single:
        before = method.choices.copy()  # type: ignore[attr-defined]
        method.match(message)
        taken.append(int(np.argmax((method.choices - before)[:, 0])))  # type: ignore[attr-defined]
    return times, np.array(taken)


def main(base: str, n: int, n_messages: int) -> None:
    workload = PRESETS[base].but(subscriptions=n)
    corpus = MadeUp(workload)
    store = filled_store(corpus, workload)
    methods = {name: variant_of(name).make(store, workload.geometry) for name in METHODS}
    for method in methods.values():
        method.build(store.live_rows())
    for group in GROUPS:
        messages = message_batch(message_group(corpus, workload, group, np.arange(n_messages)))
        best = times_of(methods, messages)
        times, taken = choices(methods["lfilter"], messages)
        two = np.sort(times[[BY_TRIE, BY_CELLS]], axis=0)
        clear = two[1] > 2 * two[0]
        right = times[taken, np.arange(len(taken))] <= NEAR_ENOUGH * two[0]
        told = "  ".join(f"{name} {value:.1f}" for name, value in best.items())
        ratio = best["lfilter"] / min(best["mbr-trie"], best["pt-quadtree"])
        share = f"right {right[clear].mean():.0%} of {clear.sum()}" if clear.any() else "no clear ones"
        taken_by = dict(zip(WAYS, np.bincount(taken, minlength=len(WAYS)).tolist(), strict=True))
        sys.stdout.write(f"{base} {group}: {told}\n  lfilter / better part {ratio:.2f}; {taken_by}; {share}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 60)
