"""Times each message of a batch by each strategy of `lfilter`, from inside a kernel.

A call from Python takes longer than most messages, and its time varies.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from nearcast.arrays.jit import intrinsic, ir, kernel, types
from nearcast.indexes.lfilter import LFilter
from nearcast.indexes.lfilter.choice import CHEAPEST, STRATEGIES
from nearcast.indexes.lfilter.search import search_all
from nearcast.model import MessageBatch

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
def _timed(view, messages, model, scratch, strategy, tally, out):  # type: ignore[no-untyped-def]
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
        search_all(view, one, model, scratch, strategy, starts, tally)
        out[m] = _cycles() - before


def times_by_strategy(method: LFilter, messages: MessageBatch) -> np.ndarray:
    """Microseconds by strategy and message: the lower quartile of the rounds, strategies in turn."""
    view, model = method._view(), method._loads.model
    times, tally = np.empty((len(STRATEGIES), ROUNDS, messages.size), np.int64), np.zeros((len(STRATEGIES), 3))
    with method._scratch.sized(method.store.n_terms, len(method.trie.ranks)) as scratch:
        for turn in range(-1, ROUNDS):  # the first one warms up
            for strategy in range(len(STRATEGIES)):
                _timed(view, messages, model, scratch, strategy, tally, times[strategy, turn])
    return np.asarray(np.percentile(times, 25, axis=1) / _cycles_a_microsecond())


def strategies_weighed(method: LFilter, messages: MessageBatch) -> np.ndarray:
    """The strategy of each message once the quadtree is open for a batch."""
    view, taken = method._view(), []
    with method._scratch.sized(method.store.n_terms, len(method.trie.ranks)) as scratch:
        for k in range(messages.size):
            one, starts, tally = messages.part(k, k + 1), np.zeros(2, np.int64), np.zeros((len(STRATEGIES), 3))
            search_all(view, one, method._loads.model, scratch, CHEAPEST, starts, tally)
            taken.append(int(np.argmax(tally[:, 0])))
    return np.array(taken)


def _cycles_a_microsecond() -> float:
    cycles, started = cycles_now(), time.perf_counter_ns()
    while time.perf_counter_ns() - started < 50_000_000:
        pass
    return float((cycles_now() - cycles) / (time.perf_counter_ns() - started) * 1e3)
