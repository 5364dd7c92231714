"""Subscription sets: the time of a whole match (exact regions, NOT, expiry, owners, order) beside the method's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.runs.case import Case, Record, Settings
from nearcast.bench.runs.timing import share_within, timed
from nearcast.matching.intake import checked_messages
from nearcast.matching.store import RowStore
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.matching.variant import Variant
from nearcast.model import Found, Hits, MessageBatch

Sets = dict[str, SubscriptionSet]
"""The sets that are measured, by the label of their method."""


def build_sets(variants: Sequence[Variant], store: RowStore, case: Case) -> Sets:
    """A set for each method, over the subscriptions of the store."""
    batch, shapes = store.batch(store.live_rows())
    sets = {}
    for variant in variants:
        case.begin(f"a set with {variant.label}")
        sets[variant.label] = SubscriptionSet(variant.name, case.workload.geometry, variant.options)
        sets[variant.label].insert(batch, shapes)
    return sets


def run_whole(sets: Sets, messages: MessageBatch, settings: Settings, answer: Hits, what: str) -> list[Record]:
    """CPU time of the method and of the whole match, in turns. Raises Disagreement if a set finds other pairs."""
    records: dict[str, Record] = {}
    for label, live in sets.items():
        available = min(messages.size, len(answer.starts) - 1)
        n = share_within(_matcher(live, messages), available, settings.budget_s, 2 * settings.rounds + 1)
        _require_answer(live.match(messages.part(0, n)), answer, n, f"the set with '{label}' on {what}")
        records[label] = {"method": label, "messages": n, "kernel_cpu_s": [], "whole_cpu_s": []}
    for _ in range(settings.rounds):
        for label, live in sets.items():
            batch = messages.part(0, records[label]["messages"])
            checked = checked_messages(batch, live.store.n_terms)
            records[label]["kernel_cpu_s"].append(timed(live.method.match, checked)[1].cpu_s)
            records[label]["whole_cpu_s"].append(timed(live.match, batch)[1].cpu_s)
    return list(records.values())


def _matcher(live: SubscriptionSet, messages: MessageBatch) -> Callable[[int], Found]:
    return lambda n: live.match(messages.part(0, n))


def _require_answer(found: Found, answer: Hits, n: int, what: str) -> None:
    same_counts = np.array_equal(found.starts, answer.starts[: n + 1])
    if not (same_counts and np.array_equal(found.ids, answer.rows[: answer.starts[n]])):
        raise Disagreement(f"{what} finds {len(found.ids):,} pairs; the methods find {answer.starts[n]:,}, or others")
