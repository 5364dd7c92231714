"""Messages and subscriptions of kind `top`: drawn at random, or from a messages table."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.ragged import take
from nearcast.errors import InvalidInput
from nearcast.geo.space import Space
from nearcast.tables import Dialect, as_arrow
from nearcast.tables.messages import read_message_columns
from nearcast.text.analyser import Analyser

UNIT = (0.0, 0.0, 1.0, 1.0)
N_WORDS = 500_000
N_CLUSTERS = 2_000
MOST_WORDS = 5
ALPHAS = (0.1, 0.9)


class TopSizes(NamedTuple):
    subscriptions: int
    window: int
    messages: int
    k: int
    seed: int


class TopWorkload(NamedTuple):
    """Messages fill the window first; the rest arrives. `space` is None for lon/lat."""

    messages: pa.Table
    subscriptions: pa.Table
    weights: pa.Table
    space: tuple[float, ...] | None


def make_workload(sizes: TopSizes, source: Path | None) -> TopWorkload:
    """A workload of these sizes. Raises InvalidInput if a table has too few messages."""
    rng, n = np.random.default_rng(sizes.seed), sizes.window + sizes.messages
    tokens, places = _drawn(rng, n) if source is None else _read(source, n)
    columns = {"id": pa.array(np.arange(n)), "tokens": tokens, "x": places[:, 0], "y": places[:, 1]}
    words, starts = list_parts(tokens)
    counts = pc.value_counts(words)
    weights = np.log1p(n / counts.field("counts").to_numpy())
    return TopWorkload(
        pa.table(columns),
        _subscriptions(rng, sizes, words, starts, places),
        pa.table({"token": counts.field("values"), "weight": weights}),
        UNIT if source is None else None,
    )


def _drawn(rng: np.random.Generator, n: int) -> tuple[pa.Array, np.ndarray]:
    """Zipf words, 6 to 12 a message, and places in clusters of many sizes."""
    shares = np.cumsum(1.0 / np.arange(1, N_WORDS + 1))
    starts = np.concatenate([[0], np.cumsum(rng.integers(6, 13, n))])
    words = np.searchsorted(shares / shares[-1], rng.random(starts[-1])).astype(np.int32)
    names = pa.array([f"w{word}" for word in range(N_WORDS)])
    middles, spreads = rng.random((N_CLUSTERS, 2)), rng.exponential(0.01, N_CLUSTERS) + 0.001
    popular = 1.0 / np.arange(1, N_CLUSTERS + 1) ** 0.8
    own = rng.choice(N_CLUSTERS, n, p=popular / popular.sum())
    places = np.clip(middles[own] + rng.normal(size=(n, 2)) * spreads[own, None], 0.0, 1.0)
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), names.take(pa.array(words))), places


def _read(source: Path, n: int) -> tuple[pa.Array, np.ndarray]:
    read = read_message_columns(as_arrow(source), Dialect(Analyser(), Space.of(None), "raise"))
    tokens, boxes = read.tokens, read.boxes
    kept = np.flatnonzero(pc.list_value_length(tokens).fill_null(0).to_numpy(zero_copy_only=False) > 0)
    if len(kept) < n:
        raise InvalidInput(f"{source} has {len(kept):,} messages with words; window and messages are {n:,} in all")
    return tokens.take(pa.array(kept[:n])), np.ascontiguousarray(boxes[kept[:n], :2])


def _subscriptions(
    rng: np.random.Generator, sizes: TopSizes, words: pa.Array, starts: np.ndarray, places: np.ndarray
) -> pa.Table:
    """One to five words of a message, at its place."""
    n = sizes.subscriptions
    sources = rng.integers(0, len(starts) - 1, n)
    wanted = rng.integers(1, MOST_WORDS + 1, n)
    at, ends = take(np.arange(len(words)), starts.astype(np.int64), sources)
    order = np.lexsort((rng.random(len(at)), np.repeat(np.arange(n), np.diff(ends))))
    rank = np.arange(len(at)) - np.repeat(ends[:-1], np.diff(ends))
    kept = rank < np.repeat(wanted, np.diff(ends))
    offsets = np.concatenate([[0], np.cumsum(np.minimum(wanted, np.diff(ends)))])
    return pa.table(
        {
            "id": np.arange(n),
            "tokens": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words.take(pa.array(at[order][kept]))),
            "x": places[sources, 0],
            "y": places[sources, 1],
            "k": np.full(n, sizes.k),
            "alpha": rng.uniform(*ALPHAS, n),
        }
    )
