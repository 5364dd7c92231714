"""An engine with all four kinds at once against one in plain Python, event for event."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import nearcast as nc
from engine_reference import EXPRESSIONS, Event, PlainEngine, Region, Subscriber
from nearcast.arrays.jit import JIT_DISABLED

IDS = st.integers(1, 6)
MESSAGE_IDS = st.one_of(st.none(), st.integers(1, 4))
AT = st.sampled_from([0.03, 0.29, 0.5, 0.97])
SIZES = st.sampled_from([0.0, 0.21, 0.45])
POINTS = st.tuples(AT, AT)
BOXES = st.tuples(AT, AT, SIZES, SIZES).map(lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3]))
CIRCLES = st.tuples(AT, AT, st.sampled_from([0.1, 0.3]))
WORDS = st.lists(st.sampled_from("abc"), max_size=4)
LATER = st.sampled_from([0.0, 0.0, 1.0, 2.5])
EXPIRES = st.sampled_from([math.inf, math.inf, 1.0, 3.0])
PLACES = st.one_of(POINTS, BOXES)
WINDOWS = st.sampled_from([1.0, 3.0, 2.5])  # messages, messages, seconds


def place_of(region: Region) -> dict[str, Any]:
    if len(region) == 4:
        return {"box": region}
    return {"near": region[:2], "km": region[2]}


def span(seconds: float) -> timedelta | None:
    return None if seconds == math.inf else timedelta(seconds=seconds)


class EngineMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.plain = PlainEngine()
        self.engine = nc.Engine("brute", space=(0, 0, 1, 1), clock=lambda: self.plain.clock)
        self.next_message = 1

    # -- subscriptions

    @rule(id=IDS, words=st.sampled_from(sorted(EXPRESSIONS)), region=st.one_of(BOXES, CIRCLES), expires=EXPIRES)
    def subscribe(self, id: int, words: str, region: Region, expires: float) -> None:
        self.engine.subscribe(words, **place_of(region), id=id, expires=span(expires))
        self.plain.subscribe(id, Subscriber("match", words, region, self.plain.now + expires))

    @rule(id=IDS, words=st.sampled_from(["a", "b c"]), box=BOXES, threshold=st.sampled_from([0.3, 0.6]))
    def rank(self, id: int, words: str, box: Region, threshold: float) -> None:
        self.engine.subscribe(words, box=box, id=id, kind="rank", alpha=0.4, threshold=threshold)
        self.plain.subscribe(id, Subscriber("rank", words, box, alpha=0.4, threshold=threshold))

    @rule(
        id=IDS,
        words=st.sampled_from(["a", "b c"]),
        at=POINTS,
        k=st.integers(1, 2),
        alpha=st.sampled_from([0.0, 0.35, 1.0]),
        window=WINDOWS,
        max_dist=st.sampled_from([None, 0.7]),
        expires=EXPIRES,
    )
    def top(
        self, id: int, words: str, at: Region, k: int, alpha: float, window: float, max_dist: float, expires: float
    ) -> None:
        size = int(window) if window == int(window) else timedelta(seconds=window)
        parameters = {"kind": "top", "k": k, "alpha": alpha, "window": size, "max_dist": max_dist}
        self.engine.subscribe(words, near=at, id=id, expires=span(expires), **parameters)
        ends = self.plain.now + expires
        new = Subscriber("top", words, at, ends, alpha=alpha, k=k, window=window, max_dist=max_dist)
        self.plain.subscribe(id, new)

    @rule(
        id=IDS,
        words=st.sampled_from(sorted(EXPRESSIONS)),
        region=st.one_of(BOXES, CIRCLES),
        dwell=st.sampled_from([0.0, 0.0, 1.0, 3.0]),
        expires=EXPIRES,
    )
    def follow(self, id: int, words: str, region: Region, dwell: float, expires: float) -> None:
        how = {"follow": True, "dwell": timedelta(seconds=dwell) if dwell else None}
        self.engine.subscribe(words, **place_of(region), id=id, expires=span(expires), **how)
        self.plain.subscribe(id, Subscriber("follow", words, region, self.plain.now + expires, dwell=dwell))

    @rule(ids=st.lists(IDS, max_size=2))
    def unsubscribe(self, ids: list[int]) -> None:
        same(self.engine.unsubscribe(*ids), self.plain.unsubscribe(ids))

    # -- steps

    @rule(id=MESSAGE_IDS, words=WORDS, place=PLACES, lives=EXPIRES, later=LATER)
    def publish(self, id: int | None, words: list[str], place: Region, lives: float, later: float) -> None:
        self.plain.clock += later
        got = self.engine.publish(tokens=words, at=place, id=id, expires=span(lives))
        number = self.next_message if id is None else id
        self.next_message = max(self.next_message, number + 1)
        same(got, self.plain.publish(number, words, place if len(place) == 4 else place * 2, lives))

    @rule(
        messages=st.lists(st.tuples(st.integers(1, 9), WORDS, BOXES), max_size=3, unique_by=lambda each: each[0]),
        later=LATER,
    )
    def publish_many(self, messages: list[tuple[int, list[str], Region]], later: float) -> None:
        self.plain.clock += later
        rows = [
            {"id": each, "text": " ".join(words), **dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))}
            for each, words, box in messages
        ]
        if not rows:
            return
        was_alone = self.engine._results is None
        got = self.engine.publish_many(rows).to_pylist()
        wanted = [event for each in messages for event in self.plain.publish(*each, math.inf)]
        if was_alone:
            wanted.sort(key=lambda event: event[1:3])
        events = [
            nc.Match(row["message"], row["subscription"], row.get("score"))
            if row.get("change") is None
            else nc.Change(row["message"], row["subscription"], row["change"], row["score"])
            for row in got
        ]
        same(events, wanted)

    @rule(id=IDS, place=PLACES, later=LATER)
    def move(self, id: int, place: Region, later: float) -> None:
        self.plain.clock += later
        own = self.plain.subscribers.get(id)
        is_live = own is not None and own.kind == "follow" and own.expires > self.plain.now
        is_point = own is not None and own.region[:2] == own.region[2:]
        if not is_live or (len(place) == 2 and own is not None and len(own.region) == 4 and not is_point):
            with pytest.raises(nc.InvalidInput):
                self.engine.move(id, place)
            return
        same(self.engine.move(id, place), self.plain.move(id, place))

    @rule(later=LATER)
    def advance(self, later: float) -> None:
        self.plain.clock += later
        same(self.engine.advance(), self.plain.advance())

    @rule(later=st.sampled_from([0.5, 2.5]))
    def advance_ahead(self, later: float) -> None:
        same(self.engine.advance(timedelta(seconds=later)), self.plain.advance(later))

    @rule()
    def the_clock_goes_back(self) -> None:
        """After a step: a subscription that expired since the last one may have been forgotten, or may live again."""
        same(self.engine.advance(), self.plain.advance())
        self.plain.clock = max(0.0, self.plain.clock - 1.0)

    @rule(
        call=st.sampled_from(
            [
                lambda engine: engine.publish("a", at=(0.5, math.nan)),
                lambda engine: engine.publish("a", at=(0.5, 0.5), expires=5),
                lambda engine: engine.publish(tokens=[1], at=(0.5, 0.5), expires=timedelta(1)),
                lambda engine: engine.publish_many({"id": [1], "text": ["a"], "x": [math.nan], "y": [0.5]}),
                lambda engine: engine.move(1, (0.5,)),
                lambda engine: engine.move(1, (0.9, 0.0, 0.1, 1.0)),
                lambda engine: engine.move(7, (0.5, 0.5)),
                lambda engine: engine.subscribe("a", near=(0, 0), id=1, kind="top", window=0),
                lambda engine: engine.subscribe("a OR b", near=(0, 0), id=1, kind="top", window=3),
                lambda engine: engine.subscribe("a", near=(0, 0), km=-1, id=1, follow=True),
                lambda engine: engine.subscribe("a (", near=(0, 0), km=1, id=1, follow=True),
            ]
        )
    )
    def bad_input_changes_nothing(self, call: Any) -> None:
        with pytest.raises(nc.InvalidInput):
            call(self.engine)

    @invariant()
    def results_are_the_same(self) -> None:
        assert len(self.engine) == len(self.plain.alive())
        for number, own in self.plain.subscribers.items():
            if own.kind in ("top", "follow"):
                rows = self.engine.results(number).to_pylist()
                assert [row["message"] for row in rows] == [message for _, message, _ in own.results]
                wanted = [score for *_, score in own.results]
                assert [row.get("score") for row in rows] == [pytest.approx(score) for score in wanted]


def same(got: list[Any], wanted: list[Event]) -> None:
    made = [("match" if isinstance(each, nc.Match) else "change", *each) for each in got]
    assert [each[:-1] for each in made] == [each[:-1] for each in wanted]
    assert [each[-1] for each in made] == [pytest.approx(each[-1]) if each[-1] is not None else None for each in wanted]


def test_all_kinds_in_one_engine() -> None:
    examples = 40 if JIT_DISABLED else 150
    run_state_machine_as_test(
        EngineMachine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None)
    )
