"""`nearcast bench spark`: the pipeline compared with a plain join and with the library; the overheads of Spark."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.table import Table

from nearcast.cli.console import show
from nearcast.cli.generate import WORKLOADS
from nearcast.cli.options import Json, read_counts, read_names
from nearcast.cli.pipeline.spark_console import Master, grid, on_spark
from nearcast.errors import InvalidInput

_JOIN_TITLES = ("subscriptions", "messages", "pairs", "join s", "build s", "match s", "ratio")
PARTS = ("join", "library", "overheads", "memory")


def bench_spark(  # noqa: PLR0913  the options of a command are its parameters
    workload: Annotated[str, typer.Option(help=f"The workload: {WORKLOADS}.")] = "B",
    sizes: Annotated[
        str, typer.Option(metavar="N,...", help="Sizes of the join: N subscriptions and N messages.")
    ] = "20000",
    subscriptions: Annotated[
        int,
        typer.Option("--subscriptions", "-n", metavar="N", min=1, help="Against the library: number of subscriptions."),
    ] = 50_000,
    messages: Annotated[
        int, typer.Option("--messages", "-m", metavar="N", min=1, help="Against the library: number of messages.")
    ] = 100_000,
    shards: Annotated[int | None, typer.Option(min=1, help="Number of shards. [default: by size and cores]")] = None,
    parts: Annotated[str, typer.Option(metavar="PART,...", help="What to measure.")] = ",".join(PARTS),
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds; the median counts.")] = 1,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the data. [default: a temporary folder]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write the figures to this file, as JSON.")
    ] = None,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Measure the pipeline on Spark.

    Compares the time of a plain Spark SQL join with the time to build and match, and the messages per second and
    core of the library with those of the pipeline. Also measures the milliseconds of an empty task and of a
    micro-batch, and the memory of one and of two workers. The start of Spark and a warm-up are not timed.

    \b
    Example:
      nearcast bench spark --sizes 100000,500000 -n 1000000 -m 5000000 --out spark.json
    """
    from nearcast.bench.workloads.workload import find_workload

    chosen, wanted, joins = find_workload(workload), _read_parts(parts), read_counts("--sizes", sizes)
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as temporary:
        place = folder or Path(temporary)
        with on_spark(master, as_json) as spark:
            from nearcast.bench.spark_runs.benchmark import SparkBenchmark

            benchmark = SparkBenchmark(spark.session, spark.working, chosen, place, shards, rounds)
            result = benchmark.measure(wanted, joins, (subscriptions, messages))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(result, as_json, tables_of(result))


def _read_parts(text: str) -> list[str]:
    parts = read_names(text)
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise InvalidInput(f"--parts takes some of {', '.join(PARTS)}, not '{text}'")
    return parts


def tables_of(result: dict[str, Any]) -> Group:
    """The figures as tables."""
    shown: list[Any] = []
    if "join" in result:
        table = Table(*_JOIN_TITLES, title="Against the plain join, build and match together", title_justify="left")
        for line in result["join"]:
            table.add_row(*(f"{v:,}" if isinstance(v, int) else f"{v:,.2f}" for v in line.values()))
        shown.append(table)
    rest: dict[str, Any] = {name: result[name] for name in ("library", "task_ms", "micro_batch") if name in result}
    if "memory" in result:
        rest["memory"] = {f"{each['workers']} worker(s)": _in_mb(each) for each in result["memory"]}
    return Group(*shown, grid(rest))


def _in_mb(each: dict[str, Any]) -> str:
    whole, index = (
        " + ".join(f"{size / 1e6:,.0f}" for size in each[name]) for name in ("resident_bytes", "index_resident_bytes")
    )
    return (
        f"{whole} MB resident; of the index {index} MB, which is {each['index_bytes_together'] / 1e6:,.0f} MB together"
    )
