"""The demo by the library alone, in this process."""

from __future__ import annotations

import statistics
import time
import timeit
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearcast.demo.demo_subscriptions import sample_messages, subscriptions_table
from nearcast.demo.result import DemoResult, check_matches, count_lines
from nearcast.engine.index import Index, build_index
from nearcast.spark.pipeline import Working
from nearcast.tables import write_table

ROUNDS = 5


def run_with_library(n_drawn: int, out: Path, working: Working) -> DemoResult:
    """Match all messages, check the matches against brute force, and write the tables to the folder `out`."""
    with working("drawing subscriptions"):
        messages = sample_messages()
        subscriptions = subscriptions_table(messages, n_drawn)
    with working("building the index"):
        start = time.perf_counter()
        index = build_index(subscriptions, extra=["name"])
        build_seconds = time.perf_counter() - start
    with working("matching"):
        matches, figures = _match(index, messages)
    with working("checking against brute force"):
        figures |= check_matches(subscriptions, messages, matches)
    with working("writing the tables"):
        write_table(matches, out / "matches.parquet")
        write_table(subscriptions, out / "subscriptions.parquet")
    figures = {"build_seconds": build_seconds, **figures}
    return DemoResult(messages, subscriptions, matches, figures, _lines(figures))


def _match(index: Index, messages: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """The matches, and the figures of matching."""
    start = time.perf_counter()
    matches = index.match(messages)
    whole_seconds = time.perf_counter() - start
    batch = index.read_messages(messages)
    work, method = index.stats, index.matcher.method
    seconds = timeit.repeat(lambda: index.matcher.match(batch), number=1, repeat=ROUNDS)
    n = messages.num_rows
    return matches, {
        "method": index.method,
        "chosen": getattr(method, "chosen", method).name,  # `auto` delegates to the method that it chose
        "subscriptions": len(index),
        "messages": n,
        "deliveries": matches.num_rows,
        "messages_per_second": n / whole_seconds,
        "us_per_message": 1e6 * statistics.median(seconds) / n,
        "candidates_per_message": work.candidates / n,
        "bytes_per_subscription": index.nbytes / len(index),
    }


def _lines(figures: dict[str, Any]) -> list[tuple[str, str]]:
    shared = count_lines(figures)
    per_message = figures["deliveries"] / figures["messages"]
    return [
        shared["subscriptions"],
        ("messages", f"{figures['messages']:,}"),
        ("deliveries", f"{figures['deliveries']:,}, {per_message:.0f} per message"),
        ("index built in", f"{figures['build_seconds']:.2f} s, from the table"),
        ("text to deliveries", f"{figures['messages_per_second']:,.0f} messages per second on one core"),
        ("matching alone", f"{figures['us_per_message']:.1f} µs per message, method {figures['chosen']}"),
        ("work", f"{figures['candidates_per_message']:,.0f} candidates compared per message"),
        ("memory", f"{figures['bytes_per_subscription']:.0f} bytes per subscription"),
        shared["checked"],
    ]
