"""Moving subscriptions against sets of plain Python: changes are the difference of two evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from nearcast.arrays.jit import JIT_DISABLED
from nearcast.moving.method import REGISTRY, moving_methods
from nearcast.moving.moving import Moving

Box = tuple[float, float, float, float]

EXPRESSIONS: dict[str, Callable[[set[str]], bool]] = {
    "a": lambda words: "a" in words,
    "a b": lambda words: {"a", "b"} <= words,
    "b OR c": lambda words: bool({"b", "c"} & words),
    "a NOT b": lambda words: "a" in words and "b" not in words,
    "(a OR c) NOT b": lambda words: bool({"a", "c"} & words) and "b" not in words,
    "NOT c": lambda words: "c" not in words,
    "b NOT b": lambda words: False,
}
COORDINATES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
SIZES = st.sampled_from([0.0, 0.25, 0.75])
BOXES = st.tuples(COORDINATES, COORDINATES, SIZES, SIZES).map(lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3]))
WORDS = st.sets(st.sampled_from("abcd"), max_size=3)
IDS = st.integers(0, 5)
MOVES = st.lists(st.tuples(IDS, BOXES), max_size=4)
MESSAGES = st.lists(
    st.tuples(IDS, WORDS, BOXES, st.integers(0, 3)), min_size=1, max_size=3, unique_by=lambda message: message[0]
)


class Message(NamedTuple):
    words: set[str]
    box: Box
    expires: int


def overlap(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


class MovingMachine(RuleBasedStateMachine):
    method = "brute"
    options: dict[str, Any] = {}

    def __init__(self) -> None:
        super().__init__()
        self.moving = Moving(None, self.method, (0.0, 0.0, 1.0, 1.0), **self.options)
        self.now = 0
        self.subscriptions: dict[int, tuple[str, Box]] = {}
        self.messages: dict[int, Message] = {}
        self.pairs: set[tuple[int, int]] = set()
        self.moving.advance(0)

    @rule(rows=st.dictionaries(IDS, st.tuples(st.sampled_from(sorted(EXPRESSIONS)), BOXES), min_size=1, max_size=3))
    def subscribe(self, rows: dict[int, tuple[str, Box]]) -> None:
        columns = dict(
            zip(("xmin", "ymin", "xmax", "ymax"), zip(*(box for _, box in rows.values()), strict=True), strict=True)
        )
        table = {"id": list(rows), "expression": [words for words, _ in rows.values()], **columns}
        self.subscriptions |= rows
        self.expect(self.moving.subscribe(table))

    @rule(ids=st.sets(IDS, max_size=2))
    def unsubscribe(self, ids: set[int]) -> None:
        known = [each for each in sorted(ids) if each in self.subscriptions]
        for each in known:
            del self.subscriptions[each]
        self.expect(self.moving.unsubscribe(known))

    @rule(moves=MOVES, later=st.integers(0, 2))
    def move(self, moves: list[tuple[int, Box]], later: int) -> None:
        known = self.moved(moves)
        self.advance_clock(later)
        self.expect(self.moving.move([each for each, _ in known], [box for _, box in known], now=self.now))

    @rule(messages=MESSAGES)
    def publish(self, messages: list[tuple[int, set[str], Box, int]]) -> None:
        self.expect(self.moving.publish(self.published(messages)))

    @rule(later=st.integers(0, 2))
    def advance(self, later: int) -> None:
        self.advance_clock(later)
        self.expect(self.moving.advance(self.now))

    @rule(messages=MESSAGES, moves=MOVES, later=st.integers(0, 2))
    def all_at_once(self, messages: list[Any], moves: list[tuple[int, Box]], later: int) -> None:
        self.advance_clock(later)
        known, table = self.moved(moves), self.published(messages, later)
        self.advance_clock(0)
        self.expect(self.moving.step(self.now, table, [each for each, _ in known], [box for _, box in known]))

    def moved(self, moves: list[tuple[int, Box]]) -> list[tuple[int, Box]]:
        known = [(each, box) for each, box in moves if each in self.subscriptions]
        for each, box in known:
            self.subscriptions[each] = (self.subscriptions[each][0], box)
        return known

    def published(self, messages: list[tuple[int, set[str], Box, int]], ago: int = 0) -> pa.Table:
        stamps = [self.now - ago + lives for _, _, _, lives in messages]
        for (each, words, box, _), expires in zip(messages, stamps, strict=True):
            self.messages[each] = Message(words, box, expires)
        self.advance_clock(0)
        columns = dict(
            zip(("xmin", "ymin", "xmax", "ymax"), zip(*(box for _, _, box, _ in messages), strict=True), strict=True)
        )
        tokens = pa.array([sorted(words) for _, words, _, _ in messages], pa.list_(pa.string()))
        expires = pa.array(stamps, pa.timestamp("us", "UTC"))
        return pa.table({"id": [each for each, *_ in messages], "tokens": tokens, "expires": expires, **columns})

    def advance_clock(self, later: int) -> None:
        self.now += later
        self.messages = {each: message for each, message in self.messages.items() if message.expires > self.now}

    def expect(self, changes: pa.Table) -> None:
        pairs = {
            (m, s)
            for m, message in self.messages.items()
            for s, (expression, box) in self.subscriptions.items()
            if overlap(message.box, box) and EXPRESSIONS[expression](message.words)
        }
        wanted = sorted([(*pair, 1) for pair in pairs - self.pairs] + [(*pair, -1) for pair in self.pairs - pairs])
        columns = (changes.column(name).to_pylist() for name in ("message", "subscription", "change"))
        assert list(zip(*columns, strict=True)) == wanted
        self.pairs = pairs
        assert len(self.moving) == len(self.subscriptions) and self.moving.n_messages == len(self.messages)
        for s in self.subscriptions:
            assert self.moving.results(s).column("message").to_pylist() == sorted(m for m, own in pairs if own == s)


CASES = [(name, dict(options)) for name in moving_methods() for options in REGISTRY[name].checked_with]


@pytest.mark.parametrize(("method", "options"), CASES, ids=str)
def test_steps(method: str, options: dict[str, Any]) -> None:
    machine = type("MovingMachine", (MovingMachine,), {"method": method, "options": options})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=15 if JIT_DISABLED else 60, stateful_step_count=30, deadline=None),
    )
