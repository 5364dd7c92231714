"""What `nearcast bench top` does. This module is slow to import, so the command imports it when it runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group

from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.top_runs.measure import TopBenchmark
from nearcast.bench.top_runs.workload import TopSizes, make_workload
from nearcast.cli.console import counted_steps, show, text_table
from nearcast.matching.variant import variant_of
from nearcast.topk.method import check_options, find_method

_ARRIVALS = ("arrivals", "µs", "p99", "concerned", "scanned", "scored", "bytes a subscription")
_STREAMS = (
    "stream",
    "µs",
    "p99",
    "µs in batches",
    "refills per 1,000",
    "inserts",
    "buffer",
    "bytes a subscription",
    "a message",
)


def run(
    sizes: TopSizes, source: Path | None, methods: Sequence[str], budget: float, out: Path | None, as_json: bool
) -> None:
    """Measure, print, and write. Unknown methods and options raise before anything runs."""
    for variant in map(variant_of, methods):
        check_options(find_method(variant.name), variant.options)
    with counted_steps(1 + 3 * len(methods), as_json) as step:
        step("drawing messages and subscriptions")
        result = TopBenchmark(make_workload(sizes, source), sizes, budget, step).run(methods)
    result |= {"source": None if source is None else source.name, "environment": describe_environment()}
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n")
    show(result, as_json, Group(_arrivals(result["arrivals"]), _streams(result["streams"])))


def _arrivals(figures: dict[str, Any]) -> Any:
    return text_table(
        _ARRIVALS,
        [
            (name, *shown(each["mean_us"], each["p99_us"], each["concerned"]))
            + shown(each["work"]["scanned"], each["work"]["scored"], each["bytes"])
            for name, each in figures.items()
        ],
    )


def _streams(figures: dict[str, Any]) -> Any:
    rows = []
    for name, each in figures.items():
        beyond_row = sum(size for part, size in each["bytes_a_subscription"].items() if part != "row")
        work = shown(each["refills_per_1000_expiries"], each["inserts"], each["mean_buffer"])
        times = shown(each["mean_us"], each["p99_us"], each["batch_us"])
        rows.append((name, *times, *work, *shown(beyond_row, each["bytes_a_message"])))
    return text_table(_STREAMS, rows)


def shown(*values: float) -> tuple[str, ...]:
    """Figures for a table: two decimals below 10."""
    return tuple(f"{value:,.0f}" if value >= 10 else f"{value:.2f}" for value in values)
