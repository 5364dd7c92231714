"""Methods side by side in one process, over one store of rows: built, compared, timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.arrays.ragged import starts_of
from nearcast.bench.runs.agreement import digest, require_agreement, sorted_hits
from nearcast.bench.runs.arrivals import run_arrivals
from nearcast.bench.runs.kinds import maker_over, names_of
from nearcast.bench.runs.measure import share_within, timed, timed_all_threads
from nearcast.bench.runs.memory import highest, peak_bytes, reset_peak, resident_bytes
from nearcast.bench.runs.mixed import MixedPlan, run_mixed
from nearcast.bench.runs.table_path import TablePlan, run_tables
from nearcast.bench.runs.threads import TIMES_THE_MESSAGES, run_threads
from nearcast.bench.workloads.corpus import Corpus, Drawn, MadeUp, message_group
from nearcast.bench.workloads.expressions import has_expressions, subscription_rows
from nearcast.bench.workloads.subscriptions import CHUNK, message_batch, subscription_chunks
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.matching.variant import Variant, variant_of
from nearcast.model import Hits, MessageBatch

Tell = Callable[[str], None]
"""Told, in a few words, what begins."""

_BLOCK = 50  # single messages of one method before the next takes its turn: noise hits all alike, caches stay warm
_UPDATE_BATCH = 1_000
_EXPECTED = 128  # messages to plan by, of all groups together
_CHECKED_AFTER_UPDATES = 50


@dataclass(frozen=True)
class Settings:
    """How a run measures."""

    rounds: int = 5
    budget_s: float = 3.0  # of CPU time for each method and message group; a slow method gets fewer messages
    singles: int = 200  # messages matched one call at a time
    updates: int = 10_000  # rows removed and inserted again
    tables: bool = False  # also through the whole table API, strings in and table out
    brute_limit: int = 1_000_000  # subscriptions; `brute` is left out beyond
    threads: tuple[int, ...] = ()  # also throughput with so many threads each
    mixed: int = 0  # also throughput of so many operations, one at a time: messages, rows that come, rows that go

    def __post_init__(self) -> None:
        for name in ("rounds", "brute_limit", "singles", "updates", "mixed"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < (name == "rounds"):
                raise InvalidInput(f"{name} must be a whole number, {int(name == 'rounds')} or more; it is {value!r}")
        if not self.budget_s > 0:
            raise InvalidInput(f"the time budget must be above 0 seconds; it is {self.budget_s}")
        _check_threads(self.threads)


def _check_threads(threads: tuple[int, ...]) -> None:
    whole = isinstance(threads, tuple) and all(type(count) is int and count >= 1 for count in threads)
    if not whole or len(set(threads)) < len(threads):
        raise InvalidInput(f"threads are different whole numbers, 1 or more, as in [1, 2]; they are {threads!r}")


Context = tuple[Corpus, Settings, Tell]


def default_methods(kind: str = "match") -> list[str]:
    """Every registered method of the kind but `auto`, which is one of the others."""
    return names_of(kind)


def run_case(
    methods: Sequence[str],
    workload: Workload,
    settings: Settings | None = None,
    corpus: Corpus | None = None,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """The raw measurements of one workload. Raises Disagreement where two methods differ."""
    settings, corpus, tell = settings or Settings(), corpus or MadeUp(workload), tell or (lambda step: None)
    chosen, left_out = _chosen(methods, workload, settings)
    _warm_up(chosen, workload, tell)
    earlier = peak_bytes()  # of compiling, or of the case before
    reset_peak()
    measured, answers = _run_methods(chosen, workload, (corpus, settings, tell))
    case = {"workload": workload.parameters(), "left_out": left_out} | measured
    if settings.tables:
        plan = TablePlan(settings.rounds, settings.budget_s, settings.singles, tell)
        case["tables"] = run_tables(chosen, workload, corpus, plan, answers)
    case["memory"] |= {"earlier_peak_bytes": earlier, "peak_bytes": highest((*case["memory"].values(), peak_bytes()))}
    return case


def _run_methods(chosen: list[Variant], workload: Workload, context: Context) -> tuple[dict[str, Any], dict[str, Hits]]:
    """All but the tables, and what was found by group. Rows and methods are gone before the tables are made."""
    corpus, settings, tell = context
    memory = {"start_bytes": resident_bytes()}
    tell(f"{workload.name}: drawing {workload.subscriptions:,} subscriptions")
    store = filled_store(corpus, workload)
    memory["stored_bytes"] = resident_bytes()
    built, builds = _build_all(chosen, store, workload, (corpus, tell))
    arrivals = _run_arrivals(built, store, workload, (corpus, tell))
    for build in builds:
        build["bytes"] = int(built[build["method"]].nbytes)
    memory["built_bytes"] = resident_bytes()
    groups: dict[str, list[dict[str, Any]]] = {}
    answers: dict[str, Hits] = {}
    for group in workload.groups:
        tell(f"{workload.name}: {group} messages")
        messages = checked_messages(message_batch(message_group(corpus, workload, group)), store.n_terms)
        groups[group], answers[group] = _run_group(built, messages, settings, f"{workload.name}, {group}")
    case: dict[str, Any] = {
        "terms": store.n_terms,
        "stored_bytes": store.nbytes,
        "memory": memory,
        "builds": builds,
        "groups": groups,
    }
    if arrivals:
        case["arrivals"] = arrivals
    if settings.threads:
        case["threads"] = _run_threads(built, workload, context)
    if settings.updates:
        case["updates"] = _run_updates(built, store, workload, context)
    if settings.mixed:
        case["mixed"] = _run_mixed(built, store, workload, context)
    return case, answers


def _run_arrivals(
    methods: dict[str, Method], store: RowStore, workload: Workload, context: tuple[Corpus, Tell]
) -> list[dict[str, Any]]:
    """What is not there at the build is inserted; nothing where all is."""
    corpus, tell = context
    if workload.n_built == workload.subscriptions:
        return []
    tell(f"{workload.name}: inserting {workload.subscriptions - workload.n_built:,} subscriptions")
    return run_arrivals(methods, store, corpus, workload)


def _run_threads(methods: dict[str, Method], workload: Workload, context: Context) -> dict[str, list[dict[str, Any]]]:
    """By group, on more messages than the other figures: the group's own and those with the next numbers."""
    corpus, settings, tell = context
    numbers = np.arange(TIMES_THE_MESSAGES * workload.messages)
    plan = (settings.threads, settings.rounds, settings.budget_s)
    measured = {}
    for group in workload.groups:
        tell(f"{workload.name}: {group} messages by threads")
        messages = message_batch(message_group(corpus, workload, group, numbers))
        measured[group] = run_threads(methods, messages, plan, f"{workload.name}, {group}")
    return measured


def _run_mixed(
    methods: dict[str, Method], store: RowStore, workload: Workload, context: Context
) -> dict[str, list[dict[str, Any]]]:
    corpus, settings, tell = context
    held = {
        name: method for name, method in methods.items() if method.name != "brute"
    }  # it reads all rows that are stored
    plan = MixedPlan(settings.mixed, settings.rounds, settings.budget_s, workload.seed)
    measured = {}
    for group in workload.groups:
        tell(f"{workload.name}: {group} messages among updates")
        messages = checked_messages(message_batch(message_group(corpus, workload, group)), store.n_terms)
        measured[group] = run_mixed(held, store.live_rows(), messages, plan, f"{workload.name}, {group}")
    return measured


def steps_of(methods: Sequence[str], workload: Workload, settings: Settings) -> int:
    """How often `run_case` will tell what begins."""
    n, groups = len(_chosen(methods, workload, settings)[0]), len(workload.groups)
    of_groups = groups * (1 + bool(settings.threads) + bool(settings.mixed))
    arrives = workload.n_built < workload.subscriptions
    return 1 + 1 + n + arrives + of_groups + (n if settings.updates else 0) + (n if settings.tables else 0)


def filled_store(corpus: Corpus, workload: Workload, chunk: int = CHUNK) -> RowStore:
    """The subscriptions that an index is built with as stored rows: row k is subscription k, unless there are
    expressions, whose clauses have a row each. Nothing else holds more than a chunk.
    """
    store = RowStore(workload.geometry)
    for first, drawn in subscription_chunks(corpus, workload, chunk, workload.n_built):
        store.add(subscription_rows(workload, drawn, first), [])
    return store


def known_methods(methods: Sequence[str], kind: str = "match") -> list[Variant]:
    """These, each once, or all where none is named. Unknown names, options and values raise, as `make_method` does."""
    variants = {variant.label: variant for variant in map(variant_of, methods or default_methods(kind))}
    make = maker_over(RowStore(Workload().geometry), Workload(kind=kind))
    for variant in variants.values():
        make(variant)
    return list(variants.values())


def _chosen(methods: Sequence[str], workload: Workload, settings: Settings) -> tuple[list[Variant], dict[str, str]]:
    if workload.kind != "match" and (settings.tables or settings.threads):
        raise InvalidInput(f"tables and threads are measured on kind match alone, not on {workload.kind}")
    if has_expressions(workload) and settings.threads:
        raise InvalidInput("threads are measured on plain subscriptions alone, not on expressions")
    variants = known_methods(methods, workload.kind)
    others = [variant for variant in variants if variant.name != "brute"]
    if workload.subscriptions > settings.brute_limit and others:
        reason = f"more than {settings.brute_limit:,} subscriptions"
        return others, {variant.label: reason for variant in variants if variant.name == "brute"}
    return variants, {}


def _warm_up(methods: list[Variant], workload: Workload, tell: Tell) -> None:
    """Call every kernel once on a toy, so that nothing is compiled while it is timed."""
    tell("compiling")
    toy = Workload(
        subscriptions=300,
        messages=3,
        vocabulary=500,
        topics=5,
        words_per_topic=20,
        long=(30, 60),
        expression_share=workload.expression_share,
        negated_share=workload.negated_share,
        kind=workload.kind,
    )
    store = filled_store(MadeUp(toy), toy)
    rows, make = store.live_rows(), maker_over(store, toy)
    for variant in methods:
        method = make(variant)
        method.build(rows)
        for group in toy.groups:
            method.match(checked_messages(message_batch(message_group(MadeUp(toy), toy, group)), store.n_terms))
        method.remove(rows[:100])
        method.insert(rows[:100])


def _build_all(
    variants: list[Variant], store: RowStore, workload: Workload, context: tuple[Corpus, Tell]
) -> tuple[dict[str, Method], list[dict[str, Any]]]:
    corpus, tell = context
    sample = _expected(corpus, workload)
    built: dict[str, Method] = {}
    measured = []
    rows, make = store.live_rows(), maker_over(store, workload)
    for variant in variants:
        label = variant.label
        tell(f"{workload.name}: building {label}")
        method = make(variant)
        if workload.kind == "match":
            method.expect(sample)
        _, took = timed_all_threads(method.build, rows)
        built[label] = method
        measured.append({"method": label, "cpu_s": took.cpu_s, "wall_s": took.wall_s, "bytes": int(method.nbytes)})
    return built, measured


def _expected(corpus: Corpus, workload: Workload) -> MessageBatch:
    """What methods are told to expect: as many of each group in turn, and none of those that are timed."""
    later = np.arange(workload.messages, workload.messages + _EXPECTED // len(workload.groups))
    drawn = [message_group(corpus, workload, group, later) for group in workload.groups]
    counts = np.concatenate([np.diff(part.starts) for part in drawn])
    terms, boxes = (np.concatenate([part[k] for part in drawn]) for k in (0, 2))
    return message_batch(Drawn(terms, starts_of(counts), boxes))


def _run_group(
    methods: dict[str, Method], messages: MessageBatch, settings: Settings, what: str
) -> tuple[list[dict[str, Any]], Hits]:
    """Raw figures of each method, and the answer of the one that had the most messages."""
    batches = {name: _share(method, messages, settings) for name, method in methods.items()}
    found: dict[str, Hits] = {}
    records: dict[str, dict[str, Any]] = {}
    for name, method in methods.items():
        hits, work = method.match(batches[name])
        found[name] = sorted_hits(hits)
        records[name] = {
            "method": name,
            "messages": batches[name].size,
            "terms": len(batches[name].terms),
            "work": {what: int(count) for what, count in work._asdict().items()},
            "digest": digest(found[name]),
            "rounds_cpu_s": {},  # by number of messages: its own, and those of slower methods
            "singles_cpu_us": [],
        }
    require_agreement(found, what)
    sizes = sorted({batch.size for batch in batches.values()})
    turns = Random(settings.rounds)  # another order each time: who follows a twin finds its code in the caches
    for _ in range(settings.rounds):
        for size in sizes:
            for name in turns.sample(list(methods), len(methods)):
                if size <= batches[name].size:
                    _, took = timed(methods[name].match, batches[name].part(0, size))
                    records[name]["rounds_cpu_s"].setdefault(str(size), []).append(took.cpu_s)
    _run_singles(methods, batches, settings, records)
    return list(records.values()), max(found.values(), key=lambda hits: len(hits.starts))


def _share(method: Method, messages: MessageBatch, settings: Settings) -> MessageBatch:
    """As many of the messages, from the first on, as the method can match in its time."""
    # One pass is for the check of agreement, and the single messages come on top.
    passes = settings.rounds + 1
    n = share_within(lambda n: method.match(messages.part(0, n)), messages.size, settings.budget_s, passes)
    return messages.part(0, n)


def _run_singles(
    methods: dict[str, Method],
    batches: dict[str, MessageBatch],
    settings: Settings,
    records: dict[str, dict[str, Any]],
) -> None:
    for start in range(0, settings.singles, _BLOCK):
        for name, method in methods.items():
            for message in _one_by_one(batches[name], start, min(start + _BLOCK, settings.singles)):
                _, took = timed(method.match, message)
                records[name]["singles_cpu_us"].append(round(took.cpu_s * 1e6, 3))


def _one_by_one(messages: MessageBatch, start: int, stop: int) -> Iterator[MessageBatch]:
    for i in range(start, min(stop, messages.size)):
        yield messages.part(i, i + 1)


def _run_updates(
    methods: dict[str, Method], store: RowStore, workload: Workload, context: Context
) -> list[dict[str, Any]]:
    """Random rows leave each method and come back, in batches; afterwards all must still agree."""
    corpus, settings, tell = context
    rng = np.random.default_rng(workload.seed)
    n = min(settings.updates, store.live // 2)
    rows = rng.choice(store.live_rows(), n, replace=False)
    batches = [rows[start : start + _UPDATE_BATCH] for start in range(0, n, _UPDATE_BATCH)]
    measured = []
    for name, method in methods.items():
        tell(f"{workload.name}: updating {name}")
        removals = [timed(method.remove, batch)[1].cpu_s for batch in batches]
        insertions = [timed(method.insert, batch)[1].cpu_s for batch in batches]
        sizes = [len(batch) for batch in batches]
        measured.append({"method": name, "rows": sizes, "remove_cpu_s": removals, "insert_cpu_s": insertions})
    first = np.arange(min(workload.messages, _CHECKED_AFTER_UPDATES))
    for group in workload.groups:
        messages = checked_messages(message_batch(message_group(corpus, workload, group, first)), store.n_terms)
        found = {name: sorted_hits(method.match(messages)[0]) for name, method in methods.items()}
        require_agreement(found, f"{workload.name}, {group}, after {n:,} updates")
    return measured
