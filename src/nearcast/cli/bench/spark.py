"""`nearcast bench spark`: the pipeline against the plain join and the library, and what Spark itself costs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table

from nearcast.cli.console import show
from nearcast.cli.generate import WORKLOADS
from nearcast.cli.pipeline.spark_console import Json, Master, OnSpark, grid, on_spark
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    from nearcast.bench.workloads.workload import Workload

_JOIN_TITLES = ("subscriptions", "messages", "pairs", "join s", "build s", "match s", "ratio")
PARTS = ("join", "library", "overheads", "memory")


def bench_spark(  # noqa: PLR0913  the options of a command are its parameters
    workload: Annotated[str, typer.Option(help=f"What is drawn: {WORKLOADS}.")] = "B",
    sizes: Annotated[
        str, typer.Option(metavar="N,...", help="Sizes of the join: so many subscriptions and as many messages.")
    ] = "20000",
    subscriptions: Annotated[
        int, typer.Option("--subscriptions", "-n", metavar="N", min=1, help="Against the library: how many.")
    ] = 50_000,
    messages: Annotated[
        int, typer.Option("--messages", "-m", metavar="N", min=1, help="Against the library: how many.")
    ] = 100_000,
    shards: Annotated[int | None, typer.Option(min=1, help="Parts of the index. [default: by size and cores]")] = None,
    parts: Annotated[str, typer.Option(metavar="PART,...", help="What to measure.")] = ",".join(PARTS),
    rounds: Annotated[int, typer.Option(min=1, help="How often; the median counts.")] = 1,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the data goes. [default: a temporary folder]")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Keep the figures as JSON.")] = None,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Measure the pipeline on Spark.

    Ratios of one run: the plain Spark SQL join against ours (build and match), messages per second and core of
    the library against Spark's, milliseconds for a task and for a micro-batch, memory of one and of two workers.
    The start of Spark and a warm-up come before the clock.

    \b
    Example:
      nearcast bench spark --sizes 100000,500000 -n 1000000 -m 5000000 --out spark.json
    """
    from nearcast.bench.workloads.workload import find_workload

    chosen = find_workload(workload)
    wanted = _read_parts(parts)
    joins = _read_sizes(sizes)
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as temporary:
        place = folder or Path(temporary)
        with on_spark(master, as_json) as spark:
            run = _Run(spark, chosen, place, shards, rounds)
            result = run.measured(wanted, joins, (subscriptions, messages))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    show(result, as_json, tables_of(result))


class _Run:
    def __init__(self, spark: OnSpark, workload: Workload, folder: Path, shards: int | None, rounds: int) -> None:
        self.spark, self.workload, self.folder, self.rounds = spark, workload, folder, rounds
        self._shards = shards

    def shards_for(self, subscriptions: int) -> int:
        from nearcast.spark.pipeline.pipeline import default_shards
        from nearcast.spark.runtime.session import cores_of

        return self._shards or default_shards(subscriptions, cores_of(self.spark.session))

    def measured(self, parts: list[str], joins: list[int], sizes: tuple[int, int]) -> dict[str, Any]:
        from nearcast.bench.runs.results import describe_environment
        from nearcast.bench.spark_runs.rates import against_library, warm_up

        session = self.spark.session
        result: dict[str, Any] = {
            "format": "nearcast-bench-spark",
            "version": 1,
            "workload": self.workload.parameters(),
        }
        with self.spark.working("warming up"):
            warm_up(session, self.workload, self.folder / "warm-up", self._shards or 2)
        if "join" in parts:
            result["join"] = [self._join(size) for size in joins]
        if set(parts) - {"join"}:
            data = self._data("library", *sizes)
            with self.spark.working("against the library"):
                result["library"] = against_library(session, data, self.shards_for(sizes[0]), self.rounds)
            result |= self._overheads(data) if "overheads" in parts else {}
            result |= self._memory(data) if "memory" in parts else {}
        return result | {"surroundings": describe_environment() | {"pyspark": session.version}}

    def _data(self, name: str, subscriptions: int, messages: int) -> Any:
        from nearcast.bench.spark_runs.rates import write_data

        with self.spark.working("drawing the workload"):
            return write_data(self.workload.but(subscriptions=subscriptions, messages=messages), self.folder / name)

    def _join(self, size: int) -> dict[str, Any]:
        from nearcast.bench.spark_runs.rates import against_join

        data = self._data(f"join-{size}", size, size)
        with self.spark.working(f"against the join, {size:,} x {size:,}"):
            return against_join(self.spark.session, data, self.shards_for(size), self.rounds)

    def _overheads(self, data: Any) -> dict[str, Any]:
        from nearcast.bench.spark_runs.overheads import micro_batch_overhead_ms, task_overhead_ms

        with self.spark.working("overheads"):
            task_ms = task_overhead_ms(self.spark.session)
            return {"task_ms": task_ms, "micro_batch": micro_batch_overhead_ms(self.spark.session, data)}

    def _memory(self, data: Any) -> dict[str, Any]:
        from nearcast.bench.spark_runs.worker_memory import memory_of_workers
        from nearcast.spark.runtime.session import cores_of

        counts = [n for n in (1, 2) if n <= cores_of(self.spark.session)]
        with self.spark.working("memory of workers"):
            index = data.path("index")
            return {"memory": [memory_of_workers(self.spark.session, index, str(data.folder), n) for n in counts]}


def _read_parts(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise InvalidInput(f"--parts takes some of {', '.join(PARTS)}, not '{text}'")
    return parts


def _read_sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise InvalidInput(f"--sizes takes whole numbers, as in 100000,500000, not '{text}'")
    return sizes


def tables_of(result: dict[str, Any]) -> Group:
    """The figures for people."""
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
