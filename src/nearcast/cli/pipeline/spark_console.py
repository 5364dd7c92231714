"""What the commands on Spark share: a session, a bar that follows its tasks, one line when it fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table

from nearcast.cli.console import note, progress, show, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress

    from nearcast.spark.pipeline.stages import Stage
    from nearcast.spark.runtime.progress import Tasks

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark's master, as in spark://host:7077, yarn, k8s://... [default: NEARCAST_MASTER, or local[*]]",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Do it again, though nothing changed.")]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


class OnSpark(NamedTuple):
    """A session and where its progress is shown."""

    session: SparkSession
    shown: Progress

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """A bar that follows Spark's tasks."""
        from nearcast.spark.runtime.progress import watched

        task = self.shown.add_task(what, total=None)

        def tell(tasks: Tasks) -> None:
            self.shown.update(task, completed=tasks.done, total=tasks.known or None)

        try:
            with watched(self.session, tell):
                yield
        finally:
            self.shown.remove_task(task)


@contextmanager
def on_spark(master: str | None, quiet: bool) -> Iterator[OnSpark]:
    """A session that ends with the block, unless it was there before."""
    from nearcast.spark.runtime.failures import plain_failures
    from nearcast.spark.runtime.session import open_session, running_session

    before = running_session()
    with plain_failures(), progress(quiet) as shown:
        with working(shown, "starting Spark"):
            session = before or open_session(master)
        if before is None:
            # Spark logs the Java stack of each task that fails; we say the reason in one line.
            session.sparkContext.setLogLevel(os.environ.get("NEARCAST_SPARK_LOG", "OFF"))
        try:
            yield OnSpark(session, shown)
        finally:
            if before is None:
                session.stop()


def one_step(stage: Stage, master: str | None, force: bool, as_json: bool) -> None:
    """Run a step by itself, unless it is up to date (Spark is not even started then), and show what it told."""
    from nearcast.spark.pipeline.steps import run_step

    def work() -> dict[str, Any]:
        with on_spark(master, as_json) as spark, spark.working(stage.step.name):
            return stage.work(spark.session)

    done = run_step(stage.step, work, force)
    if done.was_done and not as_json:
        note(f"{stage.step.name}: up to date; --force does it again")
    result = {"step": stage.step.name, "up_to_date": done.was_done, "out": stage.step.outputs[0], **done.result}
    show(result, as_json, grid(result))


def grid(result: dict[str, Any]) -> Table:
    """Names and values; nested ones indented by their name."""
    table = Table.grid(padding=(0, 2))
    for name, value in _flat(result):
        table.add_row(name.replace("_", " "), _told(value))
    return table


def _flat(result: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in result.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}: ")
        else:
            yield f"{before}{name}", value


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"
    return "-" if value is None else str(value)
