"""Measures methods for moving subscriptions on one stream, in turns: expiries, arrivals and moves apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.bench.streams.changes_digest import ChangesDigest
from nearcast.bench.streams.moving_stream import MovingStream, Step
from nearcast.matching.variant import Variant
from nearcast.moving.moving import Moving

Record = dict[str, Any]


class MovingRun:
    """One method on the stream. Its subscriptions and first messages are in it when it is made."""

    def __init__(self, variant: Variant, stream: MovingStream) -> None:
        self.label, self.stream = variant.label, stream
        self._true_boxes = stream.boxes
        options = dict(variant.options)
        self._is_safe = bool(options.get("safe"))
        if self._is_safe:
            options["where"] = lambda ids: self._true_boxes[ids]
        self.moving = Moving(stream.subscriptions, variant.name, stream.space, **options)
        self.moving.publish(stream.before, now=stream.start)
        self._values: dict[str, list[float]] = {}
        self._n_moves = self._n_messages = 0

    def warm_up(self) -> str:
        """Run the first step without recording its times; return the digest of its changes."""
        digest = ChangesDigest()
        self._run_step(self.stream.steps[0], digest)
        return digest.text

    def measure(self, first: int, stop: int) -> str:
        """Run the steps `first` to `stop` as one round; return the digest of their changes."""
        digest, before = ChangesDigest(), dict(self.moving.traffic)
        times = np.array([self._run_step(step, digest) for step in self.stream.steps[first:stop]])
        expiry, arrival, move = times.sum(axis=0).tolist()
        n_steps, n_moves = stop - first, sum(len(step.ids) for step in self.stream.steps[first:stop])
        n_messages = self.stream.per_step * n_steps
        self._n_moves += n_moves
        self._n_messages += n_messages
        sent = self._sent(before, n_moves, digest.n_changes)
        values = {
            "move": move / n_moves * 1e6,
            "moves": move / n_steps * 1e3,
            "step": (expiry + arrival + move) / n_steps * 1e3,
            "traffic": sum(sent.values()) / n_steps,
            "reports": (sent["reports"] + sent["recalls"]) / n_steps,
        }
        if n_messages:
            values |= {"expiry": expiry / n_messages * 1e6, "arrival": arrival / n_messages * 1e6}
        for name, value in values.items():
            self._values.setdefault(name, []).append(value)
        return digest.text

    def _run_step(self, step: Step, digest: ChangesDigest) -> tuple[float, float, float]:
        """The CPU seconds of the expiries, the arrivals and the moves of a step."""
        expiry = self._timed(digest, lambda: self.moving.advance(step.now))
        arrival = self._timed(digest, lambda: self.moving.publish(step.messages))
        self._true_boxes = step.boxes
        ids = self._reporting(step)
        return expiry, arrival, self._timed(digest, lambda: self.moving.move(ids, step.boxes[ids]))

    def _sent(self, before: dict[str, int], n_moves: int, n_changes: int) -> dict[str, int]:
        """Reports, recalls and pushes of a round. Without safe regions every move is a report."""
        if not self._is_safe:
            return {"reports": n_moves, "recalls": 0, "pushes": n_changes}
        return {name: count - before.get(name, 0) for name, count in self.moving.traffic.items()}

    def _reporting(self, step: Step) -> np.ndarray:
        """The movers that report: those outside their safe region, or all. The clients decide, so it is not timed."""
        if not self._is_safe:
            return step.ids
        return step.ids[self.moving.must_report(step.ids, step.boxes[step.ids])]

    @staticmethod
    def _timed(digest: ChangesDigest, call: Callable[[], pa.Table]) -> float:
        start = time.process_time()
        changes = call()
        took = time.process_time() - start
        digest.add_table(changes)
        return took

    def record(self) -> Record:
        """The values by measure and round, and how many messages and moves they cover."""
        n = max(1, len(self.moving))
        return {
            "method": self.label,
            "messages": self._n_messages,
            "moves": self._n_moves,
            "subscriptions": n,
            "values": self._values | {"size": [self.moving.nbytes / n]},
            "counts": dict(self.moving.report),
        }
