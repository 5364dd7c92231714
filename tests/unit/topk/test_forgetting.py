"""Tokens that nobody uses any more are forgotten; the changes stay those of brute force, in batches of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.topk.checks.world import UNIT, Twins

WORDS = 40


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.topk.topk.FORGET_EVERY", 16)
    monkeypatch.setattr("nearcast.topk.live_terms.FEWEST_UNUSED", 8)


def table(rng: np.random.Generator, ids: np.ndarray) -> dict[str, Any]:
    words = [[f"w{word}" for word in rng.choice(WORDS, 4, replace=False)] for _ in ids]
    return {"id": ids, "tokens": words, "x": rng.random(len(ids)), "y": rng.random(len(ids)), "k": np.full(len(ids), 3)}


def batch(rng: np.random.Generator, n: int, first: int) -> dict[str, Any]:
    """Messages with words of subscriptions, and words that occur once."""
    words = [
        [*(f"w{word}" for word in rng.choice(WORDS, 4)), *(f"once{first + k}-{j}" for j in range(3))] for k in range(n)
    ]
    return {"id": np.arange(first, first + n), "tokens": words, "x": rng.random(n), "y": rng.random(n)}


@pytest.mark.parametrize("method", ["norm-lists", "term-lists", "skype leaf=5", "ciq", "brute"])
def test_tokens_are_forgotten_and_changes_stay_exact(method: str) -> None:
    rng = np.random.default_rng(1)
    twins = Twins(method, table(rng, np.arange(20)), 12, space=UNIT)
    for k in range(12):
        twins.publish(batch(rng, 11, 100 * k))
        twins.subscribe(table(rng, rng.choice(30, 3, replace=False)))
        twins.unsubscribe(rng.choice(30, 2, replace=False).tolist())
        if k == 6:
            twins.reopen()
    assert len(twins.one.vocabulary) < 250 < 12 * 11 * 3, "tokens of messages that are gone stay"
    assert twins.one.stats["messages"] == 132 and twins.one.vocabulary.term("once0-0") == -1


def test_memory_is_bounded_by_what_is_live() -> None:
    rng = np.random.default_rng(2)
    top = nc.TopK(table(rng, np.arange(20)), 50, space=UNIT)
    sizes = []
    for k in range(60):
        top.publish(batch(rng, 50, 1000 * k))
        sizes.append(top.nbytes)
    assert max(sizes[20:]) < 1.5 * max(sizes[:20])


def test_batches_of_any_size_give_the_same_changes() -> None:
    rng = np.random.default_rng(3)
    subscriptions, stream = table(rng, np.arange(25)), pa.table(batch(rng, 120, 0))
    outcomes = []
    for size in (1, 7, 120):
        top = nc.TopK(subscriptions, 9, space=UNIT)
        parts = [top.publish(stream.slice(at, size)) for at in range(0, 120, size)]
        outcomes.append(pa.concat_tables(parts))
    assert outcomes[0].num_rows > 100 and outcomes[0].equals(outcomes[1]) and outcomes[0].equals(outcomes[2])


def test_weights_that_were_given_are_not_forgotten(tmp_path: Path) -> None:
    weights = {"token": ["a", "b", "seldom"], "weight": [1.0, 2.0, 0.25]}
    subscriptions = {"id": [1], "tokens": [["a", "seldom"]], "x": [0.0], "y": [0.0], "k": [2], "alpha": [0.0]}
    rng, top = np.random.default_rng(4), nc.TopK(subscriptions, 5, weights=weights, space=UNIT)
    message = {"id": [9000], "tokens": [["seldom", "b"]], "x": [0.0], "y": [0.0]}
    top.publish(message)
    before = top.results(1)["score"].to_pylist()
    top.publish(batch(rng, 200, 0))
    top.save(tmp_path / "saved")
    for each in (top, nc.open_topk(tmp_path / "saved")):
        each.publish(message | {"id": [9001]})
        assert each.results(1)["score"].to_pylist() == before
