"""Subscriptions with live results in an engine: threads, explain, weights, lon/lat, and error texts."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

import nearcast as nc
from nearcast.errors import InvalidInput


def test_threads_that_publish_and_move_leave_exact_results() -> None:
    engine = nc.Engine(space=(0, 0, 10, 10))
    best = engine.subscribe("rain", near=(5, 5), kind="top", k=3, window=1000, alpha=1.0)
    follower = engine.subscribe("rain", box=(0, 0, 1, 1), follow=True)
    events: list[list[nc.Change]] = [[], [], []]

    def publish(own: int) -> None:
        for k in range(20):
            found = engine.publish("rain", at=(own + k / 100, 5), id=100 * own + k)
            events[own] += [each for each in found if isinstance(each, nc.Change)]

    def move() -> None:
        for k in range(20):
            events[2] += engine.move(follower, (k % 3, 4, k % 3 + 1, 6))

    threads = [threading.Thread(target=publish, args=(own,)) for own in (0, 1)] + [threading.Thread(target=move)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    nearest = [119, 118, 117]
    assert engine.results(best)["message"].to_pylist() == nearest
    changes = [each for part in events for each in part]
    for subscription in (best, follower):
        held: dict[int, int] = {}
        for each in changes:
            if each.subscription == subscription:
                held[each.message] = held.get(each.message, 0) + each.change
        assert set(held.values()) <= {0, 1}
        assert {message for message, n in held.items() if n} == set(engine.results(subscription)["message"].to_pylist())


def test_explain_compares_a_message_with_the_list_as_it_is() -> None:
    engine = nc.Engine(space=(0, 0, 10, 10))
    best = engine.subscribe("rain", near=(5, 5), kind="top", k=1, window=10, alpha=1.0)
    first = engine.explain(best, "rain", at=(5, 6))
    assert first.holds and first.threshold == 0 and first.score is not None
    engine.publish("rain", at=(5, 5.5))
    assert not engine.explain(best, "rain", at=(5, 6)).holds
    nearer = engine.explain(best, "rain", at=(5, 5.1))
    assert nearer.holds and nearer.score is not None and nearer.score > (nearer.threshold or 0) > 0
    assert not engine.explain(best, "snow", at=(5, 5)).holds


def test_weights_decide_which_word_counts_more() -> None:
    engine = nc.Engine(space=(0, 0, 10, 10), weights={"token": ["rain", "flood"], "weight": [1.0, 5.0]})
    best = engine.subscribe("rain flood", near=(5, 5), kind="top", k=2, window=10, alpha=0.0)
    engine.publish("rain", at=(5, 5), id=1)
    engine.publish("flood", at=(5, 5), id=2)
    found = engine.results(best).to_pylist()
    assert [row["message"] for row in found] == [2, 1] and found[0]["score"] > found[1]["score"]


def test_a_follower_in_lon_lat_crosses_the_antimeridian() -> None:
    engine = nc.Engine()
    ship = engine.subscribe("storm", near=(179.9, 0), km=50, follow=True)
    assert nc.Change(1, ship, 1) in engine.publish("storm", at=(-179.9, 0), id=1)
    assert engine.move(ship, (170.0, 0)) == [nc.Change(1, ship, -1)]
    assert engine.move(ship, (-179.8, 0)) == [nc.Change(1, ship, 1)]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda engine: engine.move(99, (0, 0)), "no live subscription 99"),
        (lambda engine: engine.move(1, (0, 0)), "subscription 1 does not follow; subscribe it with follow=True"),
        (lambda engine: engine.results(1), "subscription 1 has no results"),
        (lambda engine: engine.results(99), "no live subscription 99"),
        (lambda engine: engine.subscribe("a", dwell=timedelta(1)), "dwell= goes with follow=True"),
        (lambda engine: engine.subscribe("a", near=(0, 0), kind="top"), "kind='top' needs window="),
        (lambda engine: engine.subscribe("a OR b", near=(0, 0), kind="top", window=9), "takes plain words"),
        (lambda engine: engine.subscribe("a", kind="top", window=9), "kind='top' takes a point"),
        (
            lambda engine: engine.subscribe("a", near=(0, 0), kind="top", window=9, max_dist=0),
            "max_dist= is a positive",
        ),
        (lambda engine: engine.advance("soon"), "now= is a datetime or a timedelta, not 'soon'"),
    ],
)
def test_error_texts_name_the_argument(call: Any, text: str) -> None:
    engine = nc.Engine()
    engine.subscribe("rain")
    with pytest.raises(InvalidInput, match=text):
        call(engine)
    assert len(engine) == 1


def _publishes_while_changes_are_kept_out(engine: nc.Engine, seconds: float) -> bool:
    thread = threading.Thread(target=engine.publish, args=("hail",), kwargs={"at": (5, 5)}, daemon=True)
    with engine._versions.pause():
        thread.start()
        thread.join(seconds)
        done = not thread.is_alive()
    thread.join()
    return done


def _replace_by_another_kind(engine: nc.Engine, clock: list[float]) -> None:
    engine.subscribe("rain", box=(0, 0, 10, 10), id=1)


def _forget(engine: nc.Engine, clock: list[float]) -> None:
    engine.unsubscribe(1)


def _let_it_expire(engine: nc.Engine, clock: list[float]) -> None:
    clock[0] += 10
    assert [each[:3] for each in engine.advance()] == [(7, 1, -1)]


def _let_it_expire_by_a_message(engine: nc.Engine, clock: list[float]) -> None:
    clock[0] += 10
    assert [each[:3] for each in engine.publish("snow", at=(5, 5))] == [(7, 1, -1)]


def _let_it_expire_by_a_table(engine: nc.Engine, clock: list[float]) -> None:
    clock[0] += 10
    table = engine.publish_many({"id": [8], "text": ["snow"], "x": [5.0], "y": [5.0]})
    assert table["change"].to_pylist() == [-1]


END_IT = [
    _replace_by_another_kind,
    _forget,
    _let_it_expire,
    _let_it_expire_by_a_message,
    _let_it_expire_by_a_table,
]


@pytest.mark.parametrize("how", [{"kind": "top", "window": 9, "near": (5, 5)}, {"follow": True, "box": (4, 4, 6, 6)}])
@pytest.mark.parametrize("end_it", END_IT)
def test_an_engine_whose_last_live_results_are_gone_publishes_without_waiting(how: Any, end_it: Any) -> None:
    clock = [1000.0]
    engine = nc.Engine(space=(0, 0, 10, 10), clock=lambda: clock[0])
    engine.subscribe("rain", **how, id=1, expires=timedelta(seconds=5))
    assert not _publishes_while_changes_are_kept_out(engine, 0.05), "messages take turns while results live on"
    engine.publish("rain", at=(5, 5), id=7)
    end_it(engine, clock)
    assert _publishes_while_changes_are_kept_out(engine, 30)


def test_a_message_with_an_end_leaves_no_trace_in_an_engine_without_live_results() -> None:
    engine = nc.Engine()
    engine.subscribe("rain", id=1)
    assert engine.publish("rain", at=(5, 5), expires=timedelta(1), id=4) == [nc.Match(4, 1)]
    assert _publishes_while_changes_are_kept_out(engine, 30)
    with pytest.raises(InvalidInput, match="expires"):
        engine.publish("rain", at=(5, 5), expires="soon")  # type: ignore[arg-type]
