"""Twins: the same history with whole numbers, and with strings or UUIDs in another order, has the same results."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.model import Change, Match

ROUNDS = 4 if JIT_DISABLED else 12
WORDS = ["a", "b", "c", "d"]
NAMINGS: dict[str, Callable[[int], Any]] = {
    "strings": lambda number: f"{'xyzXé'[number % 5]}{number:x}",
    "long strings with one beginning": lambda number: f"subscription/number-{(number * 7919) % 1009:04}",
    "uuids": lambda number: uuid.UUID(int=(number * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128),
}


class Drawn:
    """Tables over tiny pools. `ids` are whole numbers below 40."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def ids(self, n: int) -> list[int]:
        return [int(each) for each in self.rng.permutation(40)[:n]]

    def words(self) -> list[str]:
        return [WORDS[k] for k in sorted(self.rng.permutation(4)[: self.rng.integers(1, 3)])]

    def subscriptions(self, ids: list[int]) -> list[dict[str, Any]]:
        return [{"id": each, "tokens": self.words(), **self.box(2)} for each in ids]

    def messages(self, ids: list[int]) -> list[dict[str, Any]]:
        return [{"id": each, "tokens": self.words() + self.words(), **self.point()} for each in ids]

    def box(self, most: int) -> dict[str, float]:
        x, y, w, h = self.rng.integers(0, most + 1, 4).tolist()
        return {"xmin": x, "ymin": y, "xmax": x + w, "ymax": y + h}

    def point(self) -> dict[str, float]:
        x, y = self.rng.integers(0, 4, 2).tolist()
        return {"x": x, "y": y}


def renamed(table: list[dict[str, Any]], name: Callable[[int], Any]) -> list[dict[str, Any]]:
    return [{**row, "id": name(row["id"])} for row in table]


def rows(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def named_rows(table: Any, name: Callable[[int], Any]) -> list[dict[str, Any]]:
    return [row | {side: name(row[side]) for side in ("message", "subscription") if side in row} for row in rows(table)]


def by_pair(row: dict[str, Any]) -> tuple[Any, Any]:
    return row["message"], row["subscription"]


@pytest.mark.parametrize("naming", NAMINGS)
def test_an_index(naming: str) -> None:
    name, drawn = NAMINGS[naming], Drawn(1)
    first = drawn.subscriptions(drawn.ids(10))
    plain, named = (nc.build_index(table, "pyramid", space=(0, 0, 5, 5)) for table in (first, renamed(first, name)))
    for _ in range(ROUNDS):
        more, gone = drawn.subscriptions(drawn.ids(drawn.rng.integers(0, 6))), drawn.ids(4)
        if more:
            plain.insert(more)
            named.insert(renamed(more, name))
        plain.remove(gone)
        named.remove([name(each) for each in gone])
        messages = drawn.messages(drawn.ids(7))
        wanted = sorted(named_rows(plain.match(messages), name), key=by_pair)
        assert rows(named.match(renamed(messages, name))) == wanted
        one = messages[0]
        found = plain.match_one(one["tokens"], one["x"], one["y"])
        assert list(named.match_one(one["tokens"], one["x"], one["y"])) == sorted(map(name, found.tolist()))


@pytest.mark.parametrize("method", ["brute", "auto"])
@pytest.mark.parametrize("naming", NAMINGS)
def test_top_k(naming: str, method: str) -> None:
    """Per step: of a subscription what leaves comes first; between messages the order stays."""
    name, drawn = NAMINGS[naming], Drawn(2)

    def points(ids: list[int]) -> list[dict[str, Any]]:
        return [{"id": each, "tokens": drawn.words(), "k": 2, **drawn.point()} for each in ids]

    first = points(drawn.ids(8))
    plain, named = (nc.TopK(table, 5, method, space=(0, 0, 5, 5)) for table in (first, renamed(first, name)))
    for _ in range(ROUNDS):
        for message in drawn.messages(drawn.ids(3)):
            wanted = sorted(named_rows(plain.publish([message]), name), key=lambda row: row["subscription"])
            assert rows(named.publish(renamed([message], name))) == wanted
        more, gone = points(drawn.ids(3)), drawn.ids(2)
        wanted = sorted(named_rows(plain.subscribe(more), name), key=lambda row: row["subscription"])
        assert rows(named.subscribe(renamed(more, name))) == wanted
        wanted = sorted(named_rows(plain.unsubscribe(gone), name), key=lambda row: row["subscription"])
        assert rows(named.unsubscribe([name(each) for each in gone])) == wanted
        for each in range(40):
            assert (each in plain) == (name(each) in named)
            if each in plain:
                assert rows(named.results(name(each))) == named_rows(plain.results(each), name)


@pytest.mark.parametrize("naming", NAMINGS)
def test_moving(naming: str) -> None:
    name, drawn = NAMINGS[naming], Drawn(3)
    first = drawn.subscriptions(drawn.ids(8))
    plain, named = (nc.Moving(table, space=(0, 0, 5, 5)) for table in (first, renamed(first, name)))
    for step in range(ROUNDS):
        messages = [row | {"expires": np.datetime64(step + 2, "us")} for row in drawn.messages(drawn.ids(4))]
        moved = [each for each in drawn.ids(5) if each in plain]
        boxes = np.array([list(drawn.box(2).values()) for _ in moved], np.float64).reshape(-1, 4)
        now = np.datetime64(step, "us")
        wanted = sorted(named_rows(plain.step(now, messages, moved, boxes), name), key=by_pair)
        assert rows(named.step(now, renamed(messages, name), [name(each) for each in moved], boxes)) == wanted
        more, gone = drawn.subscriptions(drawn.ids(2)), [each for each in drawn.ids(3) if each in plain]
        wanted = sorted(named_rows(plain.unsubscribe(gone), name), key=by_pair)
        assert rows(named.unsubscribe([name(each) for each in gone])) == wanted
        wanted = sorted(named_rows(plain.subscribe(more), name), key=by_pair)
        assert rows(named.subscribe(renamed(more, name))) == wanted
        for each in more:
            found = sorted(map(name, plain.results(each["id"])["message"].to_pylist()))
            assert named.results(name(each["id"]))["message"].to_pylist() == found


@pytest.mark.parametrize("naming", NAMINGS)
def test_an_engine_of_all_kinds(naming: str) -> None:
    name, drawn = NAMINGS[naming], Drawn(4)
    plain, named = nc.Engine("pyramid"), nc.Engine("pyramid")

    def subscribe(number: int) -> None:
        how: dict[str, Any] = {"near": tuple(drawn.point().values()), "km": 150.0}
        how |= [{}, {"follow": True}, {"kind": "top", "k": 2, "window": 4}][drawn.rng.integers(0, 3)]
        if "kind" in how:
            del how["km"]
        words = " ".join(drawn.words())
        plain.subscribe(words, id=number, **how)
        assert named.subscribe(words, id=name(number), **how) == name(number)

    def named_events(events: list[Any]) -> list[Any]:
        made = [event._replace(message=name(event.message), subscription=name(event.subscription)) for event in events]
        matches = sorted(event for event in made if isinstance(event, Match))
        changes = [event for event in made if isinstance(event, Change)]
        return [*matches, *sorted(changes, key=lambda event: (event.subscription, event.change))]

    for number in drawn.ids(12):
        subscribe(number)
    for step in range(ROUNDS):
        subscribe(drawn.ids(1)[0])
        gone = drawn.ids(2)
        plain.unsubscribe(*gone)
        named.unsubscribe(*(name(each) for each in gone))
        (message,) = drawn.messages([1000 + step])
        what: dict[str, Any] = {"tokens": message["tokens"], "at": (message["x"], message["y"])}
        found = named.publish(id=name(message["id"]), **what)
        assert [(type(event), *event[:3]) for event in found] == [
            (type(event), *event[:3]) for event in named_events(plain.publish(id=message["id"], **what))
        ]
        assert len(plain) == len(named)
