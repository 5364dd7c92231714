"""`nearcast methods`: list the methods, or run the shipped checks on one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from nearcast.cli.console import progress, show, write_page
from nearcast.cli.options import Json

if TYPE_CHECKING:
    from nearcast.matching.checks import CheckRun

FAILED = 1


class Outcome(NamedTuple):
    kind: str
    """The outcome of one check."""

    check: str
    passed: bool
    reason: str | None  # why it failed, or the known gap that excuses it


def methods(
    check: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Run the shipped checks on this method."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table as a Markdown page unless it is up to date.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or run the checks on one method.

    \b
    Example:
      nearcast methods
      nearcast methods --check keyword-first
    """
    if check is not None:
        _check(check, as_json)
    elif markdown is not None:
        from nearcast.engine.catalogue import methods_markdown

        write_page(markdown, methods_markdown(), as_json)
    else:
        _list(as_json)


def _list(as_json: bool) -> None:
    from nearcast.engine.catalogue import methods as known

    table = Table("method", "paper", "kinds", "options", "idea")
    for info in known():
        options = ", ".join(f"{name}={value!r}" for name, value in info.options.items()) or "none"
        table.add_row(info.name, info.paper, ", ".join(info.kinds), options, info.idea)
    show([info._asdict() for info in known()], as_json, table)


def _check(name: str, as_json: bool) -> None:
    outcomes = _outcomes(name, as_json)
    table = Table("kind", "check", "", "why")
    for outcome in outcomes:
        verdict = Text("passed", "green") if outcome.passed else Text("FAILED", "bold red")
        table.add_row(outcome.kind, sentence(outcome.check), verdict, Text(outcome.reason or ""))
    show([outcome._asdict() for outcome in outcomes], as_json, table)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(FAILED)


def _outcomes(name: str, quiet: bool) -> list[Outcome]:
    from nearcast.engine.catalogue import methods as known
    from nearcast.matching.checks import checks_of

    known()  # also registers the methods of other packages
    checks = checks_of(name)
    outcomes = []
    with progress(quiet) as shown:
        task = shown.add_task("checking", total=len(checks))
        for each in checks:
            shown.update(task, description=sentence(each.check))
            outcomes.append(_outcome(each, each.run()))
            shown.advance(task)
    return outcomes


def _outcome(run: CheckRun, failure: str | None) -> Outcome:
    """The outcome of a check. A known gap must fail; a known gap that passes is out of date."""
    kind, check, gap = run.kind, run.check, run.known_gap
    if gap is None:
        return Outcome(kind, check, failure is None, failure)
    if failure is None:
        return Outcome(kind, check, False, f"the check passes now: remove it from known_gaps ('{gap}')")
    return Outcome(kind, check, True, f"known gap: {gap}")


def sentence(check: str) -> str:
    return check.removeprefix("check_").replace("_", " ")
