"""Updates in batches: subscriptions inserted after the build, and rows removed and inserted again."""

from __future__ import annotations

import numpy as np

from nearcast.bench.runs.agreement import require_agreement, sorted_hits
from nearcast.bench.runs.case import Case, Methods, Record
from nearcast.bench.runs.timing import timed
from nearcast.bench.workloads.expressions import subscription_rows
from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.matching.intake import checked_messages
from nearcast.matching.store import RowStore

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
        rows = store.add(subscription_rows(workload, drawn, first), [])
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
