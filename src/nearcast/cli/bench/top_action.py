"""What `nearcast bench top` does. This module is slow to import, so the command imports it when it runs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group

from nearcast.bench.runs.environment import describe_environment
from nearcast.bench.top_runs.filled import FilledWindows, refill_of
from nearcast.bench.top_runs.measure import TopBenchmark
from nearcast.bench.top_runs.parts import PARTS
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


class Files(NamedTuple):
    """What a run reads and writes: real messages, full windows that it keeps, and the figures."""

    source: Path | None
    filled: Path | None
    out: Path | None


def run(sizes: TopSizes, files: Files, methods: Sequence[str], budget: float, as_json: bool) -> None:
    """Measure, print, and write. Unknown methods and options raise before anything runs."""
    for variant in map(variant_of, methods):
        check_options(find_method(variant.name), variant.options)
        refill_of(variant)
    source, out = files.source, files.out
    with (
        tempfile.TemporaryDirectory(prefix="nearcast-bench-") as temporary,
        counted_steps(1 + 3 * len(methods), as_json) as step,
    ):
        step("drawing messages and subscriptions")
        filled = FilledWindows(files.filled or Path(temporary), make_workload(sizes, source), sizes, source)
        result = TopBenchmark(filled, budget, step).run(methods)
    result |= {"source": None if source is None else source.name, "environment": describe_environment()}
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n")
    show(result, as_json, Group(_arrivals(result["arrivals"]), _streams(result["streams"]), _parts(result["streams"])))


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


def _parts(figures: dict[str, Any]) -> Any:
    """µs a message of each part, when every part is a call of its own."""
    parts = [part for part in PARTS if any(part in each["parts_us"] for each in figures.values())]
    rows = [(name, *shown(*(each["parts_us"].get(part, 0.0) for part in parts))) for name, each in figures.items()]
    return text_table(("by part, µs", *parts), rows)


def shown(*values: float) -> tuple[str, ...]:
    """Figures for a table: two decimals below 10."""
    return tuple(f"{value:,.0f}" if value >= 10 else f"{value:.2f}" for value in values)
