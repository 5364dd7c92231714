"""Terms of rows are packed after many removals; every index of rows must follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nearcast.topk.checks.world import UNIT, Twins, messages

METHODS = ("norm-lists", "term-lists", "skype leaf=50", "ciq")


def table(rng: np.random.Generator, ids: np.ndarray) -> dict[str, Any]:
    words = [list(rng.choice(list("abcdefgh"), 4, replace=False)) for _ in ids]
    return {"id": ids, "tokens": words, "x": rng.random(len(ids)), "y": rng.random(len(ids)), "k": np.full(len(ids), 2)}


@pytest.mark.parametrize("method", METHODS)
def test_packed_rows_are_still_found(method: str) -> None:
    rng = np.random.default_rng(1)
    twins = Twins(method, table(rng, np.arange(1500)), 8, space=UNIT)
    twins.publish(messages(rng, 5, 0, 0))
    twins.unsubscribe(np.arange(20, 1500).tolist())
    twins.ids = set(range(40))
    holes = twins.one.rows._holes
    twins.subscribe(table(rng, np.arange(30, 35)))
    assert twins.one.rows._holes < holes, "the terms were not packed"
    for k in range(4):
        twins.publish(messages(rng, 6, 100 * (k + 1), 0))
        twins.subscribe(table(rng, rng.choice(40, 3, replace=False)))
        twins.unsubscribe(rng.choice(40, 3, replace=False).tolist())


@pytest.mark.parametrize("refill", ["raising", "kmax", "skyband", "cskyband"])
def test_packing_buffers_leaves_room_for_the_next_message(refill: str) -> None:
    rng = np.random.default_rng(2)
    twins = Twins(
        f"term-lists refill={refill}", table(rng, np.arange(60)) | {"k": rng.integers(1, 9, 60)}, 90, space=UNIT
    )
    for k in range(8):
        twins.publish(messages(rng, 50, 100 * k, 0))
        twins.one.method.buffers.pack()
