"""Ranked subscriptions by people who write such messages, and a world in which a few words are everywhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark.drawn_tables import drawn

RANK_PARAMS = [(0.5, 0.9), (0.2, 0.7), (0.2, 0.5), (0.5, 0.4)]
"""(alpha, threshold): place is needed; most words are, wherever; half of them; either place or words."""


def ranked(subscriptions: pa.Table, rank_params: list[tuple[float, float]], share: float = 1.0) -> pa.Table:
    """The same subscriptions; a share of them is ranked, with these (alpha, threshold) in turn."""
    n = subscriptions.num_rows
    is_ranked = np.random.default_rng(n).random(n) < share
    alphas, thresholds = np.array(rank_params)[np.arange(n) % len(rank_params)].T
    added = {
        "kind": pa.array(np.where(is_ranked, "rank", "match")),
        "alpha": pa.array(alphas, mask=~is_ranked),
        "threshold": pa.array(thresholds, mask=~is_ranked),
    }
    for name, values in added.items():
        subscriptions = subscriptions.append_column(name, values)
    return subscriptions


def real_tables(messages: pa.Table, n: int) -> tuple[pa.Table, pa.Table]:
    """(subscriptions of both kinds and with all rank parameters, messages)."""
    return ranked(drawn(messages, n, (0.003, 0.3)), RANK_PARAMS, 0.7), messages


def skewed_messages(seed: int, n: int, n_words: int = 4_000) -> pa.Table:
    """5 to 20 words by Zipf's law: the first are in most messages. Half of the places are in one town."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, n_words + 1)
    counts = rng.integers(5, 21, n)
    words = np.split(rng.choice(n_words, counts.sum(), p=chances / chances.sum()), np.cumsum(counts)[:-1])
    places = np.where(rng.random((n, 1)) < 0.5, rng.normal(0, 0.5, (n, 2)), rng.uniform(-80, 80, (n, 2)))
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    return pa.table({"id": np.arange(n), "text": texts, "lon": places[:, 0], "lat": places[:, 1]})
