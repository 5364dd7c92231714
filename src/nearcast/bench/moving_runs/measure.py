"""Measures methods for moving subscriptions step by step: expiry, arrival, shifts and jumps apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import nearcast.indexes  # noqa: F401  registers the stationary method
from nearcast.arrays.jit.mode import compile_now
from nearcast.bench.moving_runs.workload import LIFETIME, MovingWorkload, Step
from nearcast.bench.runs.agreement import Disagreement
from nearcast.bench.streams.changes_digest import ChangesDigest
from nearcast.geo.space import Space
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.matching.variant import Variant, variant_of
from nearcast.model import Changes
from nearcast.moving.moving_set import MovingSet

OnStep = Callable[[str], None]
WARM_UP = 2
"""Steps before the clock starts: they load kernels and touch memory."""
PARTS = ("expiry", "arrival", "shift", "jump")
STATIONARY = "pyramid"
"""The method for subscriptions that stay, which arrivals are compared with."""


class MovingBenchmark:
    """Runs methods one after another, so that the memory of one is not that of another."""

    def __init__(self, workload: MovingWorkload, steps: int, seconds: float, on_step: OnStep) -> None:
        self.workload, self.steps, self.seconds, self.on_step = workload, steps, seconds, on_step

    def run(self, methods: Sequence[str]) -> dict[str, Any]:
        """Figures by method. Raises Disagreement at the first step whose changes differ."""
        compile_now()
        self.on_step(f"{STATIONARY}: subscriptions that stay")
        stationary = run_stationary(self.workload, self.steps, self.seconds)
        figures: dict[str, Any] = {}
        digests: dict[str, list[str]] = {}
        for variant in map(variant_of, methods):
            self.on_step(f"{variant.label}: subscriptions and messages")
            run = MethodRun(variant, self.workload)
            self.on_step(f"{variant.label}: steps")
            digests[variant.label] = run.take_steps(self.steps, self.seconds)
            figures[variant.label] = run.figures()
            _compare(digests)
        sizes = {"workload": self.workload.base.parameters(), "window": self.workload.window}
        return sizes | {"stationary": stationary, "methods": figures}


def run_stationary(workload: MovingWorkload, steps: int, seconds: float) -> dict[str, Any]:
    """The whole match of the arriving messages, by a set whose subscriptions stay at their first places."""
    live = SubscriptionSet(STATIONARY, Space.of(workload.space))
    live.insert(workload.rows())
    spent, n_messages, n_matches = 0.0, 0, 0
    for number in range(WARM_UP + steps):
        messages = workload.arriving(number)
        start = time.process_time()
        found = live.match(messages)
        took = time.process_time() - start
        if number >= WARM_UP:
            spent, n_messages, n_matches = spent + took, n_messages + messages.size, n_matches + len(found.ids)
        if spent > seconds:
            break
    n = max(1, n_messages)
    return {"method": STATIONARY, "arrival_us": 1e6 * spent / n, "matches_an_arrival": n_matches / n}


class MethodRun:
    """One method over the workload."""

    def __init__(self, variant: Variant, workload: MovingWorkload) -> None:
        self.workload = workload
        self.live = MovingSet(variant.name, Space.of(workload.space), variant.options)
        self.live.subscribers.add(*workload.subscriptions())  # below steps: the first results are 1 GB at a million
        self.live.messages.add(*workload.first_messages())
        start = time.process_time()
        self.live.rebuild_method()
        self._built_s = time.process_time() - start
        self._seconds = dict.fromkeys(PARTS, 0.0)
        self._counts = dict.fromkeys(PARTS, 0)
        self._changes = dict.fromkeys(PARTS, 0)
        self._refiled = {"shift": 0, "jump": 0}
        self._n_steps, self._most_stored = 0, 0
        self._report = dict(self.live.method.report)

    def take_steps(self, steps: int, seconds: float) -> list[str]:
        """Take steps until all are taken or the seconds are over; return the digest of each step's changes."""
        digests = []
        for at, step in zip(range(WARM_UP + steps), self.workload.steps(), strict=False):
            digests.append(self._take(step, is_timed=at >= WARM_UP))
            self._most_stored = max(self._most_stored, len(self.live.messages) + self.live.messages.n_dead)
            if sum(self._seconds.values()) > seconds:
                break
        return digests

    def _take(self, step: Step, is_timed: bool) -> str:
        live, digest = self.live, ChangesDigest()
        n_messages = step.arrivals.batch.size
        self._part("expiry", n_messages, lambda: live.step(step.now), digest, is_timed)
        self._part("arrival", n_messages, lambda: live.step(arrivals=step.arrivals), digest, is_timed)
        for name, moved in (("shift", step.shifts), ("jump", step.jumps)):
            before = _refiled(live)
            self._part(name, len(moved[0]), partial(live.step, moved=moved), digest, is_timed)
            if is_timed:
                self._refiled[name] += _refiled(live) - before
        self._n_steps += is_timed
        return digest.text

    def _part(self, name: str, n: int, call: Callable[[], Changes], digest: ChangesDigest, is_timed: bool) -> None:
        start = time.process_time()
        changes = call()
        took = time.process_time() - start
        digest.add(changes)
        if is_timed:
            self._seconds[name] += took
            self._counts[name] += n
            self._changes[name] += changes.size

    def figures(self) -> dict[str, Any]:
        """Microseconds, shares, counts and bytes."""
        live, counts, seconds = self.live, self._counts, self._seconds
        n_moves = max(1, counts["shift"] + counts["jump"])
        micro = {f"{name}_us": 1e6 * seconds[name] / max(1, counts[name]) for name in PARTS}
        return {
            "steps": self._n_steps,
            "built_s": self._built_s,
            "move_us": 1e6 * (seconds["shift"] + seconds["jump"]) / n_moves,
            **micro,
            "refiled": sum(self._refiled.values()) / n_moves,
            "refiled_shifts": self._refiled["shift"] / max(1, counts["shift"]),
            "refiled_jumps": self._refiled["jump"] / max(1, counts["jump"]),
            "changes_a_move": (self._changes["shift"] + self._changes["jump"]) / n_moves,
            "changes_an_arrival": self._changes["arrival"] / max(1, counts["arrival"]),
            "bytes": {
                "subscriptions": live.subscribers.nbytes,
                "messages": live.messages.nbytes,
                "method": live.method.nbytes,
            },
            "live_messages": len(live.messages) / (self.workload.per_step * LIFETIME),
            "most_messages_stored": self._most_stored / (self.workload.per_step * LIFETIME),
            "report": {"at the start": self._report, "at the end": dict(live.method.report)},
        }


def _refiled(live: MovingSet) -> int:
    return live.method.report.get("moves filed anew", 0)


def _compare(digests: dict[str, list[str]]) -> None:
    """Raise unless all methods gave the same changes in the steps that they have in common."""
    first, *others = digests
    for other in others:
        for at, (ours, theirs) in enumerate(zip(digests[first], digests[other], strict=False)):
            if ours != theirs:
                raise Disagreement(f"step {at}: '{other}' gave {theirs}, '{first}' gave {ours}")
