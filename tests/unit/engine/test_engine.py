from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import nearcast as nc
from nearcast.errors import ExpressionError, InvalidInput

UNION_SQUARE = (-73.99, 40.735)


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_text_in_matches_out() -> None:
    engine = nc.Engine()
    pizza = engine.subscribe("pizza AND (deal OR coupon) NOT frozen", near=UNION_SQUARE, km=2)
    assert engine.publish("Pizza deal at the corner", at=(-73.991, 40.731)) == [nc.Match(1, pizza)]
    assert engine.publish("Frozen pizza deal", at=(-73.991, 40.731)) == []
    assert engine.publish("Pizza, #nodeal", at=(-73.991, 40.731)) == []
    assert engine.publish("A pizza coupon, but far away", at=(-73.9, 40.731)) == []


def test_every_kind_of_place() -> None:
    engine = nc.Engine()
    everywhere = engine.subscribe("rain")
    box = engine.subscribe("rain", box=(0, 0, 10, 10))
    ring = {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]}
    dateline = engine.subscribe("rain", region=ring)
    circle = engine.subscribe("", region="circle(179.9, 0, 50km)")
    found = {m.subscription for m in engine.publish("rain", at=(180, 0))}
    assert found == {everywhere, dateline, circle}
    assert {m.subscription for m in engine.publish("rain", at=(-180, 0))} == found
    assert [m.subscription for m in engine.publish("rain", at=(10, 10))] == [everywhere, box]
    assert [m.subscription for m in engine.publish("rain", at=(9, 9, 12, 12))] == [everywhere, box]


def test_ids_are_optional_and_the_same_id_replaces() -> None:
    engine = nc.Engine()
    assert engine.subscribe("a") == 1
    assert engine.subscribe("a", id=7) == 7
    assert engine.subscribe("b", id=7) == 7
    assert engine.subscribe("a") == 8
    assert [m.subscription for m in engine.publish("a b", at=(0, 0))] == [1, 7, 8]
    assert [m.subscription for m in engine.publish("b", at=(0, 0), id=100)] == [7]
    assert engine.publish("a", at=(0, 0))[0].message == 101
    assert len(engine) == 3


def test_a_replacement_that_never_holds_silences_the_subscription() -> None:
    engine = nc.Engine()
    engine.subscribe("a", id=1)
    engine.subscribe("a NOT a", id=1)
    assert engine.publish("a", at=(0, 0)) == [] and len(engine) == 1
    assert not engine.explain(1, "a", at=(0, 0)).holds


def test_unsubscribing_is_complete_and_forgiving() -> None:
    engine = nc.Engine()
    first, second = engine.subscribe("a OR b"), engine.subscribe("a")
    engine.unsubscribe(first, 999)
    assert [m.subscription for m in engine.publish("a b", at=(0, 0))] == [second]
    engine.unsubscribe(second)
    assert engine.publish("a", at=(0, 0)) == [] and len(engine) == 0


def test_subscriptions_expire_by_the_given_clock() -> None:
    clock = Clock()
    engine = nc.Engine(clock=clock)
    soon = engine.subscribe("a", expires=timedelta(minutes=1))
    at = datetime.fromtimestamp(clock.now + 120, UTC)
    later = engine.subscribe("a", expires=at)
    naive = engine.subscribe("a", expires=at.replace(tzinfo=None) + timedelta(seconds=1))
    assert len(engine.publish("a", at=(0, 0))) == 3
    clock.now += 59.999
    assert len(engine.publish("a", at=(0, 0))) == 3
    clock.now += 0.001
    assert [m.subscription for m in engine.publish("a", at=(0, 0))] == [later, naive]
    assert soon not in [m.subscription for m in engine.publish("a", at=(0, 0))]
    clock.now += 60
    assert [m.subscription for m in engine.publish("a", at=(0, 0))] == [naive] and len(engine) == 1


def test_a_renewed_subscription_outlives_its_first_deadline() -> None:
    clock = Clock()
    engine = nc.Engine(clock=clock)
    engine.subscribe("a", id=1, expires=timedelta(seconds=10))
    engine.subscribe("a", id=1, expires=timedelta(seconds=100))
    clock.now += 50
    assert len(engine.publish("a", at=(0, 0))) == 1
    engine.subscribe("a", id=1)
    clock.now += 1000
    assert len(engine.publish("a", at=(0, 0))) == 1


def test_explain_says_which_tokens_matched_or_were_missing_and_how_far_away() -> None:
    engine = nc.Engine()
    pizza = engine.subscribe("pizza AND (deal OR coupon) NOT frozen", near=(0, 0), km=2)
    good = engine.explain(pizza, "Pizza coupon", at=(0.001, 0))
    assert good.holds and good.matched == ("coupon", "pizza") and good.inside and good.distance == 0
    assert "match" in str(good) and "coupon, pizza" in str(good)
    bad = engine.explain(pizza, "frozen pizza", at=(0.1, 0))
    assert not bad.holds and bad.missing in (("deal",), ("coupon",)) and bad.forbidden == ("frozen",)
    assert not bad.inside and bad.distance == pytest.approx(11.1195 - 2, abs=0.01)
    assert "missing: " in str(bad) and "must not occur but does: frozen" in str(bad) and "km outside" in str(bad)


@pytest.mark.parametrize("seed", range(4))
def test_explain_agrees_with_publish(seed: int) -> None:
    import random

    rng = random.Random(seed)
    engine = nc.Engine(space=(0, 0, 10, 10))
    words = ["a", "b", "c"]
    for _ in range(30):
        expression = f"{rng.choice(words)} {rng.choice(['AND', 'OR', 'AND NOT'])} {rng.choice(words)}"
        places: list[dict[str, Any]] = [{"near": (rng.randint(0, 9), 5), "km": 2}, {"box": (2, 2, 5, 5)}, {}]
        engine.subscribe(expression, **rng.choice(places))
    for _ in range(20):
        text = " ".join(rng.sample(words, rng.randint(0, 3)))
        at = (rng.randint(0, 10), rng.randint(0, 10))
        found = {m.subscription for m in engine.publish(text, at=at)}
        assert found == {s for s in range(1, 31) if engine.explain(s, text, at=at).holds}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e.subscribe("a", near=(0, 0)), "near= and km= .* go together"),
        (lambda e: e.subscribe("a", km=2), "near= and km= .* go together"),
        (lambda e: e.subscribe("a", near=(0, 0), km=1, box=(0, 0, 1, 1)), "give one of"),
        (lambda e: e.subscribe("a", near=(0, 0, 0), km=1), "near= takes 2 numbers"),
        (lambda e: e.subscribe("a", near=(0, 91), km=1), "between -90 and 90|latitude"),
        (lambda e: e.subscribe("a", near=(0, 0), km=-1), "radius"),
        (lambda e: e.subscribe("a", box=(5, 0, 1, 1)), "xmin"),
        (lambda e: e.subscribe("a", id=1.5), "whole number"),
        (lambda e: e.subscribe("a", id=True), "whole number"),
        (lambda e: e.subscribe("a", id=2**63), "whole number"),
        (lambda e: e.publish("a", at=(0,)), "point"),
        (lambda e: e.publish("a", at="here"), "point"),
        (lambda e: e.publish("a", at=(float("nan"), 0)), "missing or NaN"),
        (lambda e: e.explain(5, "a", at=(0, 0)), "no live subscription 5"),
    ],
)
def test_bad_arguments_are_named(call: Any, words: str) -> None:
    engine = nc.Engine()
    with pytest.raises(InvalidInput, match=words):
        call(engine)
    assert len(engine) == 0


def test_a_bad_expression_points_at_the_character() -> None:
    with pytest.raises(ExpressionError) as caught:
        nc.Engine().subscribe("pizza AND (deal")
    assert caught.value.position == 10 and "\n  pizza AND (deal\n            ^" in str(caught.value)


def test_tokens_may_be_given_instead_of_text() -> None:
    engine = nc.Engine()
    number = engine.subscribe('"new york" pizza')
    assert [m.subscription for m in engine.publish(tokens=["new", "york", "pizza"], at=(0, 0))] == [number]
    assert engine.publish(tokens=["york", "new", "pizza"], at=(0, 0)) == []
    assert engine.publish(tokens=["New", "York", "pizza"], at=(0, 0)) == []


def test_an_engine_grows_from_nothing_to_thousands() -> None:
    engine = nc.Engine(space=(0, 0, 100, 100))
    for i in range(600):
        engine.subscribe(f"w{i % 7}", box=(i % 50, i % 40, i % 50 + 5, i % 40 + 5))
    for x, y in ((3, 3), (20.5, 20), (49, 39)):
        found = {m.subscription - 1 for m in engine.publish("w1 w2", at=(x, y))}
        wanted = {i for i in range(600) if i % 7 in (1, 2) and i % 50 <= x <= i % 50 + 5 and i % 40 <= y <= i % 40 + 5}
        assert found == wanted


def test_time_never_goes_back() -> None:
    clock = Clock()
    engine = nc.Engine(clock=clock)
    engine.subscribe("rain", expires=timedelta(seconds=10))
    stays = engine.subscribe("rain")
    clock.now += 20
    assert [match.subscription for match in engine.publish("rain", at=(0, 0))] == [stays]
    clock.now -= 20  # what has expired stays expired, whether it has been forgotten or not
    assert [match.subscription for match in engine.publish("rain", at=(0, 0))] == [stays]
    assert len(engine) == 1
    late = engine.subscribe("rain", expires=timedelta(seconds=10))  # from the newest time on
    clock.now += 25
    assert [match.subscription for match in engine.publish("rain", at=(0, 0))] == [stays, late]


def test_advance_to_an_earlier_time_raises_and_changes_nothing() -> None:
    clock = Clock()
    engine = nc.Engine(clock=clock)
    follower = engine.subscribe("rain", box=(0, 0, 1, 1), follow=True)
    engine.publish("rain", at=(0.5, 0.5), id=4, expires=timedelta(seconds=10))
    earlier = datetime.fromtimestamp(clock.now - 1, UTC)
    with pytest.raises(InvalidInput, match="the newest time so far; time does not go backwards"):
        engine.advance(earlier)
    assert engine.results(follower)["message"].to_pylist() == [4]
    assert engine.advance(timedelta(seconds=10)) == [nc.Change(4, follower, -1)]
    assert engine.advance() == []
