"""Expiry: exact at the instant, in slices, and without anything left behind."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from datetime import UTC, datetime, timedelta

import pytest

import nearcast as nc
from nearcast.engine import expiries as expiries_module
from nearcast.engine import index as index_module

HERE = (1.0, 1.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def engine_of(clock: Clock) -> nc.Engine:
    return nc.Engine(clock=clock)


def reached(engine: nc.Engine, text: str = "fire") -> list[int]:
    return [match.subscription for match in engine.publish(text, at=HERE)]


def wait_until_forgotten(engine: nc.Engine, n: int) -> None:
    deadline = time.monotonic() + 60
    while len(engine._live) > n and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(engine._live) == n


def test_a_subscription_matches_up_to_its_last_microsecond(clock: Clock) -> None:
    engine = engine_of(clock)
    engine.subscribe("fire", id=1, expires=datetime.fromtimestamp(1_001, UTC))
    clock.now = 1_000.999_999
    assert reached(engine) == [1] and len(engine) == 1
    clock.now = 1_001.0
    assert reached(engine) == [] and len(engine) == 0
    wait_until_forgotten(engine, 0)


def test_many_expire_in_slices_and_all_are_forgotten(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiries_module, "_SLICE", 7)
    engine = engine_of(clock)
    for number in range(60):
        engine.subscribe("fire", id=number, expires=timedelta(seconds=1 if number % 3 else 100))
    clock.now += 1
    assert reached(engine) == list(range(0, 60, 3)), "expired ones are out before they are forgotten"
    wait_until_forgotten(engine, 20)
    assert reached(engine) == list(range(0, 60, 3)) and len(engine.index) == 20


def test_changes_forget_what_has_expired_too(clock: Clock) -> None:
    engine = engine_of(clock)
    engine.subscribe("fire", id=1, expires=timedelta(seconds=1))
    clock.now += 1
    engine.subscribe("flood", id=2)
    assert set(engine._live) == {2} and len(engine.index) == 1


def test_a_replaced_subscription_follows_its_new_time(clock: Clock) -> None:
    engine = engine_of(clock)
    engine.subscribe("fire", id=1, expires=timedelta(seconds=1))
    engine.subscribe("fire", id=1, expires=timedelta(seconds=5))
    engine.subscribe("fire", id=2, expires=timedelta(seconds=1))
    engine.subscribe("fire", id=2)
    clock.now += 1
    assert reached(engine) == [1, 2] and len(engine) == 2
    clock.now += 4
    assert reached(engine) == [2] and len(engine) == 1


def test_times_of_subscriptions_that_are_gone_are_given_back(clock: Clock) -> None:
    engine = engine_of(clock)
    for _ in range(1_000):
        engine.subscribe("fire", id=1, expires=timedelta(hours=1))
    assert len(engine._expiries._heap) < 100
    engine.unsubscribe(1)
    assert not engine._expiries._times


def test_unused_tokens_are_given_back(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "FEWEST_TOKENS", 50)
    engine = engine_of(clock)
    engine.subscribe("fire NOT smoke", id=1)
    for number in range(200):
        engine.subscribe(f"a{number} b{number} NOT c{number}", id=2)
    assert len(engine.index.vocabulary) < 250
    assert reached(engine, "fire") == [1] and reached(engine, "fire smoke") == []
    assert reached(engine, "a199 b199") == [2] and reached(engine, "a199 b199 c199") == []


def test_messages_of_a_table_expire_by_the_present_or_by_later_times_of_their_own(clock: Clock) -> None:
    engine = engine_of(clock)
    engine.subscribe("fire", id=1, expires=datetime.fromtimestamp(1_010, UTC))
    engine.subscribe("fire", id=2, near=HERE, km=1)
    times = [datetime.fromtimestamp(second, UTC) for second in (1_009, 1_010)]
    table = {"id": [1, 2, 3], "text": ["Fire!"] * 3, "x": [1.0] * 3, "y": [1.0] * 3, "time": [*times, None]}
    assert pairs(engine, table) == [(1, 1), (1, 2), (2, 2), (3, 1), (3, 2)]
    clock.now = 1_010.0
    assert pairs(engine, table) == [(1, 2), (2, 2), (3, 2)], "whether 1 has been forgotten already or not"


def pairs(engine: nc.Engine, table: dict[str, list[object]]) -> list[tuple[int, int]]:
    return [(row["message"], row["subscription"]) for row in engine.publish_many(table).to_pylist()]


def test_a_publish_does_not_wait_for_a_change(clock: Clock) -> None:
    engine, published = engine_of(clock), threading.Event()
    engine.subscribe("fire", id=1)
    with engine._versions.change():
        thread = threading.Thread(target=lambda: (reached(engine), published.set()))
        thread.start()
        assert published.wait(60)
    thread.join()


def test_an_engine_that_nobody_uses_is_freed_at_once(clock: Clock) -> None:
    engine = engine_of(clock)
    engine.subscribe("fire", id=1, near=HERE, km=1, expires=timedelta(seconds=9))
    reached(engine)
    gone = [weakref.ref(engine), weakref.ref(engine.index), weakref.ref(engine.index.matcher)]
    gc.disable()
    try:
        del engine
        assert [reference() for reference in gone] == [None, None, None]
    finally:
        gc.enable()
