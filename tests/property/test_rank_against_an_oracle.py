"""Ranked subscriptions through tables, against an oracle that shares no code: pairs exactly, scores to 1e-9."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearcast as nc
import nearcast.indexes
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.matching.method import method_names
from rank_reference import delivered, idf, score

WORLDS, SIDE = (5, 20) if JIT_DISABLED else (25, 20)  # 25 * 20 * 20 = 10,000 draws of (s, m, alpha, threshold)
WORDS = [f"w{k}" for k in range(9)]
WEIGHTS = dict(zip(WORDS, (1.0, 3.0, 0.0, 2.0, 0.125, 0.375, 1.5, 2.25), strict=False))  # the last has none
UNKNOWN = ["x", "y"]
METHODS = [*method_names("rank"), "auto"]


def drawn_box(rng: random.Random) -> tuple[float, float, float, float]:
    """Corners on a grid of eighths, so that borders meet; a third without area, some far larger than the rest."""
    x, y = rng.randint(0, 8) / 8, rng.randint(0, 8) / 8
    w, h = rng.choice([0, 0, 1, 2, 4]) / 8, rng.choice([0, 0, 1, 2, 4]) / 8
    return rng.choice([(x, y, x + w, y + h)] * 6 + [(x, y, x, y), (-4.0, -4.0, 4.0, 4.0)])


def drawn_subscription(rng: random.Random, number: int, kind: str = "rank") -> dict[str, Any]:
    return {
        "id": number,
        "tokens": rng.sample(WORDS, rng.choice([0, 1, 1, 2, 2, 3, 5])),
        "box": drawn_box(rng),
        "kind": kind,
        "alpha": rng.choice([0.0, 0.25, 0.5, 0.75, 1.0, rng.random()]),
        "threshold": rng.choice([0.0, 0.25, 0.5, 0.75, 1.0, rng.random()]),
    }


def drawn_message(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": number,
        "tokens": rng.sample(WORDS + UNKNOWN, rng.choice([0, 1, 2, 3, 6])),
        "box": drawn_box(rng),
    }


def drawn_world(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], random.Random]:
    """A third of the thresholds are exactly the score of some message; some subscriptions are equal."""
    rng = random.Random(seed)
    messages = [drawn_message(rng, number) for number in rng.sample(range(1000), SIDE)]
    subscriptions = [drawn_subscription(rng, number) for number in rng.sample(range(-50, 50), SIDE)]
    for s in subscriptions[::3]:
        s["threshold"] = score(s, rng.choice(messages), WEIGHTS)
    subscriptions[1] |= {key: value for key, value in subscriptions[0].items() if key != "id"}
    return subscriptions, messages, rng


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    boxes = {name: [row["box"][k] for row in rows] for k, name in enumerate(("xmin", "ymin", "xmax", "ymax"))}
    more = {name: [row.get(name) for row in rows] for name in ("kind", "alpha", "threshold")}
    tokens = pa.array([row["tokens"] for row in rows], pa.list_(pa.string()))
    return pa.table({"id": [row["id"] for row in rows], "tokens": tokens, **boxes, **more})


def weights_table() -> dict[str, list[Any]]:
    return {"token": [*WEIGHTS], "weight": [*WEIGHTS.values()]}


def expect_delivered(
    index: nc.Index, subscriptions: list[dict[str, Any]], messages: list[dict[str, Any]], weights: dict[str, float]
) -> None:
    wanted = delivered(subscriptions, messages, weights)
    found = index.match(table_of(messages), extra="ignore").to_pylist()
    assert [(row["message"], row["subscription"]) for row in found] == [pair[:2] for pair in wanted]
    for row, (_, _, right) in zip(found, wanted, strict=True):
        got = row.get("score")
        assert (got is None) == (right is None) and (right is None or got == pytest.approx(right, abs=1e-9))


@pytest.mark.parametrize("method", METHODS)
def test_ten_thousand_draws_give_the_pairs_and_scores_of_the_oracle(method: str) -> None:
    n_pairs = 0
    for seed in range(WORLDS):
        subscriptions, messages, _ = drawn_world(seed)
        index = nc.build_index(table_of(subscriptions), method, weights_table(), (0, 0, 1, 1))
        expect_delivered(index, subscriptions, messages, WEIGHTS)
        n_pairs += len(delivered(subscriptions, messages, WEIGHTS))
    assert 0.2 < n_pairs / (WORLDS * SIDE * SIDE) < 0.8, "too few, or too many, to prove anything"


@pytest.mark.parametrize("method", METHODS)
def test_both_kinds_under_changes_give_the_pairs_and_scores_of_the_oracle(method: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    live: dict[int, dict[str, Any]] = {}
    index = nc.build_index(table_of([]), method, weights_table(), (0, 0, 1, 1))
    for step in range(8 if JIT_DISABLED else 25):
        numbers = rng.sample(range(60), rng.randint(1, 15))
        if rng.random() < 0.7:
            fresh = [drawn_subscription(rng, number, rng.choice(["rank", "match"])) for number in numbers]
            index.insert(table_of(fresh))
            live |= {s["id"]: s for s in fresh}
        else:
            index.remove(numbers)
            live = {number: s for number, s in live.items() if number not in numbers}
        if step % 8 == 3:
            index.save(tmp_path / "index")
            index = nc.open_index(tmp_path / "index")
        assert len(index) == len(live)
        expect_delivered(index, [*live.values()], [drawn_message(rng, k) for k in range(8)], WEIGHTS)


def test_weights_by_default_are_idf_over_the_subscriptions_of_all_kinds() -> None:
    rng = random.Random(3)
    subscriptions = [drawn_subscription(rng, number, rng.choice(["rank", "match"])) for number in range(30)]
    for s in subscriptions:
        s["threshold"] = rng.random()
    messages = [drawn_message(rng, number) for number in range(30)]
    index = nc.build_index(table_of(subscriptions), space=(0, 0, 1, 1))
    expect_delivered(index, subscriptions, messages, idf(subscriptions))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_message_at_a_time_and_threads_agree_with_the_table(threads: int) -> None:
    subscriptions, messages, rng = drawn_world(99)
    for s in subscriptions[::2]:
        s["kind"] = "match"
    index = nc.build_index(table_of(subscriptions), weights=weights_table(), space=(0, 0, 1, 1))
    points = [m | {"box": (m["box"][0], m["box"][1]) * 2} for m in messages]
    found = index.match(table_of(points), threads=threads, extra="ignore").to_pylist()
    for m in points:
        wanted = [row["subscription"] for row in found if row["message"] == m["id"]]
        assert index.match_one(m["tokens"], *m["box"][:2]).tolist() == wanted
