"""Tables with many collisions for kinds whose results live on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

WORDS = list("abcde")
TIME = pa.timestamp("us", "UTC")


def by_subscription(changes: Iterable[pa.Table]) -> dict[Any, list[tuple[Any, ...]]]:
    """The changes of each subscription, in their order."""
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for table in changes:
        for row in table.to_pylist():
            found.setdefault(row["subscription"], []).append((row["message"], row["change"], row["score"]))
    return found


def texts(rng: np.random.Generator, n: int, most: int) -> list[str]:
    return [" ".join(rng.choice(WORDS, rng.integers(1, most))) for _ in range(n)]


def places(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.integers(-5, 5, n).astype(float), "y": rng.integers(-5, 5, n).astype(float)}


def messages_of(rng: np.random.Generator, n: int, first_id: int = 0) -> pa.Table:
    times = np.sort(rng.integers(0, 60 * n, n)) * 1_000_000
    return pa.table(
        {
            "id": np.arange(first_id, first_id + n),
            "text": texts(rng, n, 5),
            **places(rng, n),
            "time": pa.array(times, TIME),
        }
    )


def top_subscriptions(rng: np.random.Generator, n: int) -> pa.Table:
    tokens = [text.split() for text in texts(rng, n, 4)]
    return pa.table(
        {
            "id": np.arange(n),
            "tokens": tokens,
            **places(rng, n),
            "k": rng.integers(1, 4, n),
            "alpha": rng.choice([0.0, 0.5, 1.0], n),
        }
    )


def pieces(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


def moving_tables(rng: np.random.Generator, n: int) -> pa.Table:
    corners = rng.integers(-6, 5, (n, 2)).astype(float)
    sides = rng.integers(0, 5, (n, 2)).astype(float)
    box = {
        "xmin": corners[:, 0],
        "ymin": corners[:, 1],
        "xmax": corners[:, 0] + sides[:, 0],
        "ymax": corners[:, 1] + sides[:, 1],
    }
    return pa.table(
        {
            "id": [f"car {k}" for k in range(n)],
            "expression": [text.replace(" ", " OR ") for text in texts(rng, n, 3)],
            **box,
        }
    )
