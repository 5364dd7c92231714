"""Output of commands: results on standard output, as a table or as JSON; progress bars and notes on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

ERRORS = Console(stderr=True)
BAD_INPUT = 2


def show(result: Any, as_json: bool, renderable: Any) -> None:
    """Print `result` as one JSON document, or `renderable` (text or a rich table)."""
    if as_json:
        typer.echo(json.dumps(result, default=str))
    else:
        Console().print(renderable)


def name_value_grid(lines: Iterable[tuple[str, str]]) -> Table:
    """Names and values in two columns without a frame."""
    grid = Table.grid(padding=(0, 2))
    for name, value in lines:
        grid.add_row(name, value)
    return grid


def text_table(titles: Iterable[str], rows: Iterable[Iterable[str | Text]], **options: Any) -> Table:
    """A table with its title and its caption at the left. Cells are plain text or `Text` with a style."""
    table = Table(*titles, title_justify="left", caption_justify="left", **options)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """A progress display on standard error, removed at the end; hidden if `quiet` or without a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=ERRORS, transient=True, disable=quiet or not ERRORS.is_terminal) as display:
        yield display


@contextmanager
def working(display: Progress, what: str) -> Iterator[None]:
    """A moving bar for a step of unknown length."""
    task = display.add_task(what, total=None)
    try:
        yield
    finally:
        display.remove_task(task)


@contextmanager
def counted_steps(total: int, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A progress bar over `total` steps. Call the function with the name of each step when the step begins."""
    with progress(quiet) as display:
        task = display.add_task("starting", total=total)
        display.advance(task, -1)  # a step is done when the next one begins
        yield lambda step: display.update(task, advance=1, description=step)


def note(text: str) -> None:
    """Print a line on standard error, so that standard output contains the result alone."""
    ERRORS.print(one_line(text), markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a red line on standard error."""
    ERRORS.print(f"warning: {one_line(text)}", style="red", markup=False, highlight=False, soft_wrap=True)


def fail(reason: str) -> typer.Exit:
    """Print the reason on one line of standard error; return the exception to raise."""
    ERRORS.print(f"error: {one_line(reason)}", style="red", markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(BAD_INPUT)


def one_line(text: str) -> str:
    """The text on one line. Lines that only point upwards with ^ are left out."""
    lines = [line.strip() for line in text.splitlines()]
    return ": ".join(line for line in lines if line.strip("^"))


def write_page(file: Path, content: str, as_json: bool) -> None:
    """Write a text file unless it already has this content, and show whether it was written."""
    from nearcast.arrays.bundle import write_whole

    changed = not (file.is_file() and file.read_bytes() == content.encode())
    if changed:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content.encode(), is_private=False)
    text = Text(f"{file} {'written' if changed else 'is up to date'}")
    show({"file": str(file), "changed": changed}, as_json, text)
