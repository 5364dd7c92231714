"""The whole table API, strings in and matches table out: its time in parts, and a check of its answers."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Case, Record, Settings
from nearcast.bench.runs.timing import share_within, timed, timed_one_by_one
from nearcast.bench.workloads.corpus import message_group
from nearcast.bench.workloads.tables import messages_table, subscription_tables
from nearcast.engine.index import Index, build_index
from nearcast.matching.intake import checked_messages
from nearcast.matching.variant import Variant
from nearcast.matching.verify import owners_sorted, verified
from nearcast.model import Hits
from nearcast.tables import matches_table

PARTS = ("read", "lookup", "kernel", "order", "write")
"""The parts of the time: table to terms and places (includes `lookup`, tokens to terms), the method, rows to sorted
ids (without those that NOT excludes), ids to the matches table."""


def run_tables(methods: Sequence[Variant], case: Case, answers: dict[str, Hits]) -> list[Record]:
    """Raw measurements by method. `answers` are the subscriptions that the methods found, by group."""
    workload, corpus = case.workload, case.corpus
    subscriptions = pa.concat_tables(subscription_tables(corpus, workload))
    words = corpus.words()
    groups = {group: messages_table(message_group(corpus, workload, group), words, group) for group in workload.groups}
    measured = []
    for variant in methods:
        case.begin(f"tables through {variant.label}")
        measured.append(_run_method(variant, subscriptions, groups, case, answers))
    return measured


def _run_method(
    variant: Variant, subscriptions: pa.Table, groups: dict[str, pa.Table], case: Case, answers: dict[str, Hits]
) -> Record:
    """Raw measurements of one method. Its index is freed on return, so that only one exists at a time."""
    space, settings = case.workload.space, case.settings
    index, took = timed(build_index, subscriptions, variant.name, space=space, **variant.options)
    records = {}
    for group, table in groups.items():
        records[group] = _run_group(index, table, settings, answers[group], variant.label)
        if group.endswith("point"):
            records[group] |= _run_match_one(index, table, settings.singles, answers[group], variant.label)
    return {"method": variant.label, "build_cpu_s": took.all_threads_s, "bytes": index.nbytes, "groups": records}


def _run_group(index: Index, messages: pa.Table, settings: Settings, answer: Hits, label: str) -> Record:
    """CPU time of the whole call and of its parts, in turns."""
    answered = min(messages.num_rows, len(answer.starts) - 1)
    n = share_within(lambda n: index.match(messages.slice(0, n)), answered, settings.budget_s, 2 * settings.rounds + 2)
    part = messages.slice(0, n)
    rows = answer.rows[: answer.starts[n]].astype(np.int64)
    wanted = matches_table(np.arange(n), rows, answer.starts[: n + 1])
    _require_same(index.match(part), wanted, f"the table API over '{label}'")
    _require_same(_in_parts(index, part)[0], wanted, f"the table API over '{label}', part by part,")
    readings: dict[str, list[float]] = {f"{name}_cpu_s": [] for name in ("whole", *PARTS)}
    for _ in range(settings.rounds):
        readings["whole_cpu_s"].append(timed(index.match, part)[1].all_threads_s)
        for name, took_s in _in_parts(index, part)[1].items():
            readings[f"{name}_cpu_s"].append(took_s)
    return {"messages": n, **readings}


def _in_parts(index: Index, messages: pa.Table) -> tuple[pa.Table, dict[str, float]]:
    """The matches table and the time of each part of `index.match`. Checks between the parts are not timed."""
    store, method = index.matcher.store, index.matcher.method
    tokens, _ = list_parts(messages.column("tokens"))
    batch, read = timed(index.read_messages, messages)
    _, lookup = timed(index.vocabulary.lookup, tokens)
    checked = checked_messages(batch, store.n_terms)
    (hits, _), kernel = timed(method.match, checked)
    is_chained = store.live > len(index)  # some subscriptions have several rows
    found, order = timed(lambda: owners_sorted(store, verified(store, checked, hits), is_chained))
    table, write = timed(matches_table, checked.ids, found.ids, found.starts)
    taken = (read, lookup, kernel, order, write)
    return table, {name: took.all_threads_s for name, took in zip(PARTS, taken, strict=True)}


def _run_match_one(index: Index, messages: pa.Table, singles: int, answer: Hits, label: str) -> dict[str, list[float]]:
    """Wall and CPU time of `index.match_one` for each message, Python included.

    The messages are matched once for each of the two clocks. An equal number of other messages comes first, untimed: a
    service that has just started is slower. Answers are checked after the last call: a check between two calls pushes
    code and data out of the caches (2 to 3 us at 1 M subscriptions).
    """
    n = min(2 * singles, messages.num_rows, len(answer.starts) - 1)
    calls = [(row["tokens"], row["x"], row["y"]) for row in messages.slice(0, n).to_pylist()]
    warm_up = [index.match_one(*message) for message in calls[: n // 2]]
    found, wall_us = timed_one_by_one(index.match_one, calls[n // 2 :], time.perf_counter)
    again, cpu_us = timed_one_by_one(index.match_one, calls[n // 2 :], time.thread_time)
    for number, ids in [*enumerate(warm_up + found), *enumerate(again, n // 2)]:
        if not np.array_equal(ids, answer.rows[answer.starts[number] : answer.starts[number + 1]]):
            raise Disagreement(f"match_one over '{label}' finds others for message {number} than the method")
    return {"ones_cpu_us": cpu_us, "ones_wall_us": wall_us}


def _require_same(table: pa.Table, wanted: pa.Table, what: str) -> None:
    if not table.equals(wanted):
        raise Disagreement(
            f"{what} finds {table.num_rows:,} pairs; the methods themselves find {wanted.num_rows:,}, or others"
        )
