"""Random subscriptions and messages from tiny pools, and a pair of a method and `brute` that must agree."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.matching.variant import option_of
from nearcast.topk.topk import TopK, open_topk

UNIT = (0.0, 0.0, 1.0, 1.0)
WORDS = tuple("abcdefgh")
WEIGHTS = {"token": list(WORDS), "weight": [1.0, 2.0, 3.0, 0.0, 1.0, 1.0, 5.0, 0.5]}
ALPHAS = (0.0, 0.25, 0.5, 1.0)
XS, YS = (0.0, 0.25, 0.5, 1.0), (0.0, 0.5, 1.0)
KS = (1, 2, 3, 5, 20)
SECOND = 1_000_000


def subscriptions(rng: np.random.Generator, ids: Sequence[int] | np.ndarray) -> dict[str, Any]:
    """Subscriptions at a few points, with one to four of eight words."""
    n = len(ids)
    words = [rng.choice(len(WORDS), rng.integers(1, 5), replace=False) for _ in range(n)]
    return {
        "id": np.asarray(ids, np.int64),
        "tokens": pa.array([[WORDS[k] for k in each] for each in words], pa.list_(pa.string())),
        "x": rng.choice([*XS, rng.random()], n),
        "y": rng.choice([*YS, rng.random()], n),
        "k": rng.choice(KS, n),
        "alpha": rng.choice([*ALPHAS, rng.random()], n),
    }


def messages(rng: np.random.Generator, n: int, first_id: int, now: int) -> dict[str, Any]:
    """Messages with up to five words, some of them unknown, some none; many at one place and one time."""
    texts = [[WORDS[int(8 * rng.random() ** 2)] for _ in range(rng.integers(0, 6))] for _ in range(n)]
    texts = [[*words, "unknown"] if rng.random() < 0.1 else words for words in texts]
    times = now + np.cumsum(rng.choice([0, 0, 1, 2, 5], n)) * SECOND
    return {
        "id": np.arange(first_id, first_id + n),
        "tokens": pa.array(texts, pa.list_(pa.string())),
        "x": rng.choice([*XS, rng.random(), 3.0], n),
        "y": rng.choice([*YS, rng.random()], n),
        "time": pa.array(times, pa.timestamp("us", "UTC")),
    }


def made(method: str, table: Any, window: Any, **arguments: Any) -> TopK:
    """A TopK of a method that may be followed by options, like "norm-lists refill=kmax"."""
    name, *options = method.split()
    pairs = [option_of(option) for option in options]
    return TopK(table, window, name, **dict(pair for pair in pairs if pair is not None), **arguments)


class Twins:
    """A method and `brute`, which take the same calls. Each call compares the changes and all lists."""

    def __init__(self, method: str, table: Any, window: Any, **arguments: Any) -> None:
        self.one = made(method, table, window, **arguments)
        self.oracle = made("brute", table, window, **arguments)
        self.ids = set(np.asarray(table["id"]).tolist())

    def call(self, what: str, change: Callable[[TopK], pa.Table]) -> pa.Table:
        """Apply a change to both."""
        wanted, got = change(self.oracle), change(self.one)
        assert got.equals(wanted), f"{what}: changes differ from brute force: {_first_difference(wanted, got)}"
        self.compare(what)
        return got

    def compare(self, what: str) -> None:
        for number in sorted(self.ids):
            assert (number in self.one) == (number in self.oracle), f"{what}: is {number} live?"
            if number in self.oracle:
                wanted, got = self.oracle.results(number), self.one.results(number)
                assert got.equals(wanted), f"{what}: list of {number}: {got.to_pylist()}, not {wanted.to_pylist()}"

    def publish(self, table: Any) -> pa.Table:
        return self.call("publish", lambda top: top.publish(table))

    def subscribe(self, table: Any) -> pa.Table:
        self.ids |= set(np.asarray(table["id"]).tolist())
        return self.call("subscribe", lambda top: top.subscribe(table))

    def unsubscribe(self, ids: Sequence[int]) -> pa.Table:
        return self.call("unsubscribe", lambda top: top.unsubscribe(list(ids)))

    def advance(self, now: int) -> pa.Table:
        return self.call("advance", lambda top: top.advance(now))

    def reopen(self) -> None:
        """Save and open the method; the oracle goes on."""
        with tempfile.TemporaryDirectory() as folder:
            self.one.save(folder)
            self.one = open_topk(folder)
            self.compare("save and open")


def _first_difference(wanted: pa.Table, got: pa.Table) -> str:
    rows = zip(wanted.to_pylist(), got.to_pylist(), strict=False)
    place = next((row for row, (a, b) in enumerate(rows) if a != b), min(len(wanted), len(got)))
    shown = [table.slice(place, 1).to_pylist() or "nothing" for table in (wanted, got)]
    return f"row {place} is {shown[1]}, not {shown[0]}"


def play(twins: Twins, rng: np.random.Generator, n_calls: int, batches: Sequence[int] = (0, 1, 7, 25, 60)) -> None:
    """Make random calls: mostly batches of messages, and subscriptions that come, go and come back."""
    now, next_id, is_period = 0, 0, twins.one.window.size.is_period
    for _ in range(n_calls):
        draw = rng.random()
        if draw < 0.7:
            table = messages(rng, int(rng.choice(batches)), next_id, now)
            next_id += len(table["id"])
            now = max(now, int(table["time"].cast(pa.int64()).to_numpy()[-1])) if len(table["id"]) else now
            twins.publish(table)
        elif draw < 0.8:
            twins.subscribe(subscriptions(rng, rng.choice(40, 5, replace=False)))
        elif draw < 0.9:
            twins.unsubscribe(rng.choice(45, 4, replace=False).tolist())
        elif is_period and draw < 0.96:
            now += int(rng.choice([0, 1, 30, 100])) * SECOND
            twins.advance(now)
        else:
            twins.reopen()


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)
