"""The tables of a stream of kind `top`: subscriptions, weights, the messages that fill the window, and those after."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.bench.streams.sources import Source, stream_subscriptions
from nearcast.bench.streams.stream_workload import StreamWorkload
from nearcast.bench.workloads.random_numbers import table_generator
from nearcast.bench.workloads.tables import messages_table, subscriptions_table
from nearcast.bench.workloads.times import FIRST_MESSAGE

_SECOND = 1_000_000
_BURSTS_BEFORE = 300
"""Bursts that come and expire before the first subscription, so that a policy that learns rates has seen both."""


class TopStream(NamedTuple):
    subscriptions: pa.Table
    weights: pa.Table
    before: pa.Table  # messages that fill the window
    messages: pa.Table  # that are measured
    bursts: np.ndarray  # int64[n+1]  where each burst of `messages` begins
    first_second: int  # of the bursts
    window: timedelta
    space: list[float] | None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a TopK besides its method."""
        return {"window": self.window, "weights": self.weights, "space": self.space}

    def moment(self, burst: int) -> int:
        """The time of a burst, in microseconds."""
        return FIRST_MESSAGE + (self.first_second + burst) * _SECOND


def top_stream(workload: StreamWorkload, source: Source, rounds: int) -> TopStream:
    """The stream: at least one burst for each round."""
    rng = table_generator(workload.seed, "top")
    filling = workload.period_s + min(workload.period_s, _BURSTS_BEFORE)
    measured = max(rounds, workload.messages // workload.burst)
    if workload.uneven:
        sizes = rng.integers(0, 2 * workload.burst + 1, filling + measured)
    else:
        sizes = np.full(filling + measured, workload.burst)
    seconds = np.repeat(np.arange(len(sizes)), sizes)
    drawn = source.messages(np.arange(len(seconds)))
    words = source.corpus.words()
    table = messages_table(drawn, words, "short-point", 0, FIRST_MESSAGE + seconds * _SECOND)
    n_before = int(sizes[:filling].sum())
    bursts = np.concatenate([[0], np.cumsum(sizes[filling:])]).astype(np.int64)
    weights = _weights(drawn.terms[: drawn.starts[n_before]], n_before, words)
    space = None if workload.space is None else list(workload.space)
    parts = (table.slice(0, n_before), table.slice(n_before), bursts, filling)
    return TopStream(
        _subscriptions(workload, source, rng), weights, *parts, timedelta(seconds=workload.period_s), space
    )


def _weights(terms: np.ndarray, n_messages: int, words: pa.Array) -> pa.Table:
    """ln(1 + messages / messages with the word), over the messages that fill the window."""
    frequencies = np.bincount(terms, minlength=len(words))
    return pa.table({"token": words, "weight": np.log1p(n_messages / np.maximum(frequencies, 1))})


def _subscriptions(workload: StreamWorkload, source: Source, rng: np.random.Generator) -> pa.Table:
    drawn = stream_subscriptions(source, workload)
    table = subscriptions_table(drawn, source.corpus.words()).select(["id", "tokens"])
    low, high = workload.alpha
    columns = {
        "x": pa.array(drawn.boxes[:, 0].copy()),
        "y": pa.array(drawn.boxes[:, 1].copy()),
        "k": pa.array(np.full(drawn.size, workload.k), pa.int32()),
        "alpha": pa.array(rng.uniform(low, high, drawn.size)),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table
