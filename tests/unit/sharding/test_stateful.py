"""Shards of kind `top` and of moving subscriptions, stepped by micro-batches as Spark steps them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import InvalidInput
from nearcast.geo.space import LONLAT
from nearcast.sharding.payloads import ArrowPayload
from nearcast.sharding.stateful import micro_batch
from nearcast.sharding.stateful.definition import CHANGES, MESSAGES, MOVES, StatefulJob
from nearcast.sharding.stateful.micro_batch import route_events, run_micro_batch
from nearcast.sharding.stateful.snapshots import state_rejects, state_sizes
from nearcast.sharding.stateful.start import start_job
from nearcast.tables import Dialect, idf_weights, read_subscriptions
from nearcast.tables.changes import CHANGES_SCHEMA
from nearcast.tables.weights import weights_table
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary
from nearcast.topk.reading import read_top_subscriptions
from unit.sharding.stateful_tables import (
    TIME,
    WORDS,
    by_subscription,
    messages_of,
    moving_tables,
    pieces,
    top_subscriptions,
)


class Shards:
    """What Spark does: sends the events of a micro-batch to shards, and keeps the name of each shard's state."""

    def __init__(self, job: StatefulJob) -> None:
        self.job = job
        self.names: dict[int, str | None] = dict.fromkeys(range(job.n_shards))

    def run(self, inputs: dict[str, pa.Table]) -> pa.Table:
        """The changes of a micro-batch, in the order of each shard."""
        sent: dict[int, list[ArrowPayload]] = {}
        for name, table in inputs.items():
            for half in (table.slice(table.num_rows // 2), table.slice(0, table.num_rows // 2)):  # as tasks send them
                for payload in route_events(name, half, self.job.n_shards, {k: k for k in range(self.job.n_shards)}):
                    sent.setdefault(payload.shard, []).append(payload)
        parts = []
        for shard, payloads in sent.items():
            self.names[shard], changes = run_micro_batch(self.job, shard, self.names[shard], payloads)
            parts.append(changes)
        return pa.concat_tables(parts)


def top_job(folder: Path, subscriptions: pa.Table, window: Any, n_shards: int, **more: Any) -> StatefulJob:
    vocabulary = Vocabulary()
    _, read = read_top_subscriptions(subscriptions, vocabulary, Dialect(Analyser(), LONLAT, "raise"))
    size = [window, 0] if isinstance(window, int) else [0, window // timedelta(microseconds=1)]
    job = StatefulJob("top", n_shards, str(folder), {"window": size}, **more)
    return start_job(job, read, weights_table(idf_weights(read, vocabulary), vocabulary))


@pytest.mark.parametrize("n_shards", [1, 2, 7])
@pytest.mark.parametrize(("window", "size"), [(5, 1), (20, 7), (20, 60), (timedelta(minutes=9), 13)])
def test_shards_of_top_change_as_one_topk_does(tmp_path: Path, n_shards: int, window: Any, size: int) -> None:
    rng = np.random.default_rng(n_shards)
    subscriptions, messages = top_subscriptions(rng, 30), messages_of(rng, 60)
    shards = Shards(top_job(tmp_path, subscriptions, window, n_shards))
    alone = nc.TopK(subscriptions, window, method="brute")
    for batch in pieces(messages, size):
        found = shards.run({MESSAGES: batch})
        assert by_subscription([found]) == by_subscription([alone.publish(batch)])
        micro_batch._resident.clear()  # as in another worker: the state comes from its files


def test_a_repeated_micro_batch_gives_the_same_changes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    shards = Shards(top_job(tmp_path, top_subscriptions(rng, 20), 10, 2))
    first, second = pieces(messages_of(rng, 40), 20)
    shards.run({MESSAGES: first})
    before = dict(shards.names)
    once = shards.run({MESSAGES: second})
    shards.names = before  # Spark did not commit
    assert shards.run({MESSAGES: second}).equals(once)


def test_changes_are_numbered_and_states_that_nobody_needs_go(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    shards = Shards(top_job(tmp_path, top_subscriptions(rng, 20), 10, 2))
    changes = [shards.run({MESSAGES: batch}) for batch in pieces(messages_of(rng, 100), 10)]
    assert len(list((tmp_path / "shard-0").iterdir())) == 3
    sizes = state_sizes(tmp_path)
    assert [each["micro_batches"] for each in sizes] == [10, 10]
    assert sum(each["changes"] for each in sizes) == sum(table.num_rows for table in changes)
    assert all(each["messages"] == 10 for each in sizes)


def test_late_messages_are_listed_and_change_nothing(tmp_path: Path) -> None:
    subscriptions = pa.table({"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0], "k": [2], "alpha": [0.5]})
    shards = Shards(top_job(tmp_path, subscriptions, 10, 2))

    def message(number: int, second: int) -> pa.Table:
        time = pa.array([second * 1_000_000], TIME)
        return pa.table({"id": [number], "text": ["a"], "x": [0.0], "y": [0.0], "time": time})

    assert shards.run({MESSAGES: message(1, 10)}).num_rows == 1
    assert shards.run({MESSAGES: message(2, 9)}).num_rows == 0
    assert shards.run({MESSAGES: message(3, 10)}).num_rows == 1
    rejects = state_rejects(tmp_path).to_pylist()
    assert [(each["source"], each["column"]) for each in rejects] == [("messages", "time")]
    assert "too late" in rejects[0]["reason"] and [each["late"] for each in state_sizes(tmp_path)] == [1, 1]


@pytest.mark.parametrize("size", [1, 5, 30])
def test_with_a_delay_the_order_of_arrival_does_not_matter(tmp_path: Path, size: int) -> None:
    rng = np.random.default_rng(5)
    subscriptions, messages = top_subscriptions(rng, 10), messages_of(rng, 30)
    end = pa.table({"id": [99], "text": ["z"], "x": [0.0], "y": [0.0], "time": pa.array([10**12], TIME)})
    shuffled = messages.take(pa.array(np.argsort(np.arange(30) + rng.integers(0, 6, 30), kind="stable")))
    shards = Shards(top_job(tmp_path, subscriptions, 10, 2, delay=60 * 30 * 1_000_000))
    found = [shards.run({MESSAGES: batch}) for batch in [*pieces(shuffled, size), end]]
    assert by_subscription(found) == by_subscription([nc.TopK(subscriptions, 10, method="brute").publish(messages)])
    assert {each["late"] for each in state_sizes(tmp_path)} == {0}


def test_subscriptions_come_and_go(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    subscriptions, (first, second) = top_subscriptions(rng, 10), pieces(messages_of(rng, 40), 20)
    weights = pa.table({"token": WORDS, "weight": [1.0, 2.0, 3.0, 4.0, 5.0]})
    _, read = read_top_subscriptions(subscriptions, Vocabulary(), Dialect(Analyser(), LONLAT, "raise"))
    shards = Shards(start_job(StatefulJob("top", 3, str(tmp_path), {"window": [15, 0]}), read, weights))
    alone = nc.TopK(subscriptions, 15, weights=weights, method="brute")
    shards.run({MESSAGES: first})
    alone.publish(first)
    new = {
        "id": [3, 50],
        "tokens": [["a"], ["b", "c"]],
        "x": [1.0, 2.0],
        "y": [0.0, 0.0],
        "k": [2, 2],
        "alpha": [0.5] * 2,
    }
    changes = pa.table({"op": ["insert", "insert", "remove"], **{name: [*each, None] for name, each in new.items()}})
    changes = changes.set_column(1, "id", pa.array([3, 50, 4]))
    found = shards.run({MESSAGES: second, CHANGES: changes})
    wanted = [alone.subscribe(pa.table(new)), alone.unsubscribe([4]), alone.publish(second)]
    assert by_subscription([found]) == by_subscription(wanted)


# -- moving


@pytest.mark.parametrize("n_shards", [1, 2, 7])
@pytest.mark.parametrize("n_steps", [1, 5, 20])
def test_shards_of_moving_subscriptions_change_as_one_moving_does(tmp_path: Path, n_shards: int, n_steps: int) -> None:
    rng = np.random.default_rng(n_steps)
    subscriptions, messages = moving_tables(rng, 25), messages_of(rng, 60)
    ends = pa.array(messages["time"].cast(pa.int64()).to_numpy() + rng.integers(1, 600, 60) * 1_000_000, TIME)
    messages = messages.append_column("expires", ends)
    _dialect = Dialect(Analyser(), LONLAT, "raise", ("match",))
    read = read_subscriptions(subscriptions, Vocabulary(), _dialect)
    shards = Shards(start_job(StatefulJob("moving", n_shards, str(tmp_path), {}), read, None))
    alone = nc.Moving(subscriptions, method="brute")
    for batch in pieces(messages, 60 // n_steps):
        moved = moving_tables(rng, 25).drop_columns(["expression"]).take(pa.array(rng.integers(0, 25, 10)))
        moves = moved.append_column(
            "time", pa.array(np.sort(batch["time"].to_numpy())[rng.integers(0, batch.num_rows, 10)], TIME)
        )
        moves = moves.append_column("order", pa.array(np.arange(10)))
        now = max(batch["time"].to_pylist())
        ordered = moves.sort_by([("time", "ascending"), ("order", "ascending")])
        boxes = np.column_stack([ordered[name].to_numpy() for name in ("xmin", "ymin", "xmax", "ymax")])
        wanted = alone.step(now, batch, ordered["id"].to_pylist(), boxes)
        found = shards.run({MESSAGES: batch, MOVES: moves})
        assert by_subscription([found]) == by_subscription([wanted])
        micro_batch._resident.clear()


def test_moves_of_unknown_subscriptions_are_named(tmp_path: Path) -> None:
    read = read_subscriptions(
        moving_tables(np.random.default_rng(1), 3), Vocabulary(), Dialect(Analyser(), LONLAT, "raise")
    )
    moves = pa.table({"id": ["boat", "car 1"], "x": [0.0, 0.0], "y": [0.0, 0.0]})
    strict = Shards(start_job(StatefulJob("moving", 2, str(tmp_path / "a"), {}, on_bad="raise"), read, None))
    with pytest.raises(InvalidInput, match="no subscription 'boat'"):
        strict.run({MOVES: moves})
    assert not list((tmp_path / "a").glob("shard-*"))
    lenient = Shards(start_job(StatefulJob("moving", 2, str(tmp_path / "b"), {}), read, None))
    assert lenient.run({MOVES: moves}).schema.names == [*CHANGES_SCHEMA.names, "seq"]
    reasons = sorted(state_rejects(tmp_path / "b")["reason"].to_pylist())
    assert reasons[0].startswith("no subscription 'boat'") and "'car 1' is no circle and no point" in reasons[1]
