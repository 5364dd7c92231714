"""All measurements of one case: the methods side by side in one process, over one store of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.jit.mode import compile_now
from nearcast.arrays.ragged import starts_of
from nearcast.bench.runs.case import (
    Case,
    Methods,
    OnStep,
    Record,
    Settings,
    filled_store,
    known_methods,
    method_factory,
)
from nearcast.bench.runs.engine_calls import run_engine
from nearcast.bench.runs.environment import highest, peak_bytes, reset_peak, resident_bytes
from nearcast.bench.runs.groups import TIMES_THE_MESSAGES, run_group, run_threads
from nearcast.bench.runs.sets import build_sets, run_whole
from nearcast.bench.runs.table_api import run_tables
from nearcast.bench.runs.timing import timed
from nearcast.bench.runs.updates import run_inserts, run_mixed, run_updates
from nearcast.bench.workloads.corpus import Corpus, DrawnItems, SyntheticCorpus, message_group
from nearcast.bench.workloads.subscriptions import message_batch
from nearcast.bench.workloads.text_corpus import corpus_for
from nearcast.bench.workloads.workload import OF_KIND_MATCH, Workload
from nearcast.errors import InvalidInput
from nearcast.matching.intake import checked_messages
from nearcast.matching.store import RowStore
from nearcast.matching.variant import Variant
from nearcast.model import Hits, MessageBatch

_EXPECTED_MESSAGES = 128  # of all groups together


def run_case(
    methods: Sequence[str],
    workload: Workload,
    settings: Settings | None = None,
    corpus: Corpus | None = None,
    on_step: OnStep | None = None,
) -> Record:
    """The raw measurements of one workload. Raises Disagreement if two methods find different pairs."""
    compile_now()  # nothing that is measured may be interpreted
    on_step = on_step or (lambda step: None)
    case = Case(workload, corpus or corpus_for(workload), settings or Settings(), on_step)
    chosen, left_out = _choose(methods, workload, case.settings)
    _warm_up(chosen, workload, on_step)
    earlier = peak_bytes()  # of compiling, or of the case before
    reset_peak()
    measured, answers = _run_methods(chosen, case)
    record: Record = {"workload": workload.parameters(), "left_out": left_out} | measured
    if case.settings.tables:
        record["tables"] = run_tables(chosen, case, answers)
    if case.settings.engine:
        record["engine"] = run_engine(chosen, case, answers)
    memory = record["memory"]
    memory |= {"earlier_peak_bytes": earlier, "peak_bytes": highest((*memory.values(), peak_bytes()))}
    return record


def steps_of(methods: Sequence[str], workload: Workload, settings: Settings) -> int:
    """The number of steps that `run_case` will report."""
    n, groups = len(_choose(methods, workload, settings)[0]), len(workload.groups)
    of_groups = groups * (1 + bool(settings.threads) + bool(settings.mixed) + settings.whole)
    inserts = workload.n_built < workload.subscriptions
    has_points = any(group.endswith("point") for group in workload.groups)
    by_method = bool(settings.updates) + settings.tables + settings.whole + (bool(settings.engine) and has_points)
    return 1 + 1 + n + inserts + of_groups + n * by_method


def _choose(methods: Sequence[str], workload: Workload, settings: Settings) -> tuple[list[Variant], dict[str, str]]:
    """The methods to run, and the reason why each of the others is left out."""
    if workload.kind != "match" and (settings.tables or settings.threads or settings.whole or settings.engine):
        what = "tables, threads, the whole match and the engine"
        raise InvalidInput(f"{what} are measured on kind match alone, not on {workload.kind}")
    if not workload.is_plain and settings.threads:
        raise InvalidInput("threads are measured on plain subscriptions alone, not on expressions")
    variants = known_methods(methods, workload.kind)
    others = [variant for variant in variants if variant.name != "brute"]
    if workload.subscriptions > settings.brute_limit and others:
        reason = f"more than {settings.brute_limit:,} subscriptions"
        return others, {variant.label: reason for variant in variants if variant.name == "brute"}
    return variants, {}


def _warm_up(methods: list[Variant], workload: Workload, on_step: OnStep) -> None:
    """Call every kernel once on a toy workload, so that nothing is compiled while it is timed."""
    on_step("compiling")
    copied = {name: getattr(workload, name) for name in ("kind", *OF_KIND_MATCH)}
    sizes = {"subscriptions": 300, "messages": 3, "vocabulary": 500, "topics": 5, "words_per_topic": 20}
    toy = Workload(long=(30, 60)).but(**sizes, **copied)
    case = Case(toy, SyntheticCorpus(toy), Settings(), on_step)
    store = filled_store(case.corpus, toy)
    rows, make = store.live_rows(), method_factory(store, toy)
    for variant in methods:
        method = make(variant)
        method.build(rows)
        for group in toy.groups:
            method.match(checked_messages(case.messages(group), store.n_terms))
        method.remove(rows[:100])
        method.insert(rows[:100])


def _run_methods(variants: list[Variant], case: Case) -> tuple[Record, dict[str, Hits]]:
    """All measurements but the tables, and the answers by group. Rows and methods are freed before tables are made."""
    workload, settings = case.workload, case.settings
    memory = {"start_bytes": resident_bytes()}
    case.begin(f"drawing {workload.subscriptions:,} subscriptions")
    store = filled_store(case.corpus, workload)
    memory["stored_bytes"] = resident_bytes()
    methods, builds = _build_all(variants, store, case)
    inserts = run_inserts(methods, store, case)
    for build in builds:
        build["bytes"] = int(methods[build["method"]].nbytes)
    memory["built_bytes"] = resident_bytes()
    record: Record = {"terms": store.n_terms, "stored_bytes": store.nbytes, "memory": memory, "builds": builds}
    record["groups"] = {}
    answers: dict[str, Hits] = {}
    for group, what in case.each_group("messages"):
        messages = checked_messages(case.messages(group), store.n_terms)
        record["groups"][group], answers[group] = run_group(methods, messages, settings, what)
    if inserts:
        record["arrivals"] = inserts
    if settings.whole:
        sets = build_sets(variants, store, case)
        record["whole"] = {
            group: run_whole(sets, case.messages(group), settings, answers[group], what)
            for group, what in case.each_group("messages through sets")
        }
        del sets
    if settings.threads:
        record["threads"] = _run_threads(methods, case)
    if settings.updates:
        record["updates"] = run_updates(methods, store, case)
    if settings.mixed:
        record["mixed"] = _run_mixed(methods, store, case)
    return record, answers


def _build_all(variants: list[Variant], store: RowStore, case: Case) -> tuple[Methods, list[Record]]:
    sample = _expected_messages(case)
    built: Methods = {}
    measured = []
    rows, make = store.live_rows(), method_factory(store, case.workload)
    for variant in variants:
        label = variant.label
        case.begin(f"building {label}")
        method = make(variant)
        if case.workload.kind == "match":
            method.expect(sample)
        _, took = timed(method.build, rows)
        built[label] = method
        measured.append(
            {"method": label, "cpu_s": took.all_threads_s, "wall_s": took.wall_s, "bytes": int(method.nbytes)}
        )
    return built, measured


def _expected_messages(case: Case) -> MessageBatch:
    """The sample that methods plan by: the same number of each group, and none of the messages that are timed."""
    workload = case.workload
    later = np.arange(workload.messages, workload.messages + _EXPECTED_MESSAGES // len(workload.groups))
    drawn = [message_group(case.corpus, workload, group, later) for group in workload.groups]
    counts = np.concatenate([np.diff(part.starts) for part in drawn])
    terms, boxes = (np.concatenate([part[k] for part in drawn]) for k in (0, 2))
    return message_batch(DrawnItems(terms, starts_of(counts), boxes))


def _run_threads(methods: Methods, case: Case) -> dict[str, list[Record]]:
    """By group, over more messages than the other measurements: the group's own and those with the next numbers."""
    numbers = np.arange(TIMES_THE_MESSAGES * case.workload.messages)
    return {
        group: run_threads(methods, case.messages(group, numbers), case.settings, what)
        for group, what in case.each_group("messages by threads")
    }


def _run_mixed(methods: Methods, store: RowStore, case: Case) -> dict[str, list[Record]]:
    """By group. `brute` is left out: it reads all stored rows, removed ones included."""
    able = {name: method for name, method in methods.items() if method.name != "brute"}
    measured = {}
    for group, what in case.each_group("messages among updates"):
        messages = checked_messages(case.messages(group), store.n_terms)
        measured[group] = run_mixed(able, store.live_rows(), messages, case, what)
    return measured
