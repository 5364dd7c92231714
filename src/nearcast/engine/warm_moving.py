"""Calls the kernels of moving subscriptions, so that they are compiled or loaded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from nearcast.moving.method import moving_methods
from nearcast.moving.moving import Moving


def warm_moving(n_rows: int) -> None:
    """Let every method subscribe, publish, move, expire and forget. As plain Python 150 rows take 2 s."""
    n = n_rows // 3
    for name in moving_methods():
        _play(Moving(_subscriptions(n), name), n)


def _play(moving: Moving, n: int) -> None:
    rng = np.random.default_rng(1)
    for step in range(3):
        moving.publish(_messages(rng, n, n * step, step + 2, 0.0 if step % 2 else 0.05))
        ids = rng.permutation(n)[: n // 5]
        low = rng.random((len(ids), 2)) * 0.8
        moving.move(ids, np.hstack([low, low + 0.1]))
        moving.advance(datetime.fromtimestamp(step + 1, UTC))
    moving.subscribe(_subscriptions(5))
    moving.results(1)
    moving.unsubscribe(range(n // 2))


def _subscriptions(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    low = rng.random((n, 2)) * 0.8
    words = [
        f"w{int(20 * u)} AND (w1 OR w2) NOT w3" if k % 9 == 0 else f"w{int(20 * u)}"
        for k, u in enumerate(rng.random(n))
    ]
    boxes = dict(zip(("xmin", "ymin", "xmax", "ymax"), np.hstack([low, low + 0.1]).T, strict=True))
    return {"id": np.arange(n), "expression": words, **boxes}


def _messages(rng: np.random.Generator, n: int, first: int, until: int, size: float) -> dict[str, Any]:
    low = rng.random((n, 2)) * 0.9
    boxes = dict(zip(("xmin", "ymin", "xmax", "ymax"), np.hstack([low, low + size]).T, strict=True))
    texts = [" ".join(f"w{int(20 * u)}" for u in rng.random(4)) for _ in range(n)]
    return {
        "id": np.arange(first, first + n),
        "text": texts,
        "expires": [datetime.fromtimestamp(until, UTC)] * n,
        **boxes,
    }
