"""Subscriptions that come after the build: stored and inserted batch by batch, each method timed by itself."""

from __future__ import annotations

from typing import Any

from nearcast.bench.runs.measure import timed
from nearcast.bench.workloads.corpus import Corpus
from nearcast.bench.workloads.expressions import subscription_rows
from nearcast.bench.workloads.subscriptions import draw_subscriptions
from nearcast.bench.workloads.workload import Workload
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore

_BATCH = 1_000


def run_arrivals(
    methods: dict[str, Method], store: RowStore, corpus: Corpus, workload: Workload
) -> list[dict[str, Any]]:
    """CPU time of every batch by method. A batch is stored when it comes: no method knows what is still to come."""
    sizes: list[int] = []
    insertions: dict[str, list[float]] = {name: [] for name in methods}
    for first in range(workload.n_built, workload.subscriptions, _BATCH):
        drawn = draw_subscriptions(corpus, workload, first, min(first + _BATCH, workload.subscriptions))
        rows = store.add(subscription_rows(workload, drawn, first), [])
        sizes.append(drawn.size)
        for name, method in methods.items():
            insertions[name].append(timed(method.insert, rows)[1].cpu_s)
    return [{"method": name, "rows": sizes, "insert_cpu_s": insertions[name]} for name in methods]
