"""Auto: chooses the method that costs least on a sample.

Paper      nearcast; the default everywhere.
Idea       Build the methods that state their costs on a sample of the rows. Count their work on expected messages
           (given, seen, or made up from rows), weigh the counts by fitted costs, and keep `pyramid` unless another
           method is clearly cheaper. Plan again when messages drift or the rows have grown fourfold.
Layout     the layout of the chosen method, and one byte a row.
Cost       the cost of the chosen method. A plan took 20 to 120 ms at up to 100,000 rows; plans that follow drift, and
           switches, take at most a tenth of the matching time.
Deviates   nothing.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.growable import grown
from nearcast.geo.space import Space
from nearcast.indexes.auto.drift import DriftDetector, Load
from nearcast.indexes.auto.trial import DEFAULT, FEW, MOST_MESSAGES, estimates, made_up
from nearcast.indexes.auto.view import AutoPointView, AutoView, cost_of
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import Method, make_method, point_searcher
from nearcast.matching.sample import sample_messages
from nearcast.matching.store import RowStore, StoreView
from nearcast.model import Hits, MessageBatch, Work

GAIN = 1.5  # switch only to a method this many times cheaper: estimates were 0.3 to 1.6 of the measured time
GIVEN, SEEN, MADE_UP = "given", "seen", "made up"


class Plan(NamedTuple):
    """The input and the outcome of a choice."""

    rows: int = 0
    messages: str = MADE_UP
    terms: float = 0.0
    work: float = 0.0
    costs: dict[str, float] = {}  # nanoseconds a message, by method, as estimated; never changed
    planning_s: float = 0.0  # how long the plan and the build took


class Auto(Method):
    name = "auto"
    paper = "nearcast"
    effort_ceiling = 0.2  # that of the most wasteful method that it may choose

    def __init__(self, store: RowStore, space: Space) -> None:
        super().__init__(store, space)
        self._use(make_method(DEFAULT, store, space, {}))
        self.plans = self.switches = 0
        self._is_indexed = np.zeros(0, np.uint8)  # by row; another method is built from these rows
        self._given: MessageBatch | None = None
        self._plan = Plan()
        self._drift = DriftDetector()
        self._may_switch = True  # between builds

    # -- planning

    @property
    def expected(self) -> MessageBatch | None:
        seen = self._drift.recent
        return self._given if seen is None else seen

    def expect(self, messages: MessageBatch) -> None:
        self._given = sample_messages(messages, MOST_MESSAGES) if messages.size else None

    def _decide(self, rows: np.ndarray, at_build: bool) -> None:
        """Plan for these rows. A build always builds the choice; otherwise only a new choice is built."""
        start = time.perf_counter()
        messages, source = self._messages(rows) if len(rows) >= FEW else (None, MADE_UP)
        costs = {} if messages is None else estimates(self.store, self.space, rows, messages, self.chosen.name)
        self._take(_best(costs, self.chosen.name), rows, at_build)
        load = Load(0.0, 0.0) if messages is None else self._load(messages)
        took = max(time.perf_counter() - start, 0.0 if at_build else self._plan.planning_s)
        self._plan = Plan(len(rows), source, *load, costs, took)
        self._drift.start(load if costs else None, took)
        self.plans += 1

    def _take(self, name: str, rows: np.ndarray, at_build: bool) -> None:
        if name == self.chosen.name and not at_build:
            return
        method = make_method(name, self.store, self.space, {})
        method.build(rows)
        self.switches += int(self.plans > 0 and name != self.chosen.name)
        self._use(method)

    def _use(self, method: Method) -> None:
        self.chosen, self.changes_in_place = method, method.changes_in_place

    def _messages(self, rows: np.ndarray) -> tuple[MessageBatch, str]:
        seen = self._drift.recent
        if seen is not None:
            return sample_messages(checked_messages(seen, self.store.n_terms), MOST_MESSAGES), SEEN
        if self._given is not None:
            return checked_messages(self._given, self.store.n_terms), GIVEN
        return made_up(self.store, rows), MADE_UP

    def _load(self, messages: MessageBatch) -> Load:
        """The load of the chosen method on these messages."""
        n = max(1, messages.size)
        work = self.chosen.match(messages)[1][:3]
        return Load(len(messages.terms) / n, cost_of(type(self.chosen), messages, work) / n)

    @property
    def plan(self) -> str:
        plan = self._plan
        if not plan.costs:
            return f"{self.chosen.name}: {plan.rows:,} rows are too few to try others"
        others = [name for name in sorted(plan.costs, key=plan.costs.__getitem__) if name != self.chosen.name]
        compared = ", ".join(f"{name} {plan.costs[name] / 1e3:.2f}" for name in others)
        return (
            f"{self.chosen.name}: planned for {plan.rows:,} rows and messages of {plan.terms:.0f} known terms "
            f"({plan.messages}) at {plan.costs[self.chosen.name] / 1e3:.2f} us each "
            f"({compared or 'others far behind'}); "
            f"plans {self.plans}, switches {self.switches}"
        )

    # -- changes

    def build(self, rows: np.ndarray) -> None:
        self._is_indexed = np.zeros(self.store.high, np.uint8)
        self._is_indexed[rows] = 1
        self._may_switch = True
        self._decide(rows, at_build=True)

    def insert(self, rows: np.ndarray) -> None:
        self.chosen.insert(rows)
        self._is_indexed = grown(self._is_indexed, self.store.high, fill=0)
        self._is_indexed[rows] = 1
        self._may_switch = True

    def remove(self, rows: np.ndarray) -> None:
        self.chosen.remove(rows)
        self._is_indexed[rows] = 0
        self._may_switch = True

    # -- matching

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        return self.searcher(self.store.view()).match(messages)

    def searcher(self, store: StoreView) -> AutoView:
        inner, chosen = self.chosen.searcher(store), type(self.chosen)
        points = point_searcher(inner)
        return AutoView(inner, chosen, self._drift) if points is None else AutoPointView(points, chosen, self._drift)

    @property
    def needs_upkeep(self) -> bool:
        return self._drift.due and self._may_switch

    def keep_up(self) -> None:
        """Plan again, if messages have drifted."""
        if self._drift.due:
            self._decide(np.flatnonzero(self._is_indexed).astype(np.int32), at_build=False)

    @property
    def nbytes(self) -> int:
        return self.chosen.nbytes + int(self._is_indexed.nbytes)

    # -- files

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, inner = self.chosen.state()
        planned = {"plan": self._plan._asdict(), "plans": self.plans, "switches": self.switches}
        expected = self.expected
        if expected is not None:
            arrays = arrays | {f"expected_{name}": array for name, array in expected._asdict().items()}
        return arrays | {"is_indexed": self._is_indexed}, {"chosen": self.chosen.name, "inner": inner} | planned

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self._use(make_method(header["chosen"], self.store, self.space, {}))
        self.chosen.restore(arrays, header["inner"])
        self._is_indexed = arrays["is_indexed"]
        if "expected_ids" in arrays:
            self._given = MessageBatch(*(arrays[f"expected_{name}"] for name in MessageBatch._fields))
        self._plan, self.plans, self.switches = Plan(**header["plan"]), header["plans"], header["switches"]
        self._drift.start(Load(self._plan.terms, self._plan.work) if self._plan.costs else None, self._plan.planning_s)
        self._may_switch = False  # until a change: processes may share these arrays, but not those of another method


def _best(costs: dict[str, float], present: str) -> str:
    """The cheapest method, if it gains enough over the present method; ties go to the default."""
    if not costs:
        return DEFAULT
    name = min(costs, key=lambda each: (costs[each], each != DEFAULT))
    return name if GAIN * costs[name] < costs.get(present, math.inf) else present
