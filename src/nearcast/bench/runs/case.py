"""One benchmark case: a workload, its corpus, how to measure it, and the methods over its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from nearcast.bench.workloads.corpus import Corpus, message_group
from nearcast.bench.workloads.random_numbers import stream_key, units
from nearcast.bench.workloads.rows import rows_and_shapes
from nearcast.bench.workloads.subscriptions import CHUNK, message_batch, subscription_chunks
from nearcast.bench.workloads.times import message_times
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.matching.method import Method, make_method
from nearcast.matching.method import method_names as registered_names
from nearcast.matching.row_params import RankParams
from nearcast.matching.store import RowStore
from nearcast.matching.subscription_set import TERMLESS_METHOD, TERMLESS_OPTIONS
from nearcast.matching.variant import Variant, variant_of
from nearcast.matching.verify import found
from nearcast.model import Hits, MessageBatch, RowBatch, Work

OnStep = Callable[[str], None]
"""Called with a few words when a step begins."""
Methods = dict[str, Method]
"""The methods that are measured, by label."""
Record = dict[str, Any]
"""Raw measurements, as JSON can represent them."""


@dataclass(frozen=True)
class Settings:
    """How a run measures."""

    rounds: int = 5
    budget_s: float = 3.0  # CPU time for each method and message group; a slow method gets fewer messages
    singles: int = 200  # messages matched one call at a time
    updates: int = 10_000  # rows removed and inserted again
    tables: bool = False  # also measure the whole table API: strings in, table out
    brute_limit: int = 1_000_000  # with more subscriptions, `brute` is left out
    threads: tuple[int, ...] = ()  # also measure the throughput with each of these numbers of threads
    whole: bool = False  # also measure the whole match of a subscription set beside the method's part of it
    engine: int = 0  # also measure this number of messages and subscriptions through an engine
    mixed: int = 0  # also measure this number of single operations: messages, inserts, removals

    def __post_init__(self) -> None:
        for name in ("rounds", "brute_limit", "singles", "updates", "engine", "mixed"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < (name == "rounds"):
                raise InvalidInput(f"{name} must be a whole number, {int(name == 'rounds')} or more; it is {value!r}")
        if not self.budget_s > 0:
            raise InvalidInput(f"the time budget must be above 0 seconds; it is {self.budget_s}")
        threads = self.threads
        whole = isinstance(threads, tuple) and all(type(count) is int and count >= 1 for count in threads)
        if not whole or len(set(threads)) < len(threads):
            raise InvalidInput(f"threads are different whole numbers, 1 or more, as in [1, 2]; they are {threads!r}")


class Case(NamedTuple):
    """Everything that a measurement needs besides the methods."""

    workload: Workload
    corpus: Corpus
    settings: Settings
    on_step: OnStep

    def begin(self, step: str) -> None:
        """Report that a step begins."""
        self.on_step(f"{self.workload.name}: {step}")

    def each_group(self, step: str) -> Iterator[tuple[str, str]]:
        """Report a step for each group of messages; yield the group, and its name in error texts."""
        for group in self.workload.groups:
            self.begin(f"{group} {step}")
            yield group, f"{self.workload.name}, {group}"

    def messages(self, group: str, numbers: np.ndarray | None = None) -> MessageBatch:
        """The messages of a group: all of them, or those with the given numbers."""
        if numbers is None:
            numbers = np.arange(self.workload.messages)
        drawn = message_group(self.corpus, self.workload, group, numbers)
        return message_batch(drawn, message_times(self.workload, numbers))


def filled_store(corpus: Corpus, workload: Workload, chunk: int = CHUNK) -> RowStore:
    """The subscriptions that an index is built with, as stored rows; at most one chunk more is in memory.

    Row k is subscription k, except for expressions and regions: those have one row for each clause and box.
    """
    store = RowStore(workload.geometry)
    for first, drawn in subscription_chunks(corpus, workload, chunk, workload.n_built):
        store.add(*rows_and_shapes(workload, drawn, first))
    return store


# -- methods


def method_names(kind: str = "match") -> list[str]:
    """Every registered method of a kind except `auto`, which delegates to one of the others."""
    return [name for name in registered_names(kind) if name != "auto"]


def known_methods(methods: Sequence[str], kind: str = "match") -> list[Variant]:
    """The named methods without repeats, or all methods of the kind. Unknown names, options and values raise."""
    variants = {variant.label: variant for variant in map(variant_of, methods or method_names(kind))}
    make = method_factory(RowStore(Workload().geometry), Workload(kind=kind))
    for variant in variants.values():
        make(variant)
    return list(variants.values())


def method_factory(store: RowStore, workload: Workload) -> Callable[[Variant], Method]:
    """A function that makes empty methods over the store. Unknown names, options and values raise."""
    if not workload.is_plain:
        return lambda variant: cast(Method, VerifiedMethod(variant.make(store, workload.geometry)))
    if workload.kind == "rank":
        store.params = rank_params(store, workload)
    return lambda variant: variant.make(store, workload.geometry)


def rank_params(store: RowStore, workload: Workload) -> RankParams:
    """Rank parameters of the stored rows: alpha and threshold drawn, a term's weight ln(1 + rows / rows with it)."""
    params = RankParams(np.log1p(store.live / np.maximum(store.frequencies, 1)))
    rows = store.live_rows()
    drawn = {name: _uniform(workload, name, rows) for name in ("alpha", "threshold")}
    params.put(store, rows, RowBatch.empty()._replace(params=drawn))
    return params


def _uniform(workload: Workload, name: str, rows: np.ndarray) -> np.ndarray:
    low, high = getattr(workload, name)
    return np.asarray(low + units(stream_key(workload.seed, name), rows) * (high - low))


class VerifiedMethod:
    """A method plus what a subscription set adds to it, for subscriptions of several rows and regions of any shape.

    Rows go in; subscriptions come out, each once, and none that its NOT, its region or its expiry excludes. Rows
    without terms are in a method of their own, unless the method takes them.
    """

    def __init__(self, method: Method) -> None:
        self.method = method
        self.name = method.name
        self.expect = method.expect
        self._termless = None
        if not method.takes_termless_rows:
            self._termless = make_method(TERMLESS_METHOD, method.store, method.space, TERMLESS_OPTIONS)

    @property
    def nbytes(self) -> int:
        return self.method.nbytes + (0 if self._termless is None else self._termless.nbytes)

    def build(self, rows: np.ndarray) -> None:
        self._pass_on("build", rows)

    def insert(self, rows: np.ndarray) -> None:
        self._pass_on("insert", rows)

    def remove(self, rows: np.ndarray) -> None:
        self._pass_on("remove", rows)

    def _pass_on(self, call: str, rows: np.ndarray) -> None:
        if self._termless is None:
            getattr(self.method, call)(rows)
            return
        has_terms = self.method.store.arrays.n_terms[rows] > 0
        getattr(self.method, call)(rows[has_terms])
        if not has_terms.all():
            getattr(self._termless, call)(rows[~has_terms])

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        """The sorted numbers of subscriptions. Nodes and candidates are counted by the method."""
        store = self.method.store.view()
        (hits, work), more = self.method.match(messages), None
        if self._termless is not None:
            more, more_work = self._termless.match(messages)
            work = work.plus(more_work)
        answer = found(store, messages, hits, more, True)
        return Hits(answer.ids.astype(np.int32), answer.starts), work._replace(matches=len(answer.ids))
