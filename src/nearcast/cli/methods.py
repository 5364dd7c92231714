"""`nearcast methods`: list the methods, or run the shipped checks on one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.text import Text
from typer import Option

from nearcast.cli.console import counted_steps, show, text_table, write_page
from nearcast.cli.options import Json

if TYPE_CHECKING:
    from nearcast.matching.checks import CheckRun

FAILED = 1


class Outcome(NamedTuple):
    """The outcome of one check."""

    kind: str
    check: str
    passed: bool
    reason: str | None  # why it failed, or the known gap that excuses it


def methods(
    check: Annotated[str | None, Option(metavar="NAME", help="Run the shipped checks on this method.")] = None,
    markdown: Annotated[
        Path | None, Option(metavar="FILE", help="Write the table as a Markdown page unless it is up to date.")
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

    rows = []
    for info in known():
        options = ", ".join(f"{name}={value!r}" for name, value in info.options.items()) or "none"
        rows.append((info.name, info.paper, ", ".join(info.kinds), options, info.idea))
    table = text_table(("method", "paper", "kinds", "options", "idea"), rows)
    show([info._asdict() for info in known()], as_json, table)


def _check(name: str, as_json: bool) -> None:
    from nearcast.engine.catalogue import methods as known
    from nearcast.matching.checks import checks_of

    known()  # also registers the methods of other packages
    checks = checks_of(name)
    outcomes = []
    with counted_steps(len(checks), as_json) as on_step:
        for each in checks:
            on_step(_sentence(each.check))
            outcomes.append(_outcome(each, each.run()))
    verdicts = {True: Text("passed", "green"), False: Text("FAILED", "bold red")}
    rows = [(each.kind, _sentence(each.check), verdicts[each.passed], each.reason or "") for each in outcomes]
    show([outcome._asdict() for outcome in outcomes], as_json, text_table(("kind", "check", "", "why"), rows))
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(FAILED)


def _outcome(run: CheckRun, failure: str | None) -> Outcome:
    """The outcome of a check. A known gap must fail; a known gap that passes is out of date."""
    kind, check, gap = run.kind, run.check, run.known_gap
    if gap is None:
        return Outcome(kind, check, failure is None, failure)
    if failure is None:
        return Outcome(kind, check, False, f"the check passes now: remove it from known_gaps ('{gap}')")
    return Outcome(kind, check, True, f"known gap: {gap}")


def _sentence(check: str) -> str:
    return check.removeprefix("check_").replace("_", " ")
