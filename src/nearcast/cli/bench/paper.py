"""`nearcast bench paper`: run the experiments of a paper again, and check its claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nearcast.bench.toml_files import shipped_names
from nearcast.cli.console import counted_steps, note, show
from nearcast.cli.options import Json
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    from nearcast.bench.papers.paper import Figure, Paper
    from nearcast.bench.papers.result import PaperResult

_SHIPPED = ", ".join(shipped_names("papers"))


def bench_paper(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"{_SHIPPED}, or a .toml file.", show_default=False)],
    figures: Annotated[
        str | None, typer.Option(metavar="ID,...", help="Figures to run, as in 7,8,table-1. [default: all]")
    ] = None,
    scale: Annotated[float, typer.Option(help="Factor on all sizes.")] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for result.json, page.md and pictures."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --out: also insert the figures into this page, between its marks."),
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option("--from", metavar="RESULT", help="Measure nothing; use this result.json."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the experiments of a paper, and check its claims.

    Methods run side by side as in `nearcast bench run`. A note names the methods that nearcast does not have.
    All experiments of rt-tree take less than 15 minutes on two cores.

    \b
    Example:
      nearcast bench paper rt-tree --figures 9,table-1 --scale 0.1 --out results
      nearcast bench paper rt-tree --out docs/papers/rt-tree --page docs/papers/rt-tree.md
    """
    from nearcast.bench.papers.paper_file import find_paper

    if page is not None and out is None:
        raise InvalidInput("--page needs --out, the folder of its pictures")
    described = find_paper(paper)
    result = _load(described, again, figures) if again else _measure(described, figures, scale, as_json)
    if out is not None:
        _write(described, result, out, page)
    _show(described, result, as_json)


def _load(paper: Paper, path: Path, figures: str | None) -> PaperResult:
    from dataclasses import replace

    from nearcast.bench.papers.result import load_paper_result

    loaded = load_paper_result(path)
    if loaded.paper != paper.name:
        raise InvalidInput(f"{path} is a result of '{loaded.paper}', not of '{paper.name}'")
    wanted = {figure.id for figure in paper.chosen(figures)}
    return replace(loaded, parts={name: parts for name, parts in loaded.parts.items() if name in wanted})


def _measure(paper: Paper, figures: str | None, scale: float, quiet: bool) -> PaperResult:
    from nearcast.bench.papers.result import run_paper
    from nearcast.bench.papers.schedule import schedule_runs

    schedule = schedule_runs(paper, paper.chosen(figures), scale)
    for name, missing in schedule.missing.items():
        if missing:
            note(f"figure {name} runs without {', '.join(f'{label} ({why})' for label, why in missing.items())}")
    with counted_steps(schedule.steps, quiet) as on_step:
        return run_paper(paper, schedule, scale, on_step)


def _write(paper: Paper, result: PaperResult, out: Path, page: Path | None) -> None:
    from nearcast.bench.papers.page import page as page_text
    from nearcast.bench.papers.page import picture_name, put_into, relative
    from nearcast.bench.runs.results import save_result

    save_result(result, out / "result.json")
    drawn = {figure.id for figure in result.figures(paper) if _draw(figure, result, out / picture_name(figure))}

    def link_from(path: Path) -> Any:
        return lambda figure: relative(out / picture_name(figure), path) if figure.id in drawn else None

    own = out / "page.md"
    own.write_text(f"# {paper.title}\n\n{page_text(paper, result, link_from(own))}", encoding="utf-8")
    if page is not None:
        put_into(page, page_text(paper, result, link_from(page)))


def _draw(figure: Figure, result: PaperResult, path: Path) -> bool:
    """Draw a figure; return whether there is a picture. Without matplotlib, print a note."""
    from nearcast.bench.papers.picture import save_figure
    from nearcast.bench.reports.picture import NoMatplotlib

    try:
        return save_figure(figure, result, path)
    except NoMatplotlib as error:
        note(f"no picture: {error}")
        return False


def _show(paper: Paper, result: PaperResult, as_json: bool) -> None:
    from nearcast.bench.papers.claims import verdicts
    from nearcast.bench.papers.page import summarise_verdicts
    from nearcast.bench.papers.points import points_of

    table = Table("figure", "the paper says", "holds", box=None)
    checked: list[dict[str, Any]] = []
    for figure in result.figures(paper):
        points = points_of(figure, result.parts[figure.id], result.runs)
        for claim in figure.claims:
            table.add_row(figure.name, claim.says, summarise_verdicts(figure, claim, points))
            found = [{**each._asdict(), "holds": each.holds} for each in verdicts(figure, claim, points)]
            checked.append({"figure": figure.id, "says": claim.says, "panels": found})
    show(result.document() | {"claims": checked}, as_json, table)
