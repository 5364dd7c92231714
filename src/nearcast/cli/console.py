"""What commands share: progress bars on standard error, results on standard output, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ERRORS = Console(stderr=True)
BAD_INPUT = 2


def show(result: Any, as_json: bool, renderable: Any) -> None:
    """Print `result` as one JSON document, or `renderable` (text or a rich table) for people."""
    if as_json:
        typer.echo(json.dumps(result, default=str))
    else:
        Console().print(renderable)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """A progress display on standard error that leaves nothing behind; none where nobody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=ERRORS, transient=True, disable=quiet or not ERRORS.is_terminal) as shown:
        yield shown


@contextmanager
def working(shown: Progress, what: str) -> Iterator[None]:
    """A moving bar for one step whose length nobody knows."""
    task = shown.add_task(what, total=None)
    try:
        yield
    finally:
        shown.remove_task(task)


def note(text: str) -> None:
    """A line beside the result: on standard error, so that the result stays clean."""
    ERRORS.print(one_line(text), markup=False, highlight=False, soft_wrap=True)


def fail(reason: str) -> typer.Exit:
    """One clear line on standard error; raise what is returned."""
    ERRORS.print(f"error: {one_line(reason)}", style="red", markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(BAD_INPUT)


def one_line(text: str) -> str:
    """The text on one line; a line that only points upwards with ^ says nothing there, and goes."""
    lines = [line.strip() for line in text.splitlines()]
    return ": ".join(line for line in lines if line.strip("^"))
