"""Throughput while subscriptions come and go: one operation after another, each a call of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.ragged import starts_of
from nearcast.bench.runs.agreement import require_agreement, sorted_hits
from nearcast.bench.runs.measure import share_within, timed
from nearcast.matching.method import Method
from nearcast.model import Hits, MessageBatch

MESSAGE, INSERT, REMOVE = range(3)
_UPDATES_EACH = 0.1  # of the operations are inserts, and as many removals: the R^t-tree paper's mix (§7.5)


class MixedPlan(NamedTuple):
    """How to measure."""

    operations: int
    rounds: int
    budget_s: float  # of CPU time for each method; a slow one gets fewer operations
    seed: int


class Operations(NamedTuple):
    """What is done, in order. Rows to insert are out of the index before, rows to remove are in it; all are different,
    so that undoing is inserting the one and removing the other kind.
    """

    kinds: np.ndarray  # int8[n]
    inserted: np.ndarray  # int32[...]  the row of each INSERT
    removed: np.ndarray  # int32[...]  the row of each REMOVE
    messages: MessageBatch  # of each MESSAGE, from the first again where they are used up


def run_mixed(
    methods: dict[str, Method], rows: np.ndarray, messages: MessageBatch, plan: MixedPlan, what: str
) -> list[dict[str, Any]]:
    """CPU time of every round, and what each method found compared. The methods hold all rows before and after."""
    operations = drawn_operations(rows, messages, plan)
    for method in methods.values():
        method.remove(operations.inserted)
    shares = {name: _share(method, operations, plan) for name, method in methods.items()}
    found = {name: _joined(_play(method, operations, shares[name])) for name, method in methods.items()}
    require_agreement(found, f"{what}, among updates")
    rounds: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(plan.rounds):
        for name, method in methods.items():
            calls = _calls(method, operations, shares[name])
            rounds[name].append(timed(_call_all, calls)[1].cpu_s)
            _undo(method, operations, shares[name])
    for method in methods.values():
        method.insert(operations.inserted)
    return [{"method": name, "operations": shares[name], "rounds_cpu_s": rounds[name]} for name in methods]


def drawn_operations(rows: np.ndarray, messages: MessageBatch, plan: MixedPlan) -> Operations:
    """The plan's operations in random order; without messages or with few rows, fewer."""
    rng = np.random.default_rng(plan.seed)
    updates = min(int(plan.operations * _UPDATES_EACH), len(rows) // 2)
    counts = [plan.operations - 2 * updates if messages.size else 0, updates, updates]
    kinds = rng.permutation(np.repeat(np.arange(3, dtype=np.int8), counts))
    chosen = rng.choice(rows, 2 * updates, replace=False).astype(np.int32)
    return Operations(kinds, chosen[:updates], chosen[updates:], messages)


Call = tuple[Callable[[Any], Any], Any]


def _calls(method: Method, operations: Operations, n: int) -> list[Call]:
    """The first n operations, ready to be called."""
    messages = operations.messages
    does: dict[int, Callable[[Any], Any]] = {MESSAGE: method.match, INSERT: method.insert, REMOVE: method.remove}
    seen = [0, 0, 0]
    calls: list[Call] = []
    for kind in operations.kinds[:n].tolist():
        k = seen[kind]
        seen[kind] += 1
        if kind == MESSAGE:
            at = k % messages.size
            calls.append((does[kind], messages.part(at, at + 1)))
        else:
            rows = operations.inserted if kind == INSERT else operations.removed
            calls.append((does[kind], rows[k : k + 1]))
    return calls


def _call_all(calls: list[Call]) -> list[Any]:
    return [call(argument) for call, argument in calls]


def _play(method: Method, operations: Operations, n: int) -> list[Hits]:
    """What was found for each message, on the rows of that moment. The method is as before afterwards."""
    answers = _call_all(_calls(method, operations, n))
    _undo(method, operations, n)
    return [answer[0] for answer in answers if answer is not None]


def _undo(method: Method, operations: Operations, n: int) -> None:
    kinds = operations.kinds[:n]
    method.remove(operations.inserted[: np.count_nonzero(kinds == INSERT)])
    method.insert(operations.removed[: np.count_nonzero(kinds == REMOVE)])


def _share(method: Method, operations: Operations, plan: MixedPlan) -> int:
    return share_within(
        lambda n: _play(method, operations, n), len(operations.kinds), plan.budget_s, 2 * plan.rounds + 1
    )


def _joined(hits: list[Hits]) -> Hits:
    """The answers one after another, each sorted."""
    counts = np.array([len(each.rows) for each in hits], np.int64)
    rows = np.concatenate([each.rows for each in hits]) if hits else np.empty(0, np.int32)
    return sorted_hits(Hits(rows, starts_of(counts)))
