"""Shared by commands on Spark: the session, a progress bar that follows Spark's tasks, one line on failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from nearcast.cli.console import name_value_grid, note, progress, show, working
from nearcast.cli.options import place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress
    from rich.table import Table

    from nearcast.cli.pipeline.job_progress import Tasks
    from nearcast.spark.pipeline import Stage

Master = Annotated[
    str | None,
    Option(
        metavar="URL",
        help="Master of Spark: spark://host:7077, yarn, k8s://... [default: NEARCAST_MASTER, or local[*]]",
    ),
]
Force = Annotated[bool, Option("--force", help="Repeat steps that are up to date.")]
Index = Annotated[str, place(metavar="INDEX", help="Made by `pipeline build`: a path or a URL.")]


class OnSpark:
    """A Spark session, started on first use, and the progress display."""

    def __init__(self, master: str | None, display: Progress) -> None:
        self._master = master
        self.display = display
        self.started: SparkSession | None = None  # only if it did not exist before

    @cached_property
    def session(self) -> SparkSession:
        from nearcast.spark.runtime.session import open_session, running_session

        running = running_session()
        if running is not None:
            return running
        with working(self.display, "starting Spark"):
            self.started = open_session(self._master)
        # Spark logs the Java stack of each failed task; the command prints the reason in one line.
        self.started.sparkContext.setLogLevel(os.environ.get("NEARCAST_SPARK_LOG", "OFF"))
        return self.started

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """A progress bar that follows Spark's tasks."""
        from nearcast.cli.pipeline.job_progress import watched

        task = self.display.add_task(what, total=None)

        def on_tasks(tasks: Tasks) -> None:
            self.display.update(task, completed=tasks.done, total=tasks.known or None)

        try:
            with watched(self.session, on_tasks):
                yield
        finally:
            self.display.remove_task(task)


@contextmanager
def on_spark(master: str | None, quiet: bool) -> Iterator[OnSpark]:
    """A session that ends with the block, unless it existed before."""
    from nearcast.spark.runtime.failures import plain_failures

    with plain_failures(), progress(quiet) as display:
        spark = OnSpark(master, display)
        try:
            yield spark
        finally:
            if spark.started is not None:
                spark.started.stop()


def run_one_step(stage: Stage, master: str | None, force: bool, as_json: bool) -> None:
    """Run one step and show its result. A step that is up to date does not even start Spark."""
    from nearcast.ingest.pipeline.steps import run_step
    from nearcast.spark.runtime.failures import plain_failures

    def work() -> dict[str, Any]:
        stage.check()
        with on_spark(master, as_json) as spark, spark.working(stage.step.name):
            return stage.work(spark.session)

    with plain_failures():
        done = run_step(stage.step, work, force)
    if done.was_done and not as_json:
        note(f"{stage.step.name}: up to date; use --force to repeat it")
    result = {"step": stage.step.name, "up_to_date": done.was_done, "out": stage.step.outputs[0], **done.result}
    show(result, as_json, grid(result))


def grid(result: dict[str, Any]) -> Table:
    """Names and values in two columns. A nested name has the names around it in front."""
    return name_value_grid((name.replace("_", " "), _format_value(value)) for name, value in _flat(result))


def _flat(result: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in result.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}: ")
        else:
            yield f"{before}{name}", value


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"
    return "-" if value is None else str(value)
