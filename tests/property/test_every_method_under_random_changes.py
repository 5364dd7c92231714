"""A state machine per method: inserts, replacements and removals in any order, against a plain dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit import JIT_DISABLED
from nearcast.matching.checks.cases import Message, Subscription, answers, built, insert, point, remove, variants
from nearcast.matching.method import method_names

# Tiny pools: three boxes and four terms make equal boxes and equal rows the rule, not the exception.
BOXES = st.sampled_from([(0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 0.5, 0.5), (0.25, 0.0, 1.0, 1.0)])
TERMS = st.lists(st.integers(0, 3), max_size=3, unique=True)
IDS = st.integers(0, 7)
PLACES = st.sampled_from([point(0.5, 0.5), point(0.25, 0.25), point(0.9, 0.9), (0.0, 0.4, 1.0, 0.6)])


def concerns(s: Subscription, m: Message) -> bool:
    inside = s.box[0] <= m.box[2] and m.box[0] <= s.box[2] and s.box[1] <= m.box[3] and m.box[1] <= s.box[3]
    return inside and set(s.terms) <= set(m.terms) and not set(s.not_terms) & set(m.terms)


class Changes(RuleBasedStateMachine):
    method = "brute"

    def __init__(self) -> None:
        super().__init__()
        self.matcher = built(self.method, [])
        self.held: dict[int, list[Subscription]] = {}

    @rule(id=IDS, rows=st.lists(st.tuples(TERMS, BOXES, TERMS), min_size=1, max_size=3))
    def subscribe(self, id: int, rows: list[tuple[list[int], tuple[float, ...], list[int]]]) -> None:
        made = [Subscription(id, terms, box, sorted(set(nots) - set(terms))) for terms, box, nots in rows]
        insert(self.matcher, made)
        self.held[id] = made

    @rule(ids=st.lists(IDS, max_size=4))
    def unsubscribe(self, ids: list[int]) -> None:
        remove(self.matcher, ids)
        for id in ids:
            self.held.pop(id, None)

    @rule(terms=TERMS, place=PLACES)
    def publish(self, terms: list[int], place: tuple[float, float, float, float]) -> None:
        message = Message(terms, place)
        wanted = sorted(id for id, rows in self.held.items() if any(concerns(row, message) for row in rows))
        assert answers(self.matcher, [message]) == [wanted]

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.matcher) == len(self.held)
        assert self.matcher.store.live == sum(len(rows) for rows in self.held.values())
        frequencies = np.zeros(4, int)
        for rows in self.held.values():
            for row in rows:
                frequencies[list(row.terms)] += 1
        assert self.matcher.store.frequencies.tolist() == frequencies[: self.matcher.store.n_terms].tolist()


@pytest.mark.parametrize("method", [variant for name in method_names("match") for variant in variants(name)])
def test_changes(method: str) -> None:
    machine = type("Changes", (Changes,), {"method": method})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=8 if JIT_DISABLED else 40, stateful_step_count=25, deadline=None),
    )
