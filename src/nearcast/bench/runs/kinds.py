"""Methods of a workload's kind over stored rows: the runner measures them alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from nearcast.bench.runs.whole_match import Whole
from nearcast.bench.workloads.draws import stream_key, units
from nearcast.bench.workloads.expressions import has_expressions
from nearcast.bench.workloads.workload import Workload
from nearcast.errors import InvalidInput
from nearcast.matching.method import REGISTRY, Method
from nearcast.matching.rank_method import RANK_REGISTRY, make_rank_method
from nearcast.matching.rank_rows import RankRows
from nearcast.matching.store import RowStore
from nearcast.matching.variant import Variant

Maker = Callable[[Variant], Method]


def names_of(kind: str) -> list[str]:
    """Every registered method of a kind but `auto`, which is one of the others."""
    return sorted(name for name in (RANK_REGISTRY if kind == "rank" else REGISTRY) if name != "auto")


def maker_over(store: RowStore, workload: Workload) -> Maker:
    """Makes empty methods over the store. Unknown names, options and values raise."""
    if has_expressions(workload):
        return lambda variant: cast(Method, Whole(variant.make(store, workload.geometry)))
    if workload.kind == "match":
        return lambda variant: variant.make(store, workload.geometry)
    asked = rank_rows(store, workload)

    def make(variant: Variant) -> Method:
        try:
            made = make_rank_method(variant.name, store, asked, workload.geometry, variant.options)
        except TypeError as error:
            if not variant.options:
                raise
            raise InvalidInput(f"'{variant.label}' has an option of the wrong type: {error}") from None
        return cast(Method, made)  # the runner calls both alike; that hits have scores too changes nothing

    return make


def rank_rows(store: RowStore, workload: Workload) -> RankRows:
    """What the stored rows ask for: alpha and threshold drawn, the weight of a term ln(1 + rows / rows with it)."""
    frequencies = np.maximum(store.frequencies, 1)
    asked = RankRows(np.log1p(store.live / frequencies))
    rows = store.live_rows()
    drawn = [_uniform(workload, name, rows) for name in ("alpha", "threshold")]
    asked.put(store, rows, *drawn)
    return asked


def _uniform(workload: Workload, name: str, rows: np.ndarray) -> np.ndarray:
    low, high = getattr(workload, name)
    return np.asarray(low + units(stream_key(workload.seed, name), rows) * (high - low))
