"""`nearcast bench`: methods side by side."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nearcast.cli.console import note, progress, show
from nearcast.cli.generate import WORKLOADS, changed, corpus_of
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    from nearcast.bench.runs.results import Result
    from nearcast.bench.runs.sweep import Sweep

app = typer.Typer(
    help="Measure methods side by side, and check that they agree.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_Json = Annotated[bool, typer.Option("--json", help="Print raw results and figures as JSON.")]
_Baseline = Annotated[
    str | None, typer.Option(metavar="METHOD", help="Ratios against this one. [default: the best other]")
]

_Methods = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help='Which, each maybe with options: "brute,pyramid crowded=32". [default: the sweep\'s, or all but auto]',
    ),
]
_Threads = Annotated[
    str | None, typer.Option(metavar="N,...", help="Measure throughput with so many threads each, as in 1,2.")
]


@app.command()
def run(  # noqa: PLR0913  the options of a command are its parameters
    sweep: Annotated[
        str | None, typer.Option(help="See `nearcast bench sweeps`; or a .toml file. [default: quick]")
    ] = None,
    workload: Annotated[str | None, typer.Option(help=f"One workload in place of a sweep: {WORKLOADS}.")] = None,
    methods: _Methods = None,
    subscriptions: Annotated[
        int | None, typer.Option("--subscriptions", "-n", help="With --workload: how many.")
    ] = None,
    messages: Annotated[
        int | None, typer.Option("--messages", "-m", help="With --workload: how many in each group.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --workload: decides what is drawn.")] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="MESSAGES", help="Draw from this table of messages in lon/lat."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="How often each batch is matched; the median counts.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="CPU seconds for each method and group; slow ones get fewer messages."),
    ] = None,
    tables: Annotated[
        bool | None, typer.Option("--tables/--no-tables", help="Measure the whole table API and match_one too.")
    ] = None,
    threads: _Threads = None,
    scale: Annotated[float, typer.Option(help="Factor on all sizes, to try a sweep out.")] = 1.0,
    baseline: _Baseline = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for result.json and picture.png."),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Run a sweep or one workload.

    All methods run in this one process, in turns, on the same rows and messages. If two of them find
    different pairs, the run ends with the first difference.

    \b
    Example:
      nearcast bench run --sweep quick --out results
      nearcast bench run --workload B -n 1000000 --methods "pyramid,pyramid crowded=32" --threads 1,2
    """
    from nearcast.bench.runs.results import save_result

    sizes = {"subscriptions": subscriptions, "messages": messages, "seed": seed}
    settings = {"rounds": rounds, "budget_s": budget, "tables": tables, "threads": _thread_counts(threads)}
    chosen = _with_options(_chosen(sweep, workload, sizes), methods, settings)
    baseline = _checked_baseline(chosen, baseline)
    result = _measured(chosen, scale, source, as_json)
    if out is not None:
        save_result(result, out / "result.json")
    _show(result, baseline, as_json)
    if out is not None:
        _draw_if_possible(result, out / "picture.png")


@app.command()
def report(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A result.json of `bench run --out`.", show_default=False)
    ],
    picture: Annotated[Path | None, typer.Option(help="Draw it to this .png, .svg or .pdf.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    baseline: _Baseline = None,
    as_json: _Json = False,
) -> None:
    """Show a stored result again, and draw it.

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
        _show(loaded, baseline, as_json)


@app.command()
def costs(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Files of `bench run --out`.", show_default=False)
    ],
    as_json: _Json = False,
) -> None:
    """Fit what each method's pieces of work cost: the figures that `auto` weighs work by.

    Estimate: what the fit gives as a share of the time measured, least and most.

    \b
    Example:
      nearcast bench run --sweep grid --out results
      nearcast bench costs results/result.json
    """
    from nearcast.bench.runs.results import load_result
    from nearcast.bench.runs.cost_fit import fit_costs

    fitted = fit_costs([run for result in results for run in load_result(result).runs])
    table = Table("method", *(f"ns a {piece}" for piece in ("message", "term", "node", "candidate", "hit")), "estimate")
    for method, (found, least, most) in fitted.items():
        table.add_row(method, *map(str, found), f"{least:.2f}-{most:.2f}")
    show(
        {method: {**found._asdict(), "least": a, "most": b} for method, (found, a, b) in fitted.items()}, as_json, table
    )


@app.command()
def sweeps(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the sweeps that come with nearcast.

    \b
    Example:
      nearcast bench sweeps
    """
    from nearcast.bench.runs.sweep import shipped_sweeps

    shipped = shipped_sweeps()
    table = Table("sweep", "varies", "what for")
    for sweep in shipped:
        table.add_row(sweep.name, ", ".join(sweep.vary), sweep.about)
    listed = [{"name": sweep.name, "about": sweep.about, "vary": dict(sweep.vary)} for sweep in shipped]
    show(listed, as_json, table)


def _chosen(sweep: str | None, workload: str | None, sizes: dict[str, int | None]) -> Sweep:
    from nearcast.bench.runs.case import Settings
    from nearcast.bench.runs.sweep import find_sweep, single_case
    from nearcast.bench.workloads.workload import find_workload

    if sweep is not None and workload is not None:
        raise InvalidInput("give --sweep or --workload, not both")
    if workload is not None:
        return single_case(changed(find_workload(workload), sizes), (), Settings())
    for name, value in sizes.items():
        if value is not None:
            raise InvalidInput(f"--{name} belongs to --workload; a sweep has its own sizes, which --scale changes")
    return find_sweep(sweep or "quick")


def _with_options(sweep: Sweep, methods: str | None, settings: dict[str, Any]) -> Sweep:
    """The sweep with the options that were given; unknown methods are refused before anything runs."""
    from nearcast.bench.runs.case import known_methods

    given = {name: value for name, value in settings.items() if value is not None}
    names = sweep.methods if methods is None else tuple(filter(None, map(str.strip, methods.split(","))))
    if methods is not None and not names:
        raise InvalidInput("--methods names no method; leave it out for all")
    known_methods(names)
    return dataclasses.replace(sweep, methods=names, settings=dataclasses.replace(sweep.settings, **given))


def _thread_counts(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(count) for count in text.split(","))
    except ValueError:
        raise InvalidInput(f"--threads takes whole numbers, as in 1,2, not '{text}'") from None


def _checked_baseline(sweep: Sweep, baseline: str | None) -> str | None:
    """Its label among the methods that run."""
    from nearcast.bench.runs.case import known_methods

    if baseline is None:
        return None
    labels = [variant.label for variant in known_methods(sweep.methods)]
    label = " ".join(baseline.split())
    if label not in labels:
        raise InvalidInput(f"the baseline '{baseline}' is not among the methods that run: {', '.join(labels)}")
    return label


def _measured(sweep: Sweep, scale: float, source: Path | None, quiet: bool) -> Result:
    from nearcast.bench.runs.sweep import run_sweep, steps_of_sweep

    if source is not None:
        sweep = dataclasses.replace(sweep, workload=dict(sweep.workload) | {"space": "lonlat"})
    with progress(quiet=quiet) as shown:
        task = shown.add_task("starting", total=steps_of_sweep(sweep, scale))
        shown.advance(task, -1)  # a step is done when the next one begins

        def tell(step: str) -> None:
            shown.update(task, advance=1, description=step)

        return run_sweep(sweep, scale, tell, lambda workload: corpus_of(workload, source))


def _show(result: Result, baseline: str | None, as_json: bool) -> None:
    from nearcast.bench.reports.figures import figures
    from nearcast.bench.reports.tables import screen_report

    lines = [line._asdict() for line in figures(result, baseline)]
    show(result.document() | {"figures": lines}, as_json, screen_report(result, baseline))


def _draw_if_possible(result: Result, path: Path) -> None:
    """Results are not lost for want of a picture."""
    from nearcast.bench.reports.picture import NoMatplotlib, save_picture

    try:
        save_picture(result, path)
    except NoMatplotlib as error:
        note(f"no picture: {error}")
