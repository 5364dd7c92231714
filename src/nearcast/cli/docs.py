"""`nearcast docs`: the page docs/reference/command-line.md, generated from the help texts of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from nearcast.cli.console import write_page
from nearcast.cli.options import Json

WIDTH = 100
_TOP = """# Command line

`nearcast docs --out docs/reference/command-line.md` generates this page from the help texts; do not edit it.

Results go to standard output, as a table or, with `--json`, as one JSON document. Notes and progress bars go to
standard error; bars only if it is a terminal. Exit codes:

| code | meaning |
|---|---|
| 0 | success |
| 1 | a check failed (`nearcast methods --check`), or the reader of the output has closed it |
| 2 | bad input: one line on standard error names the file, the row, the column and the reason |
| 130 | interrupted |

Tables are Parquet (`.parquet`), CSV (`.csv`) or JSON Lines (`.jsonl`). CSV and JSON Lines may be gzipped when read.
"""


def docs(
    out: Annotated[Path, Option(help="The page to write.")] = Path("docs/reference/command-line.md"),
    as_json: Json = False,
) -> None:
    """Write the page about the command line.

    \b
    Example:
      nearcast docs --out docs/reference/command-line.md
    """
    write_page(out, page(), as_json)


def page() -> str:
    """The content of the page."""
    return "\n".join([_TOP, *(f"## {path}\n\n```text\n{text}\n```\n" for path, text in helps())])


def helps() -> Iterator[tuple[str, str]]:
    """Every visible command with its help text, always 100 columns wide."""
    from nearcast.cli.main import app

    yield from _helps_of(typer.main.get_command(app), "nearcast", None)


def _helps_of(command: Any, path: str, parent: Any) -> Iterator[tuple[str, str]]:
    context = command.context_class(
        command, info_name=path.split()[-1], parent=parent, terminal_width=WIDTH, **command.context_settings
    )
    text = command.get_help(context)
    yield path, "\n".join(line.rstrip() for line in text.splitlines())
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _helps_of(child, f"{path} {name}", context)
