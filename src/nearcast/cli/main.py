"""The command `nearcast`: registers all commands, and turns errors into one line and an exit code.

Commands import slow modules in their functions, so that `nearcast --help` is quick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nearcast import __version__
from nearcast.cli.bench import commands as bench
from nearcast.cli.check import check
from nearcast.cli.console import fail, note
from nearcast.cli.demo import demo
from nearcast.cli.docs import docs
from nearcast.cli.explain import explain
from nearcast.cli.generate import generate
from nearcast.cli.match import match
from nearcast.cli.methods import methods
from nearcast.cli.move.command import move
from nearcast.cli.pipeline import commands as pipeline
from nearcast.cli.pipeline.stream import stream
from nearcast.cli.top.command import top
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


def _group(commands: Sequence[Callable[..., None]], **options: Any) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, **options)
    for command in commands:
        group.command()(command)
    return group


app = _group(
    (match, explain, top, move, methods, generate, check),
    cls=Commands,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_pipeline = (pipeline.ingest, pipeline.vocabulary, pipeline.build, pipeline.match, stream, pipeline.run, pipeline.size)
_bench = (
    bench.run,
    bench.report,
    bench.costs,
    bench.sweeps,
    bench.paper,
    bench.spark,
    bench.top,
    bench.moving,
    bench.words,
)
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
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
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
