"""The whole table API, strings in and matches table out: its time, and does it find what the methods find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.bench.agreement import Disagreement
from nearcast.bench.corpus import Corpus, message_group
from nearcast.bench.measure import messages_within, timed_all_threads
from nearcast.bench.tables import messages_table, subscription_tables
from nearcast.bench.workload import Workload
from nearcast.engine.index import Index, build_index
from nearcast.model import Hits
from nearcast.tables import matches_table

_TRIAL_MESSAGES = 8

Plan = tuple[int, float, Callable[[str], None]]
"""Rounds, seconds of CPU time for each method and group, and whom to tell what begins."""


def run_tables(
    methods: Sequence[str], workload: Workload, corpus: Corpus, plan: Plan, answers: dict[str, Hits]
) -> list[dict[str, Any]]:
    """Raw figures by method. `answers` are what the methods found, by group: row k is subscription k."""
    subscriptions = pa.concat_tables(subscription_tables(corpus, workload))
    words = corpus.words()
    groups = {group: messages_table(message_group(corpus, workload, group), words, group) for group in workload.groups}
    measured = []
    for name in methods:
        plan[2](f"{workload.name}: tables through {name}")
        index, took = timed_all_threads(build_index, subscriptions, name, space=workload.space)
        records = {group: _run_group(index, table, plan, answers[group]) for group, table in groups.items()}
        measured.append({"method": name, "build_cpu_s": took.cpu_s, "bytes": index.nbytes, "groups": records})
    return measured


def _run_group(index: Index, messages: pa.Table, plan: Plan, answer: Hits) -> dict[str, Any]:
    """CPU time of the whole, and of its two large parts: tokens to terms and places; terms to sorted ids."""
    rounds, budget_s, _ = plan
    trial = messages.slice(0, _TRIAL_MESSAGES)
    index.match(trial)
    _, took = timed_all_threads(index.match, trial)
    n = messages_within(budget_s, 2 * rounds, took.cpu_s / max(1, trial.num_rows), messages.num_rows)
    part = messages.slice(0, min(n, len(answer.starts) - 1))
    _require_same(index.match(part), answer, (index.method, part.num_rows))
    whole, reading, matching = [], [], []
    for _ in range(rounds):
        whole.append(timed_all_threads(index.match, part)[1].cpu_s)
        batch, took = timed_all_threads(index.read_messages, part)
        reading.append(took.cpu_s)
        matching.append(timed_all_threads(index.matcher.match, batch)[1].cpu_s)
    return {
        "messages": part.num_rows,
        "whole_cpu_s": whole,
        "reading_cpu_s": reading,
        "matching_cpu_s": matching,
    }


def _require_same(table: pa.Table, answer: Hits, asked: tuple[str, int]) -> None:
    method, n = asked
    rows = answer.rows[: answer.starts[n]].astype(np.int64)
    wanted = matches_table(np.arange(n), rows, answer.starts[: n + 1])
    if not table.equals(wanted):
        raise Disagreement(
            f"the table API over '{method}' finds {table.num_rows:,} pairs for {n:,} messages; "
            f"the methods themselves find {wanted.num_rows:,}, or others"
        )
