"""`nearcast docs`: the page docs/command-line.md, made from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from nearcast.cli.console import show
from nearcast.cli.methods import write_if_changed

WIDTH = 100
_TOP = """# Command line

Made by `nearcast docs --out docs/command-line.md` from the commands themselves; do not edit.

Results go to standard output, as a table or, with `--json`, as one JSON document. Progress bars and notes go
to standard error, bars only where it is a terminal. Exit codes:

| code | meaning |
|---|---|
| 0 | done |
| 1 | a check failed (`nearcast methods --check`), or the reader of the output has gone |
| 2 | bad input: one line on standard error says which file, row, column and why |
| 130 | interrupted |

Tables are Parquet (`.parquet`), CSV (`.csv`) or JSON Lines (`.jsonl`); the last two may be read gzipped.
"""


def docs(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/command-line.md"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write the page about the command line.

    \b
    Example:
      nearcast docs --out docs/command-line.md
    """
    changed = write_if_changed(out, page())
    show(
        {"file": str(out), "changed": changed},
        as_json,
        Text(f"{out} {'written' if changed else 'is up to date'}"),
    )


def page() -> str:
    parts = [_TOP]
    for path, text in helps():
        parts.append(f"## {path}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def helps() -> Iterator[tuple[str, str]]:
    """Every command that people see, with its help, always 100 columns wide."""
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
