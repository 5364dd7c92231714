"""Readers never see half a change: 8 readers and 2 writers, against an oracle for each prefix of the writes."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

import pytest

import nearcast as nc
from concurrent_world import MESSAGES, WORDS, World, Write, as_row
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.engine import index as index_module

SECONDS = float(os.environ.get("NEARCAST_SOAK_SECONDS", "600"))
"""Of all methods of an index together, and again of an engine."""
ROUND_SECONDS = 15.0
TABLE = {
    "id": [message["id"] for message in MESSAGES],
    "tokens": [message["tokens"] for message in MESSAGES],
    "x": [message["box"][0] for message in MESSAGES],
    "y": [message["box"][1] for message in MESSAGES],
}


def world_of_index(method: str, **options: int) -> World:
    """Half of the readers match all messages at once, half of them one."""
    index = nc.build_index({"id": [], "tokens": [], "x": [], "y": []}, method=method, **options)

    def write(write: Write) -> None:
        rows = [as_row(each) for each in write.changed.values() if each is not None]
        if rows:
            index.insert(rows)
        else:
            index.remove(list(write.changed))

    def read_all(rng: random.Random) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {position: [] for position in range(len(MESSAGES))}
        for pair in index.match(TABLE, threads=rng.choice([1, 2])).to_pylist():
            found[pair["message"]].append(pair["subscription"])
        return found

    def read_one(rng: random.Random) -> dict[int, list[int]]:
        position = rng.randrange(len(MESSAGES))
        message = MESSAGES[position]
        return {position: index.match_one(message["tokens"], *message["box"][:2]).tolist()}

    return World(write, [read_all, read_one] * 4)


def world_of_engine() -> World:
    """Every tenth write is followed by many words that come and go, so that unused tokens are dropped."""
    engine, count = nc.Engine(), 0

    def write(write: Write) -> None:
        nonlocal count
        count += 1
        for number, each in write.changed.items():
            if each is None:
                engine.unsubscribe(number)
            else:
                row = as_row(each)
                engine.subscribe(row["expression"], region=row["region"], id=number)
        if count % 10 == 0:
            engine.subscribe(" ".join(f"w{count}x{k}" for k in range(8)), id=1_000_000)

    def read(rng: random.Random) -> dict[int, list[int]]:
        position = rng.randrange(len(MESSAGES))
        message = MESSAGES[position]
        matches = engine.publish(tokens=message["tokens"], at=message["box"][:2])
        return {position: [match.subscription for match in matches]}

    return World(write, [read] * 8, sizes=(1,))


CASES = [
    ("auto", {}),
    ("pyramid", {"young": 20, "crowded": 2}),
    ("pyramid", {"young": 0, "crowded": 2}),
    ("keyword-first", {}),
    ("spatial-first", {}),
    ("ap-tree", {}),
    ("lfilter", {}),
    ("rt++-tree", {}),
]


def expect_right(world: World, seconds: float, seed: int = 0) -> None:
    world.run(seconds, seed=seed)
    world.expect_prefixes()


def expect_right_for_long(make_world: Callable[[], World], seconds: float) -> None:
    """In rounds, each with a new world: the answers of ten minutes would fill the memory."""
    start, seed = time.monotonic(), 0
    while (left := seconds - (time.monotonic() - start)) > 0:
        expect_right(make_world(), min(left, ROUND_SECONDS), seed)
        seed += 100


@pytest.mark.parametrize(("method", "options"), CASES)
def test_each_match_is_that_of_a_prefix_of_the_writes(method: str, options: dict[str, int]) -> None:
    expect_right(world_of_index(method, **options), 2.0)


def test_a_publish_is_that_of_a_prefix_of_the_writes_also_while_tokens_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index_module, "FEWEST_TOKENS", 2 * len(WORDS))
    expect_right(world_of_engine(), 2.0)


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED, reason="the interpreter takes turns anyway")
@pytest.mark.parametrize(("method", "options"), CASES)
def test_for_long_each_match_is_that_of_a_prefix(method: str, options: dict[str, int]) -> None:
    expect_right_for_long(lambda: world_of_index(method, **options), SECONDS / len(CASES))


@pytest.mark.slow
@pytest.mark.skipif(JIT_DISABLED, reason="the interpreter takes turns anyway")
def test_for_long_a_publish_is_that_of_a_prefix_also_while_tokens_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "FEWEST_TOKENS", 2 * len(WORDS))
    expect_right_for_long(world_of_engine, SECONDS)
