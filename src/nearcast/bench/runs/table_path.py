"""The whole table API, strings in and matches table out: its time and where it goes, and does it find the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.measure import share_within, timed_all_threads, timed_one_by_one
from nearcast.bench.workloads.corpus import Corpus, message_group
from nearcast.bench.workloads.tables import messages_table, subscription_tables
from nearcast.bench.workloads.workload import Workload
from nearcast.engine.index import Index, build_index
from nearcast.matching.intake import checked_messages
from nearcast.matching.variant import Variant
from nearcast.matching.verify import owners_sorted, verified
from nearcast.model import Hits, MessageBatch
from nearcast.tables import matches_table


class TablePlan(NamedTuple):
    """How to measure."""

    rounds: int
    budget_s: float  # of CPU time for each method and group
    singles: int  # messages by `match_one`
    tell: Callable[[str], None]  # told what begins


PARTS = ("read", "lookup", "kernel", "order", "write")
"""Where the time goes: table to terms and places (`lookup`, tokens to terms, is within it), the method, rows to sorted
ids (without those that NOT forbids), ids to the matches table."""


def run_tables(
    methods: Sequence[Variant], workload: Workload, corpus: Corpus, plan: TablePlan, answers: dict[str, Hits]
) -> list[dict[str, Any]]:
    """Raw figures by method. `answers` are what the methods found, by group, as numbers of subscriptions."""
    subscriptions = pa.concat_tables(subscription_tables(corpus, workload))
    words = corpus.words()
    groups = {group: messages_table(message_group(corpus, workload, group), words, group) for group in workload.groups}
    measured = []
    for variant in methods:
        plan.tell(f"{workload.name}: tables through {variant.label}")
        measured.append(_run_method(variant, (subscriptions, workload.space), groups, plan, answers))
    return measured


def _run_method(
    variant: Variant,
    asked: tuple[pa.Table, Any],
    groups: dict[str, pa.Table],
    plan: TablePlan,
    answers: dict[str, Hits],
) -> dict[str, Any]:
    """One index at a time: it is gone when this returns."""
    subscriptions, space = asked
    index, took = timed_all_threads(build_index, subscriptions, variant.name, space=space, **variant.options)
    records = {}
    for group, table in groups.items():
        records[group] = _run_group(index, table, plan, answers[group], variant.label)
        if group.endswith("point"):
            records[group] |= _run_match_one(index, table, plan.singles, answers[group], variant.label)
    return {"method": variant.label, "build_cpu_s": took.cpu_s, "bytes": index.nbytes, "groups": records}


def _run_group(index: Index, messages: pa.Table, plan: TablePlan, answer: Hits, label: str) -> dict[str, Any]:
    """CPU time of the whole and of its parts, in turns."""
    answered = min(messages.num_rows, len(answer.starts) - 1)
    n = share_within(lambda n: index.match(messages.slice(0, n)), answered, plan.budget_s, 2 * plan.rounds + 2)
    part = messages.slice(0, n)
    wanted = _wanted(answer, n)
    _require_same(index.match(part), wanted, f"the table API over '{label}'")
    _require_same(_in_parts(index, part)[0], wanted, f"the table API over '{label}', part by part,")
    readings: dict[str, list[float]] = {f"{name}_cpu_s": [] for name in ("whole", *PARTS)}
    for _ in range(plan.rounds):
        readings["whole_cpu_s"].append(timed_all_threads(index.match, part)[1].cpu_s)
        for name, took_s in _in_parts(index, part)[1].items():
            readings[f"{name}_cpu_s"].append(took_s)
    return {"messages": n, **readings}


def _in_parts(index: Index, messages: pa.Table) -> tuple[pa.Table, dict[str, float]]:
    """What `index.match` does, step by step, each timed; the checks between the steps are in none of them."""
    store, method = index.matcher.store, index.matcher.method
    tokens, _ = list_parts(messages.column("tokens"))
    batch, read = timed_all_threads(index.read_messages, messages)
    _, lookup = timed_all_threads(index.vocabulary.lookup, tokens)
    checked = checked_messages(batch, store.n_terms)
    (hits, _), kernel = timed_all_threads(method.match, checked)
    (ids, starts), order = timed_all_threads(_ids_of, index, checked, hits)
    table, write = timed_all_threads(matches_table, checked.ids, ids, starts)
    taken = (read, lookup, kernel, order, write)
    return table, {name: took.cpu_s for name, took in zip(PARTS, taken, strict=True)}


def _ids_of(index: Index, messages: MessageBatch, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """What the method found as subscriptions: what NOT forbids is dropped, each is there once."""
    store = index.matcher.store
    return owners_sorted(store, verified(store, messages, hits), store.live > len(index))


def _run_match_one(index: Index, messages: pa.Table, singles: int, answer: Hits, label: str) -> dict[str, list[float]]:
    """Wall and CPU time of `index.match_one` for each of some messages, all of Python included: first by the one clock,
    then all again by the other. As many others go before them untimed: a service that has just started is slower.
    Answers are checked after the last call, since a check between two calls pushes code and data out of the caches
    (2 to 3 us at 1 M subscriptions).
    """
    n = min(2 * singles, messages.num_rows, len(answer.starts) - 1)
    asked = [(row["tokens"], row["x"], row["y"]) for row in messages.slice(0, n).to_pylist()]
    begun = [index.match_one(*message) for message in asked[: n // 2]]
    found, wall_us = timed_one_by_one(index.match_one, asked[n // 2 :], time.perf_counter)
    again, cpu_us = timed_one_by_one(index.match_one, asked[n // 2 :], time.thread_time)
    for number, ids in [*enumerate(begun + found), *enumerate(again, n // 2)]:
        if not np.array_equal(ids, answer.rows[answer.starts[number] : answer.starts[number + 1]]):
            raise Disagreement(f"match_one over '{label}' finds others for message {number} than the methods do")
    return {"ones_cpu_us": cpu_us, "ones_wall_us": wall_us}


def _wanted(answer: Hits, n: int) -> pa.Table:
    """The matches table of the first n messages."""
    rows = answer.rows[: answer.starts[n]].astype(np.int64)
    return matches_table(np.arange(n), rows, answer.starts[: n + 1])


def _require_same(table: pa.Table, wanted: pa.Table, what: str) -> None:
    if not table.equals(wanted):
        raise Disagreement(
            f"{what} finds {table.num_rows:,} pairs; the methods themselves find {wanted.num_rows:,}, or others"
        )
