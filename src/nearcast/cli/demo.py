"""`nearcast demo`: deliver a year of traffic messages of one city, on Spark or by the library, and write a report."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group
from rich.text import Text
from typer import Option

from nearcast.cli.console import name_value_grid, note, progress, show, text_table, working
from nearcast.cli.options import Json
from nearcast.cli.pipeline.spark_console import Force, Master, on_spark

if TYPE_CHECKING:
    from nearcast.demo.result import DemoResult

_METHODS = ["auto", "brute", "pyramid"]


def demo(
    out: Annotated[Path, Option(metavar="DIR", help="Folder for the report and the tables.")] = Path("demo-output"),
    library: Annotated[bool, Option("--library", help="Run the library in this process, without Spark.")] = False,
    n_drawn: Annotated[int, Option("--subscriptions", min=0, hidden=True)] = 20_000,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Deliver a year of real traffic messages to 20,000 subscriptions.

    Runs the whole pipeline on Spark: ingest, vocabulary, sharded index, matching in batch, through a DataFrame, and
    as a stream with live changes. Uses a small sample of open data that comes with nearcast; needs no network. Writes
    report.html, all tables and the index. A second run repeats only the steps whose input changed.

    \b
    Example:
      nearcast demo --out demo-output
    """
    from nearcast.cli.warmup import warm_kernels
    from nearcast.demo.demo_subscriptions import LICENCE
    from nearcast.demo.result import write_report

    on_library = library or not _has_spark()
    if not as_json:
        note("compiling the kernels that the demo needs; this takes a minute the first time")
    start = time.perf_counter()
    warm_kernels(_METHODS, as_json, pipeline=not on_library)
    seconds = {"compiling_seconds": time.perf_counter() - start}
    if on_library:
        result = _run_with_library(n_drawn, out, as_json)
    else:
        result = _run_with_pipeline(n_drawn, out, master, force, as_json)
    write_report(result, out / "report.html", note)
    files = sorted(file for file in out.iterdir() if not file.name.startswith("."))
    figures = {**seconds, **result.figures, "files": [str(file) for file in files], "licence": LICENCE}
    show(figures, as_json, _screen(result, figures, out))


def _has_spark() -> bool:
    from importlib.util import find_spec

    if find_spec("pyspark") is not None:
        return True
    note("PySpark is not installed, so the library runs alone; for the pipeline: pip install 'nearcast[spark]'")
    return False


def _run_with_library(n_drawn: int, out: Path, quiet: bool) -> DemoResult:
    from nearcast.cli.warmup import warm_kernels
    from nearcast.demo.library import run_with_library

    warm_kernels(_METHODS, quiet, pipeline=False)  # loads here what other processes have compiled
    with progress(quiet) as display:
        return run_with_library(n_drawn, out, partial(working, display))


def _run_with_pipeline(n_drawn: int, out: Path, master: str | None, force: bool, quiet: bool) -> DemoResult:
    from nearcast.demo.pipeline import run_with_pipeline, sample_pipeline

    pipeline = sample_pipeline(out, n_drawn)
    start = time.perf_counter()
    with on_spark(master, quiet) as spark:
        started = {"spark_start_seconds": time.perf_counter() - start}
        result = run_with_pipeline(spark.session, pipeline, n_drawn, force, spark.working)
    return result._replace(figures=started | result.figures)


def _screen(result: DemoResult, figures: dict[str, Any], out: Path) -> Group:
    from nearcast.demo.demo_subscriptions import LICENCE
    from nearcast.demo.result import DELIVERY_TITLES, SUBSCRIPTION_TITLES, delivery_rows, subscription_rows

    rows = subscription_rows(result)
    subscriptions = text_table(SUBSCRIPTION_TITLES, rows, title="Subscriptions written by hand")
    subscriptions.columns[-1].justify = "right"
    examples = text_table(DELIVERY_TITLES, delivery_rows(result), title="Some deliveries")
    starts = {"compiling": "compiling_seconds", "start of Spark": "spark_start_seconds"}
    before = [f"{name} {figures[key]:.1f} s" for name, key in starts.items() if key in figures]
    lines = [
        *result.lines,
        ("start-up", ", ".join(before)),
        ("written", f"{out / 'report.html'}, with {len(figures['files']) - 1} tables and folders beside it"),
    ]
    return Group(subscriptions, examples, name_value_grid(lines), Text(f"\n{LICENCE}"))
