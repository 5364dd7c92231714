"""`pyramid`, one message at a time: the same answers and the same work as by batches, whatever has room where."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED

N = 300 if JIT_DISABLED else 6000
WORDS = [f"w{k}" for k in range(200)]


def subscriptions(first: int, n: int, seed: int, same: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    low = np.full((n, 2), 0.5) if same else rng.random((n, 2))
    size = np.zeros((n, 2)) if same else rng.random((n, 2)) ** 4
    tokens = [["w0"] if same else rng.choice(WORDS, 1 + k % 3, replace=False).tolist() for k in range(n)]
    sides = dict(zip(("xmin", "ymin", "xmax", "ymax"), np.hstack([low, low + size]).T, strict=True))
    return {"id": np.arange(first, first + n) * 3, "tokens": tokens, **sides}


def messages(n_tokens: int, n: int = 40) -> list[tuple[list[str], float, float]]:
    rng = np.random.default_rng(n_tokens)
    places = [(0.5, 0.5), *rng.random((n - 1, 2)).tolist()]
    return [(rng.choice([*WORDS, "unknown"], n_tokens, replace=False).tolist(), x, y) for x, y in places]


def in_one_batch(index: nc.Index, asked: list[tuple[list[str], float, float]]) -> list[list[int]]:
    tokens, x, y = zip(*asked, strict=True)
    found = index.match({"id": np.arange(len(asked)), "tokens": list(tokens), "x": x, "y": y}).to_pydict()
    lists: list[list[int]] = [[] for _ in asked]
    for message, subscription in zip(found["message"], found["subscription"], strict=True):
        lists[message].append(subscription)
    return lists


@pytest.mark.parametrize("n_tokens", [1, 13, 64, 65, 200])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("later", [0, 1, 2])
def test_one_by_one_is_as_in_a_batch(n_tokens: int, same: bool, later: int) -> None:
    """Few and many terms, crowds of equal rows, and parts that came later: several runs, and a young one."""
    index = nc.build_index(subscriptions(0, N, 1), "pyramid", young=N // 4)
    if same:
        index.insert(subscriptions(N, N, 2, same=True))
    for k in range(later):
        index.insert(subscriptions((2 + k) * N, N // (8 if k else 2), 3 + k))
    asked = messages(n_tokens)
    wanted, before = in_one_batch(index, asked), index.stats
    assert [index.match_one(*message).tolist() for message in asked] == wanted
    assert index.stats == before.plus(before) and before.matches > 0


def test_answers_are_the_callers_own_and_threads_do_not_meet() -> None:
    index = nc.build_index(subscriptions(0, N, 1), "pyramid")
    asked = messages(13) + messages(65)
    wanted = in_one_batch(index, asked)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda message: index.match_one(*message), asked * 5))
    assert [ids.tolist() for ids in found] == wanted * 5


def test_more_answers_than_the_short_way_has_room_for_in_parts_that_have_room_each() -> None:
    n = 100 if JIT_DISABLED else 1_800
    index = nc.build_index(subscriptions(0, n, 1, same=True), "pyramid", young=1)
    index.insert(subscriptions(n, n // 2, 2, same=True))
    for tokens, count in ((["w0"], n + n // 2), (["w0", "w1", "unknown"], n + n // 2), (["w1"], 0), ([], 0)):
        assert index.match_one(tokens, 0.5, 0.5).tolist() == [3 * k for k in range(count)]
