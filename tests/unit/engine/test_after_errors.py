"""What is left after a call that raised: rejects of the call alone, and the subscriptions as they were."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.model import MAX_TERMS_PER_ROW, RowBatch

GOOD = {"id": [1], "tokens": [["a"]], "x": [0.0], "y": [0.0]}
BAD = {"id": [1, 2], "tokens": [["a"], ["b"]], "x": [0.0, 500.0], "y": [0.0, 0.0]}
TOO_LONG = {"id": [1], "tokens": [[f"t{k}" for k in range(MAX_TERMS_PER_ROW + 1)]], "x": [0.0], "y": [0.0]}


def takers() -> list[tuple[str, Any, Callable[[Any, str], Any]]]:
    index, moving = nc.build_index(GOOD), nc.Moving(GOOD)
    top = nc.TopK(GOOD, window=10)
    return [
        ("Index.match", index, lambda table, on_bad: index.match(table, on_bad=on_bad)),
        ("Index.insert", index, lambda table, on_bad: index.insert(table, on_bad=on_bad)),
        ("Index.read_messages", index, lambda table, on_bad: index.read_messages(table, on_bad=on_bad)),
        ("TopK.publish", top, lambda table, on_bad: top.publish(table, on_bad=on_bad)),
        ("TopK.subscribe", top, lambda table, on_bad: top.subscribe(table, on_bad=on_bad)),
        ("Moving.publish", moving, lambda table, on_bad: moving.publish(table, on_bad=on_bad)),
        ("Moving.subscribe", moving, lambda table, on_bad: moving.subscribe(table, on_bad=on_bad)),
    ]


@pytest.mark.parametrize("at", range(7))
def test_rejects_are_of_the_last_call_of_the_thread(at: int) -> None:
    name, owner, call = takers()[at]
    call(BAD, "skip")
    assert owner.rejects["row"].to_pylist() == [2], name
    seen = list[Any]()

    def work() -> None:
        seen.append(owner.rejects)
        call(GOOD, "skip")
        seen.append(owner.rejects)

    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert seen[0] is None and len(seen[1]) == 0, "another thread has its own"
    assert owner.rejects["row"].to_pylist() == [2], "the calls of another thread do not change it"
    with pytest.raises(nc.InvalidInput):
        call(BAD, "raise")
    assert owner.rejects is None, "a call that raised has no rejects"


def test_a_failed_replace_leaves_the_old_subscription() -> None:
    index = nc.build_index(GOOD, keep_source=False)
    with pytest.raises(nc.InvalidInput):
        index.insert(TOO_LONG)
    assert index.match_one(["a"], 0.0, 0.0).tolist() == [1] and 1 in index
    moving = nc.Moving(GOOD)
    moving.publish({"id": [7], "tokens": [["a"]], "x": [0.0], "y": [0.0]})
    with pytest.raises(nc.InvalidInput):
        moving.subscribe(TOO_LONG)
    assert moving.results(1)["message"].to_pylist() == [7]


def test_a_failed_replace_in_an_engine_leaves_the_old_subscription() -> None:
    engine = nc.Engine()
    engine.subscribe("a", near=(0, 0), km=1, id=1)
    words = " ".join(f"t{k}" for k in range(MAX_TERMS_PER_ROW + 1))
    for wrong in ({"expression": words}, {"expression": "a", "kind": "rank", "threshold": 7}, {"expression": "("}):
        with pytest.raises(nc.NearcastError):
            engine.subscribe(wrong.pop("expression"), near=(0, 0), km=1, id=1, **wrong)
        assert [each.subscription for each in engine.publish("a", at=(0, 0))] == [1]


def test_a_failed_replace_of_rows_leaves_the_old_rows() -> None:
    live = SubscriptionSet("pyramid", Space.of(None))
    one = RowBatch.empty()._replace(
        owner_ids=np.array([1]),
        terms=np.array([0], np.int32),
        term_starts=np.array([0, 1]),
        not_starts=np.array([0, 0]),
        boxes=np.zeros((1, 4)),
        shapes=np.array([-1], np.int32),
        expires=np.array([np.iinfo(np.int64).max]),
    )
    live.insert(one)
    with pytest.raises(nc.InvalidInput):
        live.insert(one._replace(boxes=np.full((1, 4), np.nan)))
    assert live.match_one(np.array([0], np.int32), 0.0, 0.0).tolist() == [1]
