"""Empty methods over stored rows, for the kind of a workload. The runs measure the methods of all kinds alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from nearcast.bench.workloads.expressions import has_expressions
from nearcast.bench.workloads.random_numbers import stream_key, units
from nearcast.bench.workloads.workload import Workload
from nearcast.matching.method import Method
from nearcast.matching.method import method_names as registered_names
from nearcast.matching.row_params import RankParams
from nearcast.matching.store import RowStore
from nearcast.matching.variant import Variant, variant_of
from nearcast.matching.verify import owners_sorted, verified
from nearcast.model import Hits, MessageBatch, RowBatch, Work

Factory = Callable[[Variant], Method]


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


def method_factory(store: RowStore, workload: Workload) -> Factory:
    """A function that makes empty methods over the store. Unknown names, options and values raise."""
    if has_expressions(workload):
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
    """A method plus the verification that the matcher adds, for subscriptions of several rows.

    Rows go in; subscriptions come out, each once, and none that its NOT excludes.
    """

    def __init__(self, method: Method) -> None:
        self.method = method
        self.name = method.name
        self.build, self.insert, self.remove, self.expect = method.build, method.insert, method.remove, method.expect

    @property
    def nbytes(self) -> int:
        return self.method.nbytes

    def match(self, messages: MessageBatch) -> tuple[Hits, Work]:
        """The sorted numbers of subscriptions. Nodes and candidates are counted by the method."""
        store = self.method.store
        hits, work = self.method.match(messages)
        found = owners_sorted(store, verified(store, messages, hits), True)
        return Hits(found.ids.astype(np.int32), found.starts), work._replace(matches=len(found.ids))
