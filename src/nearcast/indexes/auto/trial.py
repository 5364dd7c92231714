"""Trials: the expected cost of messages for each method, from samples of the rows.

Work is counted and weighed, not timed: timed trials of the same rows gave gains from 0.7 to 4.0.
"""

from __future__ import annotations

import math

import numpy as np

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.arrays.ragged import sorted_sets
from nearcast.geo.space import Space
from nearcast.indexes.auto.costs import nanoseconds, verification_ns
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import REGISTRY, find_method, make_method, method_names
from nearcast.matching.store import RowStore
from nearcast.model import NO_SHAPE, NO_TIME, MessageBatch

DEFAULT = "pyramid"
FEW = 64  # rows; with fewer all methods are quick
LEAST_ROWS, MOST_ROWS = (128, 512) if JIT_DISABLED else (4096, 65_536)  # of a sample
SHARE = 8  # one row in this many is sampled, within those limits
SMALLER = 4  # ratio of the two sample sizes, which show how work grows
MOST_MESSAGES = 16 if JIT_DISABLED else 128
FAR = 4.0  # a method this many times slower than the best on the smaller sample is not tried on the larger
ROWS_PER_MESSAGE = 4  # a made-up message holds the terms of four rows: 8 to 12 terms, as short messages have

Counts = tuple[float, float, float]
"""Nodes, candidates and hits."""


def candidates() -> list[str]:
    """The methods to choose from: those that state their costs."""
    return [name for name in method_names("match") if REGISTRY["match", name].cost_ns is not None]


def estimates(store: RowStore, space: Space, rows: np.ndarray, messages: MessageBatch, keep: str) -> dict[str, float]:
    """Expected nanoseconds a message over `rows`, by method: the default, `keep`, and those not far behind the best."""
    sizes = sample_sizes(len(rows))
    drawn = np.random.default_rng(len(rows)).choice(rows, sizes[-1], replace=False)
    counts: dict[str, list[Counts]] = {name: [] for name in candidates()}
    for size in sizes:
        sample = _sample(store, space, drawn[:size])
        for name, so_far in counts.items():
            so_far.append(count(name, sample, space, messages))
        costs = {name: _cost(name, messages, so_far[-1]) for name, so_far in counts.items()}
        limit = FAR * min(costs.values(), default=0.0)
        counts = {name: counts[name] for name in counts if name in (DEFAULT, keep) or costs[name] <= limit}
    whole = {name: _at(sizes, own, len(rows)) for name, own in counts.items()}
    n = max(1, messages.size)
    return {name: (_cost(name, messages, own) + verification_ns(store, own[2])) / n for name, own in whole.items()}


def _at(sizes: list[int], counts: list[Counts], n_rows: int) -> Counts:
    nodes, compared, hits = (extrapolated(sizes, list(each), n_rows) for each in zip(*counts, strict=True))
    return nodes, compared, hits


def count(name: str, store: RowStore, space: Space, messages: MessageBatch) -> Counts:
    """The work of a method over all rows of a store."""
    method = make_method(name, store, space, {})
    method.build(store.live_rows())
    work = method.match(checked_messages(messages, store.n_terms))[1]
    return work.nodes, work.candidates, work.matches


def _cost(name: str, messages: MessageBatch, counts: Counts) -> float:
    return nanoseconds(find_method("match", name), messages.size, len(messages.terms), counts)


def sample_sizes(n_rows: int) -> list[int]:
    """The sizes of the samples: all rows where they are few, otherwise a smaller and a larger sample."""
    largest = min(MOST_ROWS, max(LEAST_ROWS, n_rows // SHARE))
    return [n_rows] if n_rows <= largest else [largest // SMALLER, largest]


def extrapolated(sizes: list[int], counts: list[float], n_rows: int) -> float:
    """The count at `n_rows` rows: work grows with a power of the rows, between 0 and 1 (each row is compared)."""
    if len(sizes) == 1 or counts[1] == 0:
        return counts[-1]
    power = math.log(counts[1] / max(counts[0], 1e-9)) / math.log(sizes[1] / sizes[0])
    return counts[1] * math.pow(n_rows / sizes[1], min(1.0, max(0.0, power)))


def _sample(store: RowStore, space: Space, rows: np.ndarray) -> RowStore:
    batch, _ = store.batch(np.sort(rows))
    sample = RowStore(space)
    sample.add(batch._replace(shapes=np.full(batch.size, NO_SHAPE, np.int32)))  # methods see boxes only
    return sample


def made_up(store: RowStore, rows: np.ndarray) -> MessageBatch:
    """Messages of the terms of a few rows each, at the middle of the first one's box."""
    rng = np.random.default_rng(len(rows))  # seeded: the same rows make the same messages
    groups = rng.choice(rows, (MOST_MESSAGES, ROWS_PER_MESSAGE))
    batch, _ = store.batch(groups.ravel())
    starts = batch.term_starts[::ROWS_PER_MESSAGE]
    terms, starts = sorted_sets(batch.terms, starts)
    boxes = batch.boxes[::ROWS_PER_MESSAGE]
    middles = np.tile(boxes[:, :2] / 2 + boxes[:, 2:] / 2, 2)
    return MessageBatch(np.arange(len(middles)), terms, starts, middles, np.full(len(middles), NO_TIME))
