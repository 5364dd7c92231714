"""`nearcast methods`: list the methods, or run the shipped checks on one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text
from typer import Option

from nearcast.cli.console import counted_steps, show, text_table, write_page
from nearcast.cli.options import Json

if TYPE_CHECKING:
    from nearcast.matching.checks import CheckRun

FAILED = 1


def methods(
    check: Annotated[str | None, Option(metavar="NAME", help="Run the shipped checks on this method.")] = None,
    kind: Annotated[
        str | None, Option(help="Only methods that serve this kind. With `top`: methods of `nearcast top`.")
    ] = None,
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
      nearcast methods --kind top --check norm-lists
    """
    if check is not None:
        _check(check, kind, as_json)
    elif markdown is not None:
        from nearcast.engine.catalogue import methods_markdown

        write_page(markdown, methods_markdown(), as_json)
    else:
        _list(kind, as_json)


def _list(kind: str | None, as_json: bool) -> None:
    from nearcast.engine.catalogue import methods as known

    rows = []
    for info in known(kind):
        options = ", ".join(f"{name}={value!r}" for name, value in info.options.items()) or "none"
        rows.append((info.name, info.paper, ", ".join(info.kinds), options, info.idea))
    table = text_table(("method", "paper", "kinds", "options", "idea"), rows)
    show([info._asdict() for info in known(kind)], as_json, table)


def _check(name: str, kind: str | None, as_json: bool) -> None:
    checks = _checks(name, kind)
    outcomes, rows = [], []
    with counted_steps(len(checks), as_json) as on_step:
        for each in checks:
            on_step(_sentence(each.check))
            passed, reason = _verdict(each.known_gap, each.run())
            outcomes.append({"kind": each.kind, "check": each.check, "passed": passed, "reason": reason})
            shown = Text("passed", "green") if passed else Text("FAILED", "bold red")
            rows.append((each.kind, _sentence(each.check), shown, reason or ""))
    show(outcomes, as_json, text_table(("kind", "check", "", "why"), rows))
    if not all(outcome["passed"] for outcome in outcomes):
        raise typer.Exit(FAILED)


def _checks(name: str, kind: str | None) -> list[CheckRun]:
    from nearcast.engine.catalogue import methods as known
    from nearcast.matching.checks import checks_of
    from nearcast.topk.checks import checks_of_top

    if kind == "top":
        return checks_of_top(name)
    known()  # also registers the methods of other packages
    return [check for check in checks_of(name) if kind in (None, check.kind)]


def _verdict(gap: str | None, failure: str | None) -> tuple[bool, str | None]:
    """Whether the outcome of a check is right, and why (not). A known gap must fail, or else it is out of date."""
    if gap is None:
        return failure is None, failure
    if failure is None:
        return False, f"the check passes now: remove it from known_gaps ('{gap}')"
    return True, f"known gap: {gap}"


def _sentence(check: str) -> str:
    return check.removeprefix("check_").replace("_", " ")
