"""`nearcast pipeline run`: run all steps of a pipeline, and write its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from nearcast.cli.console import show
from nearcast.cli.options import Json
from nearcast.cli.pipeline.spark_console import Force, Master, on_spark

_TITLES = ("step", "result", "seconds")


def pipeline_run(
    pipeline: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PIPELINE.toml]", help="The pipeline to run. [default: that of the demo]", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for all outputs. [default: the file's, or pipeline-output]"),
    ] = None,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a whole pipeline: ingest, vocabulary, build, match, stream, report.

    Steps whose input has not changed are skipped. docs/how-to/run-the-pipeline.md describes the format of the file.
    Without a file, the command uses the sample that comes with nearcast.

    \b
    Example:
      nearcast pipeline run
      nearcast pipeline run traffic.toml --master spark://host:7077
    """
    from nearcast.demo.pipeline import sample_pipeline
    from nearcast.ingest.reports.page import html_table
    from nearcast.ingest.reports.table_report import write_report
    from nearcast.spark.pipeline.pipeline_file import read_pipeline
    from nearcast.spark.pipeline.run import read_statistics, run_pipeline

    chosen = read_pipeline(pipeline, out) if pipeline else sample_pipeline(out or Path("pipeline-output"))
    with on_spark(master, as_json) as spark:
        steps = run_pipeline(spark.session, chosen, force, spark.working)
    report, rows = chosen.path("report.html"), [_row(name, result) for name, result in steps.items()]
    write_report(report, read_statistics(chosen), title="nearcast pipeline", more=[html_table(_TITLES, rows)])
    table = Table(*_TITLES, caption=f"written to {chosen.out}: tables, index and report.html", caption_justify="left")
    table.columns[2].justify = "right"
    for row in rows:
        table.add_row(*row)
    show({"out": str(chosen.out), "steps": steps, "report": report}, as_json, table)


def _row(name: str, result: dict[str, Any]) -> tuple[str, str, str]:
    """Name, counts and seconds of a step."""
    counts = [(key, value) for key, value in result.items() if isinstance(value, int) and not isinstance(value, bool)]
    seconds = f"{result['seconds']:.1f}" if "seconds" in result else ""
    in_words = ", ".join(f"{value:,} {key.replace('_', ' ')}" for key, value in counts)
    return name, in_words, "up to date" if result.get("up_to_date") else seconds
