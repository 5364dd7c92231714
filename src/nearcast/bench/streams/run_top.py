"""Measures methods of kind `top` on one stream, in turns: arrivals and expiries apart.

The window is a period in which as many messages come as the workload's window has. `advance` to the next second
expires a burst, and `publish` then brings the next one, which expires nothing. So each is timed alone.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from nearcast.bench.streams.changes_digest import ChangesDigest
from nearcast.bench.streams.top_stream import TopStream
from nearcast.bench.streams.tuning import split_tuning, tuned
from nearcast.matching.variant import Variant
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.topk import TopK

Record = dict[str, Any]


class TopRun:
    """One method on the stream. Its window is full and its subscriptions are in it when it is made."""

    def __init__(self, variant: Variant, stream: TopStream) -> None:
        self.label, self.stream = variant.label, stream
        options, self._tuning = split_tuning(variant)
        with tuned(self._tuning):
            self.top = TopK(method=variant.name, **stream.options, **options)
            self.top.publish(stream.before)
            self.top.subscribe(stream.subscriptions)
        self._incoming: IncomingMessages = self.top.read_messages(stream.messages)
        self._refills = self.top.stats.get("refills", 0)
        self._n_expired = 0
        self._rounds: dict[str, list[float]] = {"arrival": [], "expiry": [], "stream": []}
        self._buffers: list[float] = []

    def measure(self, first: int, stop: int) -> str:
        """Measure the bursts `first` to `stop` as one round; return the digest of their changes."""
        with tuned(self._tuning):
            return self._measure(first, stop)

    def _measure(self, first: int, stop: int) -> str:
        bursts, digest = self.stream.bursts, ChangesDigest()
        expiring = arriving = 0.0
        n_expired = 0
        for burst in range(first, stop):
            part = self._incoming.part(int(bursts[burst]), int(bursts[burst + 1]))
            n_expired += len(self.top.window)
            start = time.process_time()
            gone = self.top.advance(self.stream.moment(burst))
            expiring += time.process_time() - start
            n_expired -= len(self.top.window)
            start = time.process_time()
            come = self.top.publish_read(part) if part.size else None
            arriving += time.process_time() - start
            digest.add_table(gone)
            digest.add(come)
        n_arrived = int(bursts[stop] - bursts[first])
        self._n_expired += n_expired
        self._rounds["arrival"].append(arriving / max(1, n_arrived) * 1e6)
        self._rounds["expiry"].append(expiring / max(1, n_expired) * 1e6)
        self._rounds["stream"].append((arriving + expiring) / max(1, n_arrived) * 1e6)
        self._buffers.append(float(getattr(self.top.method, "mean_buffer", np.nan)))
        return digest.text

    def record(self) -> Record:
        """The values by measure and round, and how many messages they cover."""
        n = max(1, len(self.top))
        refills = self.top.stats.get("refills", 0) - self._refills
        per_thousand = refills / max(1, self._n_expired) * 1000
        method, bytes_of = self.top.method, float(self.top.method.nbytes)
        index = getattr(getattr(method, "dissemination", None), "nbytes", bytes_of)
        values = {**self._rounds, "refills": [per_thousand], "size": [bytes_of / n], "index-size": [index / n]}
        if not np.isnan(self._buffers).any():
            values["buffer"] = self._buffers
        return {
            "method": self.label,
            "messages": self.stream.messages.num_rows,
            "subscriptions": n,
            "values": values,
            "counts": dict(self.top.stats),
        }
