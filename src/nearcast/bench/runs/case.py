"""One benchmark case: a workload, the corpus it is drawn from, and how to measure it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nearcast.bench.workloads.corpus import Corpus, message_group
from nearcast.bench.workloads.expressions import subscription_rows
from nearcast.bench.workloads.subscriptions import CHUNK, message_batch, subscription_chunks
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.matching.method import Method
from nearcast.matching.store import RowStore
from nearcast.model import MessageBatch

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
    mixed: int = 0  # also measure this number of single operations: messages, inserts, removals

    def __post_init__(self) -> None:
        for name in ("rounds", "brute_limit", "singles", "updates", "mixed"):
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
        return message_batch(message_group(self.corpus, self.workload, group, numbers))


def filled_store(corpus: Corpus, workload: Workload, chunk: int = CHUNK) -> RowStore:
    """The subscriptions that an index is built with, as stored rows; at most one chunk more is in memory.

    Row k is subscription k, except for expressions: those have one row for each clause.
    """
    store = RowStore(workload.geometry)
    for first, drawn in subscription_chunks(corpus, workload, chunk, workload.n_built):
        store.add(subscription_rows(workload, drawn, first), [])
    return store
