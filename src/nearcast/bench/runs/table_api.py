"""The whole table API, strings in and matches table out: its time in parts, and a check of its answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import list_parts
from nearcast.arrays.ragged import starts_of
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Case, Record, Settings
from nearcast.bench.runs.timing import share_within, timed, timed_one_by_one
from nearcast.bench.workloads.tables import message_tables, subscription_tables
from nearcast.engine.index import Index, build_index
from nearcast.matching.intake import checked_messages
from nearcast.matching.variant import Variant
from nearcast.model import Hits
from nearcast.tables import Dialect, matches_table, read_subscriptions
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import Vocabulary

PARTS = ("read", "lookup", "kernel", "order", "write")
"""The parts of the time: table to terms and places (includes `lookup`, tokens to terms), the method, what the matcher
adds to it (exact regions, NOT, expiry, rows to sorted ids; a difference of two calls), ids to the matches table."""

_READ_ROWS = 100_000  # rows that are read apart, to tell reading from indexing: 9 s where a row takes 90 us


def run_tables(methods: Sequence[Variant], case: Case, answers: dict[str, Hits]) -> list[Record]:
    """Raw measurements by method. `answers` are the subscriptions that the methods found, by group."""
    workload, corpus = case.workload, case.corpus
    subscriptions = pa.concat_tables(subscription_tables(corpus, workload))
    groups = {group: pa.concat_tables(message_tables(corpus, workload, group)) for group in workload.groups}
    part = subscriptions.slice(0, _READ_ROWS)
    dialect = Dialect(Analyser(), workload.geometry)
    read_subscriptions(part.slice(0, 100), Vocabulary(), dialect)  # warms up
    _, reading = timed(read_subscriptions, part, Vocabulary(), dialect)
    read = {"read_rows": part.num_rows, "read_cpu_s": reading.all_threads_s}
    measured = []
    for variant in methods:
        case.begin(f"tables through {variant.label}")
        measured.append(_run_method(variant, subscriptions, groups, case, answers) | read)
    return measured


def _run_method(
    variant: Variant, subscriptions: pa.Table, groups: dict[str, pa.Table], case: Case, answers: dict[str, Hits]
) -> Record:
    """Raw measurements of one method. Its index is freed on return, so that only one exists at a time."""
    space, settings = case.workload.space, case.settings
    expiring = expiring_ids(subscriptions)
    index, took = timed(build_index, subscriptions, variant.name, space=space, **variant.options)
    records = {}
    for group, table in groups.items():
        records[group] = _run_group(index, table, settings, answers[group], variant.label)
        if group.endswith("point"):
            answer = without(answers[group], expiring)
            found = _run_match_one(index, table, settings.singles, len(answer.starts) - 1)
            _require_ones(found, answer, expiring, variant.label)
            records[group] |= found.record()
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
    _, kernel = timed(method.match, checked)
    found, matched = timed(index.matcher.match, checked)
    table, write = timed(matches_table, checked.ids, *found)
    taken_s = [took.all_threads_s for took in (read, lookup, kernel, matched, write)]
    taken_s[3] -= kernel.all_threads_s  # the matcher calls the method
    return table, dict(zip(PARTS, taken_s, strict=True))


class OneByOne(NamedTuple):
    """What calls of `match_one` found and took."""

    ids: list[tuple[int, np.ndarray]]  # by message
    cpu_us: list[float]
    wall_us: list[float]

    def record(self) -> Record:
        return {"ones_cpu_us": self.cpu_us, "ones_wall_us": self.wall_us}


def _run_match_one(index: Index, messages: pa.Table, singles: int, answered: int) -> OneByOne:
    """Wall and CPU time of `index.match_one` for each message, Python included.

    The messages are matched once for each of the two clocks. An equal number of other messages comes first, untimed: a
    service that has just started is slower. Answers are checked after the last call: a check between two calls pushes
    code and data out of the caches (2 to 3 us at 1 M subscriptions).
    """
    n = min(2 * singles, messages.num_rows, answered)
    calls = [(row["tokens"], row["x"], row["y"]) for row in messages.slice(0, n).to_pylist()]
    warm_up = [index.match_one(*message) for message in calls[: n // 2]]
    found, wall_us = timed_one_by_one(index.match_one, calls[n // 2 :], time.perf_counter)
    again, cpu_us = timed_one_by_one(index.match_one, calls[n // 2 :], time.thread_time)
    return OneByOne([*enumerate(warm_up + found), *enumerate(again, n // 2)], cpu_us, wall_us)


def _require_ones(found: OneByOne, answer: Hits, expiring: np.ndarray, label: str) -> None:
    """Raise Disagreement if a call found other subscriptions than the answer, which has no expiring ones.

    `match_one` takes no time, so that an expiring subscription may match here and not in the answer.
    """
    for number, ids in found.ids:
        own = answer.rows[answer.starts[number] : answer.starts[number + 1]]
        if not np.array_equal(ids[~np.isin(ids, expiring)], own):
            raise Disagreement(f"match_one over '{label}' finds others for message {number} than the method")


def expiring_ids(subscriptions: pa.Table) -> np.ndarray:
    """int64: the ids of the subscriptions that expire."""
    if "expires" not in subscriptions.column_names:
        return np.empty(0, np.int64)
    return np.asarray(subscriptions.filter(subscriptions["expires"].is_valid())["id"].to_numpy())


def without(answer: Hits, ids: np.ndarray) -> Hits:
    """The answer without these subscriptions."""
    keeps = ~np.isin(answer.rows, ids)
    return Hits(answer.rows[keeps], np.asarray(starts_of(keeps)[answer.starts]))


def _require_same(table: pa.Table, wanted: pa.Table, what: str) -> None:
    if not table.equals(wanted):
        raise Disagreement(
            f"{what} finds {table.num_rows:,} pairs; the methods themselves find {wanted.num_rows:,}, or others"
        )
