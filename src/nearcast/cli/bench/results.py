"""`nearcast bench report`, `costs` and `sweeps`: stored results, cost figures, and the list of sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from nearcast.cli.console import note, show
from nearcast.cli.options import Json

if TYPE_CHECKING:
    from nearcast.bench.runs.results import Result

Baseline = Annotated[
    str | None, typer.Option(metavar="METHOD", help="Ratios against this method. [default: the best other]")
]


def report(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A result.json of `bench run --out`.", show_default=False)
    ],
    picture: Annotated[Path | None, typer.Option(help="Draw the result to this .png, .svg or .pdf.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")] = False,
    baseline: Baseline = None,
    as_json: Json = False,
) -> None:
    """Show a stored result, and draw it.

    \b
    Example:
      nearcast bench report results/result.json --picture results/picture.svg
    """
    from nearcast.bench.reports.tables import markdown_report
    from nearcast.bench.runs.results import load_result

    loaded = load_result(result)
    if picture is not None:
        from nearcast.bench.reports.picture import save_picture

        save_picture(loaded, picture)
    if markdown and not as_json:
        typer.echo(markdown_report(loaded, baseline), nl=False)
    else:
        show_result(loaded, baseline, as_json)


def costs(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Files of `bench run --out`.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Fit the cost figures that `auto` compares methods by.

    The column estimate shows the smallest and the largest fitted time as a share of the measured time.

    \b
    Example:
      nearcast bench run --sweep grid --out results
      nearcast bench costs results/result.json
    """
    from nearcast.bench.reports.cost_fit import fit_costs
    from nearcast.bench.runs.results import load_result

    fitted = fit_costs([run for result in results for run in load_result(result).runs])
    table = Table("method", *(f"ns a {piece}" for piece in ("message", "term", "node", "candidate", "hit")), "estimate")
    for method, (found, least, most) in fitted.items():
        table.add_row(method, *map(str, found), f"{least:.2f}-{most:.2f}")
    listed = {method: {**found._asdict(), "least": a, "most": b} for method, (found, a, b) in fitted.items()}
    show(listed, as_json, table)


def sweeps(as_json: Json = False) -> None:
    """List the sweeps that come with nearcast.

    \b
    Example:
      nearcast bench sweeps
    """
    from nearcast.bench.runs.sweep import shipped_sweeps

    shipped = shipped_sweeps()
    table = Table("sweep", "varies", "purpose")
    for sweep in shipped:
        table.add_row(sweep.name, ", ".join(sweep.vary), sweep.about)
    listed = [{"name": sweep.name, "about": sweep.about, "vary": dict(sweep.vary)} for sweep in shipped]
    show(listed, as_json, table)


def show_result(result: Result, baseline: str | None, as_json: bool) -> None:
    """Print the tables of a result."""
    from nearcast.bench.reports.figures import figures
    from nearcast.bench.reports.tables import screen_report

    lines = [line._asdict() for line in figures(result, baseline)]
    show(result.document() | {"figures": lines}, as_json, screen_report(result, baseline))


def draw_if_possible(result: Result, path: Path) -> None:
    """Draw a result. Without matplotlib, print a note."""
    from nearcast.bench.reports.picture import NoMatplotlib, save_picture

    try:
        save_picture(result, path)
    except NoMatplotlib as error:
        note(f"no picture: {error}")
