"""The time of each message of a batch by each way of `lfilter`, from inside a kernel: a call from Python takes longer
than most messages, and never the same.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from nearcast.arrays.jit import intrinsic, ir, kernel, types
from nearcast.indexes.lfilter import LFilter
from nearcast.indexes.lfilter.choice import CHEAPEST, WAYS
from nearcast.indexes.lfilter.prune import Both, both_of
from nearcast.indexes.lfilter.search import search, search_all
from nearcast.model import MessageBatch
from nearcast.structures.trie.probe import trie_view

ROUNDS = 15


@intrinsic
def _cycles(typingctx: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        counter = builder.module.declare_intrinsic("llvm.readcyclecounter", [], ir.FunctionType(ir.IntType(64), []))
        return builder.call(counter, [])

    return types.int64(), generate


@kernel
def cycles_now():  # type: ignore[no-untyped-def]
    return _cycles()


@kernel
def _timed(both, messages, model, tools, way, told, out):  # type: ignore[no-untyped-def]
    starts = np.zeros(2, np.int64)
    for m in range(len(messages.boxes)):
        one = MessageBatch(
            messages.ids[m : m + 1],
            messages.terms,
            messages.term_starts[m : m + 2],
            messages.boxes[m : m + 1],
            messages.times[m : m + 1],
        )
        before = _cycles()
        search_all(both, one, model, tools, way, starts, told)
        out[m] = _cycles() - before


def times_by_way(method: LFilter, messages: MessageBatch) -> np.ndarray:
    """Microseconds by way and message: the lower quartile of the rounds, ways in turn."""
    both, model = _both(method), method._loads.model
    times, told = np.empty((len(WAYS), ROUNDS, messages.size), np.int64), np.zeros((len(WAYS), 3))
    for turn in range(-1, ROUNDS):  # the first one warms up
        for way in range(len(WAYS)):
            _timed(both, messages, model, method._tools(), way, told, times[way, turn])
    return np.asarray(np.percentile(times, 25, axis=1) / _cycles_a_microsecond())


def ways_weighed(method: LFilter, messages: MessageBatch) -> np.ndarray:
    """The way of each message once the quadtree is open for a batch."""
    both, taken = _both(method), []
    for k in range(messages.size):
        *_, told = search(both, messages.part(k, k + 1), method._loads.model, method._tools(), CHEAPEST)
        taken.append(int(np.argmax(told[:, 0])))
    return np.array(taken)


def _both(method: LFilter) -> Both:
    trie, rows = method.trie.arrays, method.store.arrays
    return both_of(trie_view(trie, method.trie.places, rows.boxes), trie, method.quadtree.arrays, rows)


def _cycles_a_microsecond() -> float:
    cycles, started = cycles_now(), time.perf_counter_ns()
    while time.perf_counter_ns() - started < 50_000_000:
        pass
    return float((cycles_now() - cycles) / (time.perf_counter_ns() - started) * 1e3)
