"""Checks of single cases, with the changes written down."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.errors import InvalidInput
from nearcast.moving.moving import Moving

SPACE = (0.0, 0.0, 10.0, 10.0)
Change = tuple[int, int, int]


def boxes(ids: list[int], words: list[str], places: list[tuple[float, ...]]) -> dict[str, Any]:
    """A subscriptions table of expressions and boxes."""
    columns = dict(zip(("xmin", "ymin", "xmax", "ymax"), zip(*places, strict=True), strict=True))
    return {"id": ids, "expression": words, **columns}


def points(ids: list[int], texts: list[str], places: list[tuple[float, float]], expires: list[Any]) -> dict[str, Any]:
    """A messages table of points. Expiry in microseconds."""
    xs, ys = zip(*places, strict=True)
    stamps = pa.array(expires, pa.timestamp("us", "UTC"))
    return {"id": ids, "text": texts, "x": list(xs), "y": list(ys), "expires": stamps}


def lines(changes: pa.Table) -> list[Change]:
    return list(zip(*(changes.column(name).to_pylist() for name in ("message", "subscription", "change")), strict=True))


def expect(changes: pa.Table, wanted: list[Change], why: str) -> None:
    assert lines(changes) == wanted, f"{why}: {lines(changes)} instead of {wanted}"


def _one(method: str, options: dict[str, Any], words: str = "a") -> Moving:
    """Subscription 1 in the box 0..1, and message 7 at (5, 5), which expires at 10."""
    made = Moving(boxes([1], [words], [(0, 0, 1, 1)]), method, SPACE, **options)
    expect(made.publish(points([7], ["a b"], [(5, 5)], [10])), [], "a message far away")
    return made


def check_a_move_to_a_message_and_away(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    expect(moving.move([1], [[4, 4, 5, 5]]), [(7, 1, 1)], "the corner touches")
    expect(moving.move([1], [[4, 4, 5, 5]]), [], "a zero move")
    expect(moving.move([1], [[0, 0, 10, 10]]), [], "a growing box")
    expect(moving.move([1], [[5, 5, 5, 5]]), [], "a box shrunk to the message's point")
    expect(moving.move([1], [[5.000001, 5, 6, 6]]), [(7, 1, -1)], "just past the message")
    expect(moving.move([1], [[5, 5, 5, 5]]), [(7, 1, 1)], "a return")


def check_expiry(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    expect(moving.move([1], [[5, 5, 6, 6]]), [(7, 1, 1)], "a move to the message")
    expect(moving.advance(9), [], "the message lives while now < expires")
    expect(moving.advance(10), [(7, 1, -1)], "it is gone at its expiry")
    expect(moving.move([1], [[0, 0, 10, 10]]), [], "a dead message is not found")
    assert moving.n_messages == 0


def check_expiry_at_the_instant_of_a_move(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    expect(moving.move([1], [[5, 5, 6, 6]], now=10), [], "a message that expires in the step of the move")
    moving = _one(method, options)
    moving.move([1], [[5, 5, 6, 6]])
    expect(moving.move([1], [[0, 0, 1, 1]], now=10), [(7, 1, -1)], "one that leaves and expires goes once")


def check_a_step_is_net(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    expect(moving.move([1, 1], [[5, 5, 6, 6], [0, 0, 1, 1]]), [], "there and back in one step")
    expect(moving.publish(points([8], ["a"], [(0, 0)], [3]), now=3), [], "a message that expires as it comes")
    expect(moving.step(now=4, ids=[1], places=[[5, 5, 6, 6]]), [(7, 1, 1)], "the step has one move")
    again = points([7], ["a"], [(5.5, 5.5)], [10])
    expect(moving.publish(again), [], "a message that replaces itself and still matches")
    away = points([7], ["a"], [(9, 9)], [10])
    expect(moving.publish(away), [(7, 1, -1)], "a message that is replaced by one elsewhere")


def check_changes_are_of_subscriptions_not_of_rows(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options, "a OR b")
    expect(moving.move([1], [[5, 5, 6, 6]]), [(7, 1, 1)], "both clauses begin to hold: one change")
    expect(moving.publish(points([7], ["a"], [(5, 5)], [10])), [], "losing one of two clauses is no change")
    expect(moving.publish(points([7], ["c"], [(5, 5)], [10])), [(7, 1, -1)], "losing the last one is")


def check_not_terms_and_no_terms(method: str, options: dict[str, Any]) -> None:
    table = boxes([1, 2, 3], ["a NOT b", "NOT b", "NOT z"], [(0, 0, 1, 1)] * 3)
    moving = Moving(table, method, SPACE, **options)
    wanted = [(7, 3, 1), (8, 1, 1), (8, 2, 1), (8, 3, 1), (9, 2, 1), (9, 3, 1)]
    places: list[tuple[float, float]] = [(0.5, 0.5)] * 3
    expect(moving.publish(points([7, 8, 9], ["a b", "a", ""], places, [None] * 3)), wanted, "NOT")
    away = [(message, subscription, -sign) for message, subscription, sign in wanted]
    expect(moving.move([1, 2, 3], [[2, 2, 3, 3]] * 3), away, "all move away")


def check_a_word_that_no_subscription_had(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    moving.publish(points([8], ["zebra crossing"], [(3, 3)], [None]))
    new = boxes([2], ["zebra"], [(2, 2, 4, 4)])
    expect(moving.subscribe(new), [(8, 2, 1)], "a live message with a word that was in no subscription")
    expect(moving.subscribe(boxes([2], ["crossing"], [(2, 2, 4, 4)])), [], "replaced by one that matches as well")
    expect(moving.subscribe(boxes([2], ["horse"], [(2, 2, 4, 4)])), [(8, 2, -1)], "replaced by one that does not")


def check_unsubscribing_and_coming_back(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    moving.move([1], [[5, 5, 6, 6]])
    expect(moving.unsubscribe([1]), [(7, 1, -1)], "its pairs cease")
    expect(moving.subscribe(boxes([1], ["a"], [(5, 5, 6, 6)])), [(7, 1, 1)], "it comes back")
    moving.subscribe(boxes([3], ["a NOT a"], [(0, 0, 1, 1)]))
    expect(moving.move([3], [[5, 5, 6, 6]]), [], "an expression that never holds is known, and may move")


def check_subscriptions_expire(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    table = boxes([2, 3], ["a", "a"], [(5, 5, 6, 6)] * 2) | {"expires": pa.array([4, 9], pa.timestamp("us", "UTC"))}
    expect(moving.subscribe(table), [(7, 2, 1), (7, 3, 1)], "two that expire")
    expect(moving.step(4, ids=[2], places=[[5, 5, 7, 7]]), [(7, 2, -1)], "the first is gone, though it moved")
    assert 2 not in moving and 3 in moving
    assert moving.now == datetime(1970, 1, 1, 0, 0, 0, 4, tzinfo=UTC)


def check_circles_follow_a_point(method: str, options: dict[str, Any]) -> None:
    table = {"id": [1, 2], "expression": ["a", "a OR b"], "region": ["circle(0, 0, 100km)", "circle(0, 0, 100km)"]}
    moving = Moving(table, method, **options)
    xs, ys = [179.9, -179.9, 0.0], [0.0, 0.0, 89.9]
    moving.publish({"id": [7, 8, 9], "text": ["a", "a", "a"], "x": xs, "y": ys})
    wanted = [(message, subscription, 1) for message in (7, 8) for subscription in (1, 2)]
    expect(moving.move([1, 2], [[180, 0]] * 2), wanted, "a circle over the antimeridian")
    pole = [(message, subscription, -1) for message in (7, 8) for subscription in (1, 2)] + [(9, 1, 1), (9, 2, 1)]
    expect(moving.move([1, 2], [[120, 90]] * 2), pole, "a circle over the pole")
    expect(moving.move([1], [[179, -1, 180, 1]]), [(7, 1, 1), (9, 1, -1)], "a circle becomes a box")
    _expect_bad(moving, lambda: moving.move([1], [[0, 0]]), "cannot follow a point")


def check_range_messages_come_once(method: str, options: dict[str, Any]) -> None:
    moving = Moving(boxes([1, 2], ["a", "a"], [(0, 0, 9, 9), (3, 3, 3, 3)]), method, SPACE, **options)
    ranges = {"id": [7], "text": ["a"], "xmin": [1.0], "ymin": [1.0], "xmax": [8.0], "ymax": [8.0]}
    expect(moving.publish(ranges), [(7, 1, 1), (7, 2, 1)], "a range over many cells")
    expect(moving.move([1, 2], [[8, 8, 9, 9], [0, 0, 0.5, 0.5]]), [(7, 2, -1)], "a corner that touches a corner")
    expect(moving.move([1], [[8.5, 8.5, 9, 9]]), [(7, 1, -1)], "away from it")


def check_bad_input_changes_nothing(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options)
    moving.advance(5)
    nan = float("nan")
    for call, reason in (
        (lambda: moving.move([1, 99], [[5, 5, 6, 6]] * 2), "no subscription 99"),
        (lambda: moving.move([1, 1], [[5, 5, 6, 6], [6, 5, 5, 6]]), "above"),
        (lambda: moving.move([1], [[5, 5, nan, 6]]), "NaN"),
        (lambda: moving.move([1], [[5, 5, np.inf, 6]]), "finite"),
        (lambda: moving.move([1], [[5, 5, 6, 6]] * 2), "one place for each id"),
        (lambda: moving.move([1], [[5, 5, 6]]), "4 columns"),
        (lambda: moving.move(["x"], [[5, 5, 6, 6]]), "whole numbers"),
        (lambda: moving.move([1], [[5, 5, 6, 6]], now=4), "backwards"),
        (lambda: moving.advance(4), "backwards"),
        (lambda: moving.advance("yesterday"), "no time"),
        (lambda: moving.unsubscribe([1, 99]), "no subscription 99"),
        (lambda: moving.results(99), "no subscription 99"),
        (lambda: moving.publish(points([8, 9], ["a", "a"], [(0, 0), (nan, 0)], [None] * 2)), "NaN"),
        (lambda: moving.publish(points([8], ["a"], [(0, 0)], [None]), now=4), "backwards"),
        (lambda: moving.subscribe(boxes([1, 2], ["b", "(b"], [(0, 0, 1, 1)] * 2)), "expression"),
    ):
        _expect_bad(moving, call, reason)
    expect(moving.move([1], [[5, 5, 6, 6]]), [(7, 1, 1)], "after all that, the world is as before")


def _expect_bad(moving: Moving, call: Callable[[], Any], reason: str) -> None:
    before = (len(moving), moving.n_messages, moving.now)
    try:
        call()
    except InvalidInput as error:
        assert reason in str(error), f"'{error}' does not say '{reason}'"
    else:
        raise AssertionError(f"no InvalidInput with '{reason}'")
    assert (len(moving), moving.n_messages, moving.now) == before


def check_saved_in_the_middle_it_continues(method: str, options: dict[str, Any]) -> None:
    moving = _one(method, options, "a OR b")
    moving.move([1], [[5, 5, 6, 6]])
    moving.advance(4)
    with tempfile.TemporaryDirectory() as folder:
        moving.save(Path(folder) / "saved")
        opened = Moving.open(Path(folder) / "saved")
        assert opened.method == moving.method and opened.now == moving.now
        for each in (moving, opened):
            _expect_bad(each, partial(each.advance, 3), "backwards")
            expect(each.publish(points([8], ["b"], [(6, 6)], [20])), [(8, 1, 1)], "a message after opening")
            expect(each.move([1], [[6, 6, 7, 7]]), [(7, 1, -1)], "a move after opening")
            expect(each.advance(20), [(8, 1, -1)], "expiry after opening")


def check_memory_is_bounded_by_what_lives(method: str, options: dict[str, Any]) -> None:
    table = boxes(list(range(50)), ["a"] * 50, [(0, 0, 1, 1)] * 50)
    moving = Moving(table, method, SPACE, **options)
    sizes = []
    for k in range(120):
        ids = list(range(1000 * k, 1000 * k + 60))
        spots = [((7 * each) % 100 / 10, (3 * each) % 100 / 10) for each in ids]
        moving.publish(points(ids, ["a b c"] * 60, spots, [k + 3] * 60), now=k)
        shifted = (0.1 * k) % 9
        moving.move(list(range(50)), [[shifted, shifted, shifted + 1, shifted + 1]] * 50)
        sizes.append(moving.nbytes)
    assert moving.n_messages == 180
    assert max(sizes[60:]) <= 1.5 * max(sizes[20:40]), f"{max(sizes[20:40])} bytes grew to {max(sizes[60:])}"
