"""Methods side by side in one process, over one store of rows: built, compared, timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import nearcast.indexes  # noqa: F401  registers every method
from nearcast.bench.agreement import digest, require_agreement, sorted_hits
from nearcast.bench.corpus import Corpus, MadeUp, message_group
from nearcast.bench.measure import messages_within, timed, timed_all_threads
from nearcast.bench.subscriptions import message_batch, row_batch, subscription_chunks
from nearcast.bench.table_path import run_tables
from nearcast.bench.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.matching.intake import checked_messages
from nearcast.matching.method import REGISTRY, Method, find_method, make_method
from nearcast.matching.store import RowStore
from nearcast.model import Hits, MessageBatch

Tell = Callable[[str], None]
"""Told, in a few words, what begins."""

_TRIAL_MESSAGES = 8
_BLOCK = 50  # single messages of one method before the next takes its turn: noise hits all alike, caches stay warm
_UPDATE_BATCH = 1_000
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

    def __post_init__(self) -> None:
        for name in ("rounds", "brute_limit", "singles", "updates"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < (name == "rounds"):
                raise InvalidInput(f"{name} must be a whole number, {int(name == 'rounds')} or more; it is {value!r}")
        if not self.budget_s > 0:
            raise InvalidInput(f"the time budget must be above 0 seconds; it is {self.budget_s}")


def default_methods() -> list[str]:
    """Every registered method but `auto`, which is one of the others."""
    return sorted(name for name in REGISTRY if name != "auto")


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
    _warm_up(chosen, tell)
    tell(f"{workload.name}: drawing {workload.subscriptions:,} subscriptions")
    store = filled_store(corpus, workload)
    built, builds = _build_all(chosen, store, workload, tell)
    groups: dict[str, list[dict[str, Any]]] = {}
    answers: dict[str, Hits] = {}
    for group in workload.groups:
        tell(f"{workload.name}: {group} messages")
        messages = checked_messages(message_batch(message_group(corpus, workload, group)), store.n_terms)
        groups[group], answers[group] = _run_group(built, messages, settings, f"{workload.name}, {group}")
    case: dict[str, Any] = {
        "workload": workload.parameters(),
        "terms": store.n_terms,
        "stored_bytes": store.nbytes,
        "left_out": left_out,
        "builds": builds,
        "groups": groups,
    }
    if settings.updates:
        case["updates"] = _run_updates(built, store, workload, (corpus, settings, tell))
    if settings.tables:
        built.clear()
        case["tables"] = run_tables(chosen, workload, corpus, (settings.rounds, settings.budget_s, tell), answers)
    return case


def steps_of(methods: Sequence[str], workload: Workload, settings: Settings) -> int:
    """How often `run_case` will tell what begins."""
    n = len(_chosen(methods, workload, settings)[0])
    return 1 + 1 + n + len(workload.groups) + (n if settings.updates else 0) + (n if settings.tables else 0)


def filled_store(corpus: Corpus, workload: Workload) -> RowStore:
    """The workload's subscriptions as stored rows: row k is subscription k."""
    store = RowStore(workload.geometry)
    for first, drawn in subscription_chunks(corpus, workload):
        store.add(row_batch(drawn, first), [])
    return store


def known_methods(methods: Sequence[str]) -> list[str]:
    """These, each once, or all where none is named. An unknown name raises."""
    names = list(dict.fromkeys(methods or default_methods()))
    for name in names:
        find_method(name)
    return names


def _chosen(methods: Sequence[str], workload: Workload, settings: Settings) -> tuple[list[str], dict[str, str]]:
    names = known_methods(methods)
    if "brute" in names and workload.subscriptions > settings.brute_limit and len(names) > 1:
        reason = f"more than {settings.brute_limit:,} subscriptions"
        return [name for name in names if name != "brute"], {"brute": reason}
    return names, {}


def _warm_up(methods: list[str], tell: Tell) -> None:
    """Call every kernel once on a toy, so that nothing is compiled while it is timed."""
    tell("compiling")
    toy = Workload(subscriptions=300, messages=3, vocabulary=500, topics=5, words_per_topic=20, long=(30, 60))
    store = filled_store(MadeUp(toy), toy)
    rows = store.live_rows()
    for name in methods:
        method = make_method(name, store, toy.geometry, {})
        method.build(rows)
        for group in toy.groups:
            method.match(checked_messages(message_batch(message_group(MadeUp(toy), toy, group)), store.n_terms))
        method.remove(rows[:100])
        method.insert(rows[:100])


def _build_all(
    names: list[str], store: RowStore, workload: Workload, tell: Tell
) -> tuple[dict[str, Method], list[dict[str, Any]]]:
    built: dict[str, Method] = {}
    measured = []
    rows = store.live_rows()
    for name in names:
        tell(f"{workload.name}: building {name}")
        method = make_method(name, store, workload.geometry, {})
        _, took = timed_all_threads(method.build, rows)
        built[name] = method
        measured.append({"method": name, "cpu_s": took.cpu_s, "wall_s": took.wall_s, "bytes": int(method.nbytes)})
    return built, measured


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
            "work": {what: int(count) for what, count in work._asdict().items()},
            "digest": digest(found[name]),
            "rounds_cpu_s": {},  # by number of messages: its own, and those of slower methods
            "singles_cpu_us": [],
        }
    require_agreement(found, what)
    sizes = sorted({batch.size for batch in batches.values()})
    for _ in range(settings.rounds):
        for size in sizes:
            for name, method in methods.items():
                if size <= batches[name].size:
                    _, took = timed(method.match, batches[name].part(0, size))
                    records[name]["rounds_cpu_s"].setdefault(str(size), []).append(took.cpu_s)
    _run_singles(methods, batches, settings, records)
    return list(records.values()), max(found.values(), key=lambda hits: len(hits.starts))


def _share(method: Method, messages: MessageBatch, settings: Settings) -> MessageBatch:
    """As many of the messages, from the first on, as the method can match in its time."""
    trial = messages.part(0, min(_TRIAL_MESSAGES, messages.size))
    method.match(trial)
    _, took = timed(method.match, trial)
    per_message_s = took.cpu_s / max(1, trial.size)
    # One pass is for the check of agreement, and the single messages come on top.
    return messages.part(0, messages_within(settings.budget_s, settings.rounds + 1, per_message_s, messages.size))


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
    methods: dict[str, Method],
    store: RowStore,
    workload: Workload,
    context: tuple[Corpus, Settings, Tell],
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
