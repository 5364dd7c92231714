"""The command `nearcast`: registers all commands, and turns errors into one line and an exit code.

Each command has a file of its own. Commands import slow modules in their functions, so that `nearcast --help` is quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nearcast import __version__
from nearcast.cli.bench.paper import bench_paper
from nearcast.cli.bench.results import costs, report, sweeps
from nearcast.cli.bench.run import bench_run
from nearcast.cli.bench.spark import bench_spark
from nearcast.cli.console import fail, note
from nearcast.cli.demo import demo
from nearcast.cli.docs import docs
from nearcast.cli.generate import generate
from nearcast.cli.match import match
from nearcast.cli.methods import methods
from nearcast.cli.pipeline import steps
from nearcast.cli.pipeline.run import pipeline_run
from nearcast.cli.pipeline.size import size
from nearcast.cli.pipeline.stream import stream
from nearcast.cli.warmup import warmup
from nearcast.errors import NearcastError

INTERRUPTED = 130
"""The exit code that shells expect of a program that Ctrl-C ended."""


class Commands(TyperGroup):
    """The commands. A NearcastError or OSError becomes one line and exit code 2, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NearcastError as error:
            raise fail(str(error)) from None
        except KeyboardInterrupt:
            note("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # the reader of our output has closed it, as in `| head`: Typer ends quietly with exit code 1
        except OSError as error:
            raise fail(_format_os_error(error)) from None


def _format_os_error(error: OSError) -> str:
    """`file: reason` without the error number; the whole text if the error names no file."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def _group(commands: dict[str, Any], **options: Any) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, **options)
    for name, command in commands.items():
        group.command(name)(command)
    return group


app = _group(
    {"match": match, "methods": methods, "generate": generate},
    cls=Commands,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_pipeline = {
    "ingest": steps.ingest,
    "vocabulary": steps.vocabulary,
    "build": steps.build,
    "match": steps.match,
    "stream": stream,
    "run": pipeline_run,
    "size": size,
}
_bench = {
    "run": bench_run,
    "report": report,
    "costs": costs,
    "sweeps": sweeps,
    "paper": bench_paper,
    "spark": bench_spark,
}
app.add_typer(
    _group(_pipeline, name="pipeline", help="Go from raw files to matches on Spark: one machine or a cluster.")
)
app.add_typer(_group(_bench, name="bench", help="Measure methods side by side, and check that they agree."))
app.command()(demo)
app.command()(warmup)
app.command(hidden=True)(docs)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nearcast {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Find every subscription that a geo-tagged message matches.

    \b
    Example:
      nearcast match subscriptions.parquet messages.parquet --out matches.parquet
    """


def main() -> None:
    """The entry point of the command."""
    app(prog_name="nearcast")
