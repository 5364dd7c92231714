"""The command `nearcast`. One file per command; what takes long to import is imported inside the command."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nearcast import __version__
from nearcast.cli.bench import commands as bench
from nearcast.cli.bench.paper import bench_paper
from nearcast.cli.bench.spark import bench_spark
from nearcast.cli.console import fail, note
from nearcast.cli.demo import demo
from nearcast.cli.docs import docs
from nearcast.cli.generate import generate
from nearcast.cli.match import match
from nearcast.cli.methods import methods
from nearcast.cli.pipeline import commands as pipeline
from nearcast.cli.warmup import warmup
from nearcast.errors import NearcastError

INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


class Commands(TyperGroup):
    """All commands: an error meant for people becomes one line and exit code 2, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NearcastError as error:
            raise fail(str(error)) from None
        except KeyboardInterrupt:
            note("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # the reader of our output has gone, as in `| head`: Typer ends quietly with exit code 1
        except OSError as error:
            raise fail(_told(error)) from None


def _told(error: OSError) -> str:
    """`file: reason` without the error number; the text as it is where there is no file."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(match)
app.command()(methods)
app.command()(generate)
app.add_typer(pipeline.app, name="pipeline")
bench.app.command("paper")(bench_paper)
bench.app.command("spark")(bench_spark)
app.add_typer(bench.app, name="bench")
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
    """Find every subscription that a geo-tagged message concerns.

    \b
    Example:
      nearcast match subscriptions.parquet messages.parquet --out matches.parquet
    """


def main() -> None:
    """The console script."""
    app(prog_name="nearcast")
