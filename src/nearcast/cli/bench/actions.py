"""What the commands of `nearcast bench` do. This module is slow to import, so commands import it when they run."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Group

from nearcast.bench.papers.claims import verdicts
from nearcast.bench.papers.page import page, picture_name, put_into, save_figure, summarise_verdicts
from nearcast.bench.papers.paper import Paper, find_paper
from nearcast.bench.papers.result import PaperResult, load_paper_result, run_paper
from nearcast.bench.papers.schedule import schedule_runs
from nearcast.bench.reports.figures import figures, fit_costs
from nearcast.bench.reports.picture import NoMatplotlib, save_picture
from nearcast.bench.reports.tables import markdown_report, screen_report
from nearcast.bench.runs.case import Settings, known_methods
from nearcast.bench.runs.results import Result, load_result, save_result
from nearcast.bench.runs.sweep import Sweep, find_sweep, run_sweep, shipped_sweeps, single_case, steps_of_sweep
from nearcast.bench.workloads.text_corpus import corpus_for
from nearcast.bench.workloads.workload import find_workload
from nearcast.cli.console import counted_steps, note, show, text_table
from nearcast.cli.options import read_names
from nearcast.cli.pipeline.spark_console import grid
from nearcast.errors import InvalidInput

_JOIN_TIMES = ("build s", "build CPU s", "match s", "match CPU s", "join s", "join CPU s", "ratio", "CPU ratio")
_JOIN_TITLES = ("subscriptions", "messages", "pairs", *_JOIN_TIMES)


def choose_sweep(sweep: str | None, workload: str | None, sizes: dict[str, int]) -> Sweep:
    if sweep is not None and workload is not None:
        raise InvalidInput("give --sweep or --workload, not both")
    if workload is not None:
        return single_case(find_workload(workload).but(**sizes), (), Settings())
    for name in sizes:
        raise InvalidInput(f"--{name} belongs to --workload; a sweep has its own sizes, which --scale changes")
    return find_sweep(sweep or "quick")


def with_options(sweep: Sweep, methods: str | None, settings: dict[str, Any]) -> Sweep:
    """The sweep with the given options. Unknown methods raise before anything runs."""
    names = sweep.methods if methods is None else tuple(read_names(methods))
    if methods is not None and not names:
        raise InvalidInput("--methods names no method; leave it out for all")
    known_methods(names)
    also = tuple(with_options(part, methods, settings) for part in sweep.also)
    changed = dataclasses.replace(sweep.settings, **settings)
    return dataclasses.replace(sweep, methods=names, settings=changed, also=also)


def run(sweep: Sweep, scale: float, source: Path | None, baseline: str | None, out: Path | None, as_json: bool) -> None:
    baseline = _require_baseline(sweep, baseline)
    if source is not None:
        sweep = _in_lonlat(sweep)
    with counted_steps(steps_of_sweep(sweep, scale), quiet=as_json) as on_step:
        result = run_sweep(sweep, scale, on_step, lambda workload: corpus_for(workload, source))
    if out is not None:
        save_result(result, out / "result.json")
    _show_result(result, baseline, as_json)
    if out is not None:
        _draw_if_possible(save_picture, result, out / "picture.png")


def _in_lonlat(sweep: Sweep) -> Sweep:
    also = tuple(map(_in_lonlat, sweep.also))
    return dataclasses.replace(sweep, workload=dict(sweep.workload) | {"space": "lonlat"}, also=also)


def _require_baseline(sweep: Sweep, baseline: str | None) -> str | None:
    """The label of the baseline; InvalidInput if it is not one of the methods that run."""
    if baseline is None:
        return None
    label = " ".join(baseline.split())
    for part in sweep.parts:
        labels = [variant.label for variant in known_methods(part.methods)]
        if label not in labels:
            raise InvalidInput(f"the baseline '{baseline}' is not among the methods that run: {', '.join(labels)}")
    return label


def report(path: Path, picture: Path | None, markdown: bool, baseline: str | None, as_json: bool) -> None:
    result = load_result(path)
    if picture is not None:
        save_picture(result, picture)
    if markdown and not as_json:
        typer.echo(markdown_report(result, baseline), nl=False)
    else:
        _show_result(result, baseline, as_json)


def _show_result(result: Result, baseline: str | None, as_json: bool) -> None:
    """Print the tables of a result."""
    lines = [line._asdict() for line in figures(result, baseline)]
    show(result.document() | {"figures": lines}, as_json, screen_report(result, baseline))


def costs(results: list[Path], as_json: bool) -> None:
    fitted = fit_costs([run for result in results for run in load_result(result).runs])
    titles = ("method", *(f"ns a {piece}" for piece in ("message", "term", "node", "candidate", "hit")), "estimate")
    rows = [(method, *map(str, found), f"{least:.2f}-{most:.2f}") for method, (found, least, most) in fitted.items()]
    listed = {method: {**found._asdict(), "least": a, "most": b} for method, (found, a, b) in fitted.items()}
    show(listed, as_json, text_table(titles, rows))


def sweeps(as_json: bool) -> None:
    shipped = shipped_sweeps()
    rows = [(sweep.name, ", ".join(sweep.vary), sweep.about) for sweep in shipped]
    listed = [{"name": sweep.name, "about": sweep.about, "vary": dict(sweep.vary)} for sweep in shipped]
    show(listed, as_json, text_table(("sweep", "varies", "purpose"), rows))


def _draw_if_possible(draw: Callable[..., bool | None], *args: Any) -> bool:
    """Call a function that draws; return whether there is a picture. Without matplotlib, print a note."""
    try:
        return draw(*args) is not False
    except NoMatplotlib as error:
        note(f"no picture: {error}")
        return False


def paper(  # noqa: PLR0913  the options of the command
    name: str,
    ids: str | None,
    scale: float,
    out: Path | None,
    into: Path | None,
    again: Path | None,
    data: Path | None,
    as_json: bool,
) -> None:
    described = find_paper(name)
    result = _load(described, again, ids) if again else _measure(described, ids, scale, data, as_json)
    if out is not None:
        _write(described, result, out, into)
    _show_claims(described, result, as_json)


def _load(paper: Paper, path: Path, wanted: str | None) -> PaperResult:
    loaded = load_paper_result(path)
    if loaded.paper != paper.name:
        raise InvalidInput(f"{path} is a result of '{loaded.paper}', not of '{paper.name}'")
    ids = {figure.id for figure in paper.chosen(wanted)}
    return dataclasses.replace(loaded, parts={name: parts for name, parts in loaded.parts.items() if name in ids})


def _measure(paper: Paper, wanted: str | None, scale: float, data: Path | None, quiet: bool) -> PaperResult:
    schedule = schedule_runs(paper, paper.chosen(wanted), scale)
    for name, missing in schedule.missing.items():
        if missing:
            note(f"figure {name} without {', '.join(f'{label} ({why})' for label, why in missing.items())}")
    with counted_steps(schedule.steps, quiet) as on_step:
        return run_paper(paper, schedule, scale, on_step, data)


def _write(paper: Paper, result: PaperResult, out: Path, into: Path | None) -> None:
    """Write the result, the pictures and a page; also put the page into the existing page `into`."""
    save_result(result, out / "result.json")
    pictures = {figure.id: out / picture_name(figure) for figure in result.figures(paper)}
    measured = result.figures(paper)
    drawn = [each.id for each in measured if _draw_if_possible(save_figure, each, result, pictures[each.id])]

    def page_at(path: Path) -> str:
        links = {name: Path(os.path.relpath(pictures[name], path.parent)).as_posix() for name in drawn}
        return page(paper, result, links)

    own = out / "page.md"
    own.write_text(f"# {paper.title}\n\n{page_at(own)}", encoding="utf-8")
    if into is not None:
        put_into(into, page_at(into))


def _show_claims(paper: Paper, result: PaperResult, as_json: bool) -> None:
    rows = []
    checked: list[dict[str, Any]] = []
    for figure in result.figures(paper):
        points = result.points(figure)
        for claim in figure.claims:
            rows.append((figure.name, claim.says, summarise_verdicts(figure, claim, points)))
            found = [{**each._asdict(), "holds": each.holds} for each in verdicts(figure, claim, points)]
            checked.append({"figure": figure.id, "says": claim.says, "panels": found})
    table = text_table(("figure", "the paper says", "holds"), rows, box=None)
    show(result.document() | {"claims": checked}, as_json, table)


def show_spark(result: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """Print the figures as tables; also write them to the file `out`."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    shown: list[Any] = []
    if "join" in result:
        rows = [list(map(_shown, line.values())) for line in result["join"]]
        shown.append(text_table(_JOIN_TITLES, rows, title="Against the plain join, build and match together"))
    rest: dict[str, Any] = {
        name: result[name] for name in ("library", "frames", "task_ms", "micro_batch") if name in result
    }
    if "memory" in result:
        rest["memory"] = {f"{each['workers']} worker(s)": _in_mb(each) for each in result["memory"]}
    show(result, as_json, Group(*shown, grid(rest)))


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _in_mb(each: dict[str, Any]) -> str:
    whole, index = (
        " + ".join(f"{size / 1e6:,.0f}" for size in each[name]) for name in ("resident_bytes", "index_resident_bytes")
    )
    return (
        f"{whole} MB resident; of the index {index} MB, which is {each['index_bytes_together'] / 1e6:,.0f} MB together"
    )
