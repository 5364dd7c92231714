"""Updates: subscriptions inserted after the build, rows removed and inserted again, and updates among messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from nearcast.arrays.ragged import starts_of
from nearcast.bench.runs.agreement import require_agreement, sorted_hits
from nearcast.bench.runs.case import Case, Methods, Record, Settings
from nearcast.bench.runs.timing import share_within, timed
from nearcast.bench.workloads.rows import rows_and_shapes
from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch

MESSAGE, INSERT, REMOVE = range(3)
_UPDATES_EACH = 0.1  # share of inserts, and of removals: the R^t-tree paper's mix (§7.5)
_BATCH = 1_000
_CHECKED_MESSAGES = 50  # of each group, after the updates


def run_inserts(methods: Methods, store: RowStore, case: Case) -> list[Record]:
    """CPU time of every insert by method; empty if the index is built with all subscriptions.

    A batch is stored just before it is inserted: no method sees the rows of later batches.
    """
    workload = case.workload
    if workload.n_built == workload.subscriptions:
        return []
    case.begin(f"inserting {workload.subscriptions - workload.n_built:,} subscriptions")
    sizes: list[int] = []
    inserts: dict[str, list[float]] = {name: [] for name in methods}
    for first in range(workload.n_built, workload.subscriptions, _BATCH):
        drawn = draw_subscriptions(case.corpus, workload, first, min(first + _BATCH, workload.subscriptions))
        rows = store.add(*rows_and_shapes(workload, drawn, first))
        sizes.append(drawn.size)
        for name, method in methods.items():
            inserts[name].append(timed(method.insert, rows)[1].cpu_s)
    return [{"method": name, "rows": sizes, "insert_cpu_s": inserts[name]} for name in methods]


def run_updates(methods: Methods, store: RowStore, case: Case) -> list[Record]:
    """CPU time of removing random rows from each method and inserting them again; then all methods must agree."""
    workload = case.workload
    n = min(case.settings.updates, store.live // 2)
    rows = np.random.default_rng(workload.seed).choice(store.live_rows(), n, replace=False)
    batches = [rows[start : start + _BATCH] for start in range(0, n, _BATCH)]
    sizes = [len(batch) for batch in batches]
    measured = []
    for name, method in methods.items():
        case.begin(f"updating {name}")
        removals = [timed(method.remove, batch)[1].cpu_s for batch in batches]
        inserts = [timed(method.insert, batch)[1].cpu_s for batch in batches]
        measured.append({"method": name, "rows": sizes, "remove_cpu_s": removals, "insert_cpu_s": inserts})
    first = np.arange(min(workload.messages, _CHECKED_MESSAGES))
    for group in workload.groups:
        messages = checked_messages(case.messages(group, first), store.n_terms)
        found = {name: sorted_hits(method.match(messages)[0]) for name, method in methods.items()}
        require_agreement(found, f"{workload.name}, {group}, after {n:,} updates")
    return measured


# -- updates among messages


class Operations(NamedTuple):
    """Messages, inserts and removals in random order, one call for each.

    Rows to insert are not in the index before; rows to remove are. All rows are different, so that the operations are
    undone by removing the inserted rows and inserting the removed ones.
    """

    kinds: np.ndarray  # int8[n]
    inserted: np.ndarray  # int32[...]  the row of each INSERT
    removed: np.ndarray  # int32[...]  the row of each REMOVE
    messages: MessageBatch  # of each MESSAGE in turn; after the last follows the first


def run_mixed(methods: Methods, rows: np.ndarray, messages: MessageBatch, case: Case, what: str) -> list[Record]:
    """CPU time of every round by method. Before and after, the methods contain all rows. All answers must agree."""
    settings = case.settings
    operations = draw_operations(rows, messages, settings.mixed, case.workload.seed)
    for method in methods.values():
        method.remove(operations.inserted)
    shares = {name: _affordable(method, operations, settings) for name, method in methods.items()}
    found = {name: _joined(_answers(method, operations, shares[name])) for name, method in methods.items()}
    require_agreement(found, f"{what}, among updates")
    rounds: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(settings.rounds):
        for name, method in methods.items():
            calls = _calls(method, operations, shares[name])
            rounds[name].append(timed(_call_all, calls)[1].cpu_s)
            _undo(method, operations, shares[name])
    for method in methods.values():
        method.insert(operations.inserted)
    return [{"method": name, "operations": shares[name], "rounds_cpu_s": rounds[name]} for name in methods]


def draw_operations(rows: np.ndarray, messages: MessageBatch, n: int, seed: int) -> Operations:
    """The n operations in random order; fewer if there are no messages or few rows."""
    rng = np.random.default_rng(seed)
    updates = min(int(n * _UPDATES_EACH), len(rows) // 2)
    counts = [n - 2 * updates if messages.size else 0, updates, updates]
    kinds = rng.permutation(np.repeat(np.arange(3, dtype=np.int8), counts))
    chosen = rng.choice(rows, 2 * updates, replace=False).astype(np.int32)
    return Operations(kinds, chosen[:updates], chosen[updates:], messages)


Call = tuple[Callable[[Any], Any], Any]


def _calls(method: Method, operations: Operations, n: int) -> list[Call]:
    """The first n operations as calls: (function, argument)."""
    messages = operations.messages
    singles = (messages.part(at, at + 1) for at in cycle(range(messages.size)))
    by_kind: dict[int, tuple[Callable[[Any], Any], Iterator[Any]]] = {
        MESSAGE: (method.match, singles),
        INSERT: (method.insert, iter(operations.inserted[:, None])),
        REMOVE: (method.remove, iter(operations.removed[:, None])),
    }
    return [(by_kind[kind][0], next(by_kind[kind][1])) for kind in operations.kinds[:n].tolist()]


def _call_all(calls: list[Call]) -> list[Any]:
    return [call(argument) for call, argument in calls]


def _answers(method: Method, operations: Operations, n: int) -> list[Hits]:
    """Run the first n operations and undo them; return the hits of each message at its moment."""
    answers = _call_all(_calls(method, operations, n))
    _undo(method, operations, n)
    return [answer[0] for answer in answers if answer is not None]


def _undo(method: Method, operations: Operations, n: int) -> None:
    kinds = operations.kinds[:n]
    method.remove(operations.inserted[: np.count_nonzero(kinds == INSERT)])
    method.insert(operations.removed[: np.count_nonzero(kinds == REMOVE)])


def _affordable(method: Method, operations: Operations, settings: Settings) -> int:
    """The number of operations that the method can run within its budget."""
    passes = 2 * settings.rounds + 1
    return share_within(lambda n: _answers(method, operations, n), len(operations.kinds), settings.budget_s, passes)


def _joined(hits: list[Hits]) -> Hits:
    """The hits of all messages as one batch, those of each message sorted."""
    counts = np.array([len(each.rows) for each in hits], np.int64)
    rows = np.concatenate([each.rows for each in hits]) if hits else np.empty(0, np.int32)
    return sorted_hits(Hits(rows, starts_of(counts)))
