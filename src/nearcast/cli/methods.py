"""`nearcast methods`: what there is, and whether a method keeps its promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from nearcast.cli.console import progress, show

FAILED = 1


class Outcome(NamedTuple):
    check: str
    passed: bool
    reason: str | None  # why it failed, or the known gap that excuses it


def methods(
    check: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run the shipped checks on this method."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table as a Markdown page, if it changed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the methods, or check one.

    \b
    Example:
      nearcast methods
      nearcast methods --check keyword-first
    """
    if check is not None:
        _check(check, as_json)
    elif markdown is not None:
        _write_markdown(markdown, as_json)
    else:
        _list(as_json)


def _list(as_json: bool) -> None:
    from nearcast.engine.catalogue import methods as known

    table = Table("method", "paper", "kinds", "options", "idea")
    for info in known():
        options = ", ".join(f"{name}={value!r}" for name, value in info.options.items()) or "none"
        table.add_row(info.name, info.paper, ", ".join(info.kinds), options, info.idea)
    show([info._asdict() for info in known()], as_json, table)


def _write_markdown(file: Path, as_json: bool) -> None:
    from nearcast.engine.catalogue import methods_markdown

    changed = write_if_changed(file, methods_markdown())
    show(
        {"file": str(file), "changed": changed},
        as_json,
        Text(f"{file} {'written' if changed else 'is up to date'}"),
    )


def write_if_changed(file: Path, content: str) -> bool:
    """Write a text file whole; leave it, and its time, alone where it already says the same."""
    from nearcast.arrays.bundle import write_whole

    wanted = content.encode()
    if file.is_file() and file.read_bytes() == wanted:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, wanted)
    return True


def _check(name: str, as_json: bool) -> None:
    outcomes = _outcomes(name, as_json)
    table = Table("check", "", "why")
    for outcome in outcomes:
        verdict = Text("passed", "green") if outcome.passed else Text("FAILED", "bold red")
        table.add_row(sentence(outcome.check), verdict, Text(outcome.reason or ""))
    show([outcome._asdict() for outcome in outcomes], as_json, table)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(FAILED)


def _outcomes(name: str, quiet: bool) -> list[Outcome]:
    from nearcast.engine.catalogue import methods as known
    from nearcast.matching.checks import checks_of, gaps_of

    known()  # registers the methods of other packages too
    checks, gaps = checks_of(name), gaps_of(name)
    outcomes = []
    with progress(quiet) as shown:
        task = shown.add_task("checking", total=len(checks))
        for check, run in checks.items():
            shown.update(task, description=sentence(check))
            outcomes.append(_judged(check, run(), gaps.get(check)))
            shown.advance(task)
    return outcomes


def _judged(check: str, failure: str | None, gap: str | None) -> Outcome:
    """A known gap must fail: one that passes is a stale excuse."""
    if gap is None:
        return Outcome(check, failure is None, failure)
    if failure is None:
        return Outcome(check, False, f"it passes now: take it out of known_gaps ('{gap}')")
    return Outcome(check, True, f"known gap: {gap}")


def sentence(check: str) -> str:
    return check.removeprefix("check_").replace("_", " ")
