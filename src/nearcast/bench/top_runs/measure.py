"""Measures methods of kind `top` on one workload: arrivals alone, and whole streams."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nearcast.arrays.jit.mode import compile_now
from nearcast.bench.top_runs.filled import FilledWindows
from nearcast.bench.top_runs.parts import timing_parts
from nearcast.errors import NearcastError
from nearcast.matching.variant import Variant, variant_of
from nearcast.model import Changes
from nearcast.topk.buffered.buffered_method import BufferedTop
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.method import find_method
from nearcast.topk.topk import TopK

Step = Callable[[str], None]
WARM_UP = 20
"""Messages before the clock starts: they load kernels and touch memory."""
BATCH = 100
"""Messages of a call when the cost of calls is not wanted."""


class Log(dict[tuple[int, int], Changes]):
    """The changes of each call, by its first and last message."""


class Disagreement(NearcastError):
    """Two methods gave different changes."""


class TopBenchmark:
    """Runs methods one after another, each over a window that is full at the start."""

    def __init__(self, filled: FilledWindows, seconds: float, step: Step) -> None:
        self.filled, self.seconds, self.step = filled, seconds, step

    def run(self, methods: Sequence[str]) -> dict[str, Any]:
        """{arrivals: figures by method, streams: figures by method}. Ends with the first difference in changes."""
        compile_now()
        variants = [variant_of(method) for method in methods]
        arrivals: dict[str, Any] = {}
        streams: dict[str, Any] = {}
        logs: dict[str, Log] = {}
        sizes, messages = self.filled.sizes, self.filled.workload.messages
        for place, variant in enumerate(variants):
            self.step(f"{variant.label}: window and subscriptions")
            top = self.filled.open(variant)
            coming = top.read_messages(messages.slice(sizes.window))
            if place == 0:
                for other in variants:
                    arrivals[other.label] = self._arrivals(top, other, coming)
            streams[variant.label], logs[variant.label] = self._stream(top, variant, coming)
        _compare(logs)
        return {"sizes": sizes._asdict(), "arrivals": arrivals, "streams": streams}

    def _arrivals(self, top: TopK, variant: Variant, coming: IncomingMessages) -> dict[str, Any]:
        """Time to find the rows that messages concern, over the thetas of `top`. Nothing arrives."""
        self.step(f"{variant.label}: arrivals")
        made = find_method(variant.name)(top.rows, top.window, top.metric, top.space, **variant.options)
        assert isinstance(made, BufferedTop)
        index, window, weights = made.dissemination, top.window, top.method.weights
        index.add(top.rows.live_rows(), weights)
        window.load(coming)
        try:
            numbers = range(window.stop, window.loaded)
            for arrival in numbers[:WARM_UP]:
                index.find(window, arrival, weights)
            before, taken, concerned = index.stats, list[float](), 0
            for arrival in numbers[WARM_UP:]:
                start = time.process_time()
                concerned += len(index.find(window, arrival, weights).rows)
                taken.append(time.process_time() - start)
                if sum(taken) > self.seconds:
                    break
        finally:
            window.loaded = window.stop
        n = len(taken)
        work = {name: (count - before[name]) / n for name, count in index.stats.items()}
        bytes_a_row = index.nbytes / len(top.rows)
        return {"messages": n, **_times(taken), "concerned": concerned / n, "bytes": bytes_a_row, "work": work}

    def _stream(self, top: TopK, variant: Variant, coming: IncomingMessages) -> tuple[dict[str, Any], Log]:
        """Publish messages one by one until a third of the time or of the messages is over, in batches, and by part."""
        self.step(f"{variant.label}: stream")
        method, log = top.method, Log()
        assert isinstance(method, BufferedTop)
        self._publish(top, coming, (0, WARM_UP, 1), log)
        third = coming.size // 3 // BATCH * BATCH
        before = top.stats
        taken = self._publish(top, coming, (WARM_UP, third, 1), log)
        reached = WARM_UP + len(taken)
        stop = min(third, -(-reached // BATCH) * BATCH)
        self._publish(top, coming, (reached, stop, 1), log, in_time=False)
        batches = self._publish(top, coming, (stop, stop + third, BATCH), log)
        stop += len(batches) * BATCH
        with timing_parts(method) as timer:
            by_part = self._publish(top, coming, (stop, stop + third, BATCH), log)
        stats = {name: count - before[name] for name, count in top.stats.items()}
        n = stats["messages"]
        micro = 1e6 * np.array(batches) / BATCH
        figures = {
            "messages": n,
            **_times(taken),
            "batch_us": float(micro.mean()),
            "batch_us_least": float(micro.min()),
            "batch_us_most": float(micro.max()),
            "parts_us": {part: 1e6 * each / len(by_part) / BATCH for part, each in timer.seconds.items()},
            "refills_per_1000_expiries": 1000 * stats["refills"] / max(1, stats["expired"]),
            "inserts": stats["inserts"] / n,
            "touched": stats["touched"] / n,
            "mean_buffer": method.mean_buffer,
            "bytes_a_subscription": _bytes_a_subscription(top, method),
            "bytes_a_message": (method.messages.nbytes + top.window.nbytes) / max(1, len(top.window)),
        }
        return figures, log

    def _publish(
        self, top: TopK, coming: IncomingMessages, part: tuple[int, int, int], log: Log, in_time: bool = True
    ) -> list[float]:
        """Publish the messages of a range (start, stop, step), a step a call, while there is time.

        Returns the seconds of each call.
        """
        taken = list[float]()
        for at in range(*part):
            messages = coming.part(at, at + part[2])
            start = time.process_time()
            log[at, at + part[2]] = top.publish_read(messages)
            taken.append(time.process_time() - start)
            if in_time and sum(taken) > self.seconds / 3:
                break
        return taken


def _times(taken: list[float]) -> dict[str, float]:
    micro = 1e6 * np.array(taken)
    return {
        "mean_us": float(micro.mean()),
        "p50_us": float(np.median(micro)),
        "p99_us": float(np.quantile(micro, 0.99)),
    }


def _bytes_a_subscription(top: TopK, method: BufferedTop) -> dict[str, float]:
    """Bytes by part. The lists of expiries have a head for each message of the window; it is counted here."""
    parts = {"row": top.rows.nbytes, "index": method.dissemination.nbytes, "buffers": method.buffers.nbytes}
    return {name: size / len(top.rows) for name, size in (parts | {"expiries": method.wheel.nbytes}).items()}


def _compare(logs: dict[str, Log]) -> None:
    """Raise unless all methods gave the same changes in the calls that they have in common."""
    first, *others = logs
    for other in others:
        for at in sorted(logs[first].keys() & logs[other].keys()):
            pairs = zip(logs[first][at], logs[other][at], strict=True)
            if not all(np.array_equal(one, two) for one, two in pairs):
                place = f"message {at[0]} after the window"
                raise Disagreement(f"'{first}' and '{other}' give different changes for {place}")
