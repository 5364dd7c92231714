"""A whole pipeline, step by step, as `nearcast pipeline run` and `nearcast demo` show it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from nearcast.cli.console import show
from nearcast.cli.pipeline.spark_console import OnSpark, on_spark

if TYPE_CHECKING:
    from nearcast.spark.pipeline.stages import Pipeline, Stage


def run_shown(pipeline: Pipeline, master: str | None, force: bool, as_json: bool) -> None:
    """Run all steps, write the report, and show a line for each step."""
    from nearcast.ingest.reports.page import html_table
    from nearcast.ingest.reports.table_report import write_report

    with on_spark(master, as_json) as spark:
        told = run_all(spark, pipeline, force)
    steps = html_table(("step", "what it told", "seconds"), _rows(told))
    write_report(pipeline.path("report.html"), statistics_of(pipeline), title="nearcast pipeline", more=[steps])
    result = {"out": str(pipeline.out), "steps": told, "report": pipeline.path("report.html")}
    show(result, as_json, _table(result))


def statistics_of(pipeline: Pipeline) -> dict[str, Any]:
    """What the step `statistics` left."""
    found: dict[str, Any] = json.loads(Path(pipeline.path("statistics.json")).read_bytes())
    return found


def run_all(spark: OnSpark, pipeline: Pipeline, force: bool) -> dict[str, dict[str, Any]]:
    """What each step told, by its name; `seconds` are those of the run that did the work."""
    from nearcast.spark.pipeline.replay import replay_stage
    from nearcast.spark.pipeline.stages import stages
    from nearcast.spark.pipeline.steps import require_inputs

    require_inputs([*pipeline.messages.sources, *pipeline.subscriptions.sources])
    told = {stage.step.name: _done(spark, stage, force) for stage in stages(pipeline)}
    if pipeline.stream_files:
        told["stream"] = _done(spark, replay_stage(pipeline), force)
    return told


def _done(spark: OnSpark, stage: Stage, force: bool) -> dict[str, Any]:
    from nearcast.spark.pipeline.steps import run_step

    def work() -> dict[str, Any]:
        start = time.perf_counter()
        result = stage.work(spark.session)
        return {
            "seconds": time.perf_counter() - start,
            **result,
        }  # a step may know better: the stream without its check

    with spark.working(stage.step.name):
        done = run_step(stage.step, work, force)
    return {**done.result, "up_to_date": done.was_done}


def _table(result: dict[str, Any]) -> Table:
    table = Table("step", "what it told", "seconds")
    table.columns[2].justify = "right"
    for row in _rows(result["steps"]):
        table.add_row(*row)
    table.caption = f"left in {result['out']}: tables, index and report.html"
    table.caption_justify = "left"
    return table


def _rows(steps: dict[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(name, told_in_short(told), _seconds(told)) for name, told in steps.items()]


def _seconds(told: dict[str, Any]) -> str:
    if told.get("up_to_date"):
        return "up to date"
    return f"{told['seconds']:.1f}" if "seconds" in told else ""


def told_in_short(told: dict[str, Any]) -> str:
    """The counts of a step, on one line."""
    counts = [(name, value) for name, value in told.items() if isinstance(value, int) and not isinstance(value, bool)]
    return ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in counts)
