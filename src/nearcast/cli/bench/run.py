"""`nearcast bench run`: run a sweep or one workload."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearcast.cli.bench.results import Baseline, draw_if_possible, show_result
from nearcast.cli.console import counted_steps
from nearcast.cli.generate import WORKLOADS
from nearcast.cli.options import Json, given, read_counts, read_names
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    from nearcast.bench.runs.results import Result
    from nearcast.bench.runs.sweep import Sweep

_Methods = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help='Methods, with or without options: "brute,pyramid crowded=32". [default: the sweep\'s, or all but auto]',
    ),
]
_Threads = Annotated[
    str | None, typer.Option(metavar="N,...", help="Also measure the throughput with these numbers of threads.")
]


def bench_run(  # noqa: PLR0913  the options of a command are its parameters
    sweep: Annotated[
        str | None, typer.Option(help="A sweep of `nearcast bench sweeps`, or a .toml file. [default: quick]")
    ] = None,
    workload: Annotated[str | None, typer.Option(help=f"One workload instead of a sweep: {WORKLOADS}.")] = None,
    methods: _Methods = None,
    subscriptions: Annotated[
        int | None, typer.Option("--subscriptions", "-n", help="With --workload: number of subscriptions.")
    ] = None,
    messages: Annotated[
        int | None, typer.Option("--messages", "-m", help="With --workload: number of messages in each group.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --workload: seed of the random draws.")] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="MESSAGES", help="Take words and places from this messages table in lon/lat."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds; the median counts.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="CPU seconds for each method and group; slow methods get fewer messages."),
    ] = None,
    tables: Annotated[
        bool | None, typer.Option("--tables/--no-tables", help="Also measure the whole table API and match_one.")
    ] = None,
    threads: _Threads = None,
    scale: Annotated[float, typer.Option(help="Factor on all sizes.")] = 1.0,
    baseline: Baseline = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder for result.json and picture.png."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a sweep or one workload.

    All methods run in one process, in turns, on the same rows and messages. If two methods find different
    pairs, the run ends with the first difference.

    \b
    Example:
      nearcast bench run --sweep quick --out results
      nearcast bench run --workload B -n 1000000 --methods "pyramid,pyramid crowded=32" --threads 1,2
    """
    from nearcast.bench.runs.results import save_result

    counts = None if threads is None else read_counts("--threads", threads)
    settings = given(rounds=rounds, budget_s=budget, tables=tables, threads=counts)
    chosen = _choose(sweep, workload, given(subscriptions=subscriptions, messages=messages, seed=seed))
    chosen = _with_options(chosen, methods, settings)
    baseline = _require_baseline(chosen, baseline)
    result = _measure(chosen, scale, source, as_json)
    if out is not None:
        save_result(result, out / "result.json")
    show_result(result, baseline, as_json)
    if out is not None:
        draw_if_possible(result, out / "picture.png")


def _choose(sweep: str | None, workload: str | None, sizes: dict[str, int]) -> Sweep:
    from nearcast.bench.runs.case import Settings
    from nearcast.bench.runs.sweep import find_sweep, single_case
    from nearcast.bench.workloads.workload import find_workload

    if sweep is not None and workload is not None:
        raise InvalidInput("give --sweep or --workload, not both")
    if workload is not None:
        return single_case(find_workload(workload).but(**sizes), (), Settings())
    for name in sizes:
        raise InvalidInput(f"--{name} belongs to --workload; a sweep has its own sizes, which --scale changes")
    return find_sweep(sweep or "quick")


def _with_options(sweep: Sweep, methods: str | None, settings: dict[str, Any]) -> Sweep:
    """The sweep with the given options. Unknown methods raise before anything runs."""
    from nearcast.bench.runs.method_factory import known_methods

    names = sweep.methods if methods is None else tuple(read_names(methods))
    if methods is not None and not names:
        raise InvalidInput("--methods names no method; leave it out for all")
    known_methods(names)
    return dataclasses.replace(sweep, methods=names, settings=dataclasses.replace(sweep.settings, **settings))


def _require_baseline(sweep: Sweep, baseline: str | None) -> str | None:
    """The label of the baseline; InvalidInput if it is not one of the methods that run."""
    from nearcast.bench.runs.method_factory import known_methods

    if baseline is None:
        return None
    labels = [variant.label for variant in known_methods(sweep.methods)]
    label = " ".join(baseline.split())
    if label not in labels:
        raise InvalidInput(f"the baseline '{baseline}' is not among the methods that run: {', '.join(labels)}")
    return label


def _measure(sweep: Sweep, scale: float, source: Path | None, quiet: bool) -> Result:
    from nearcast.bench.runs.sweep import run_sweep, steps_of_sweep
    from nearcast.bench.workloads.text_corpus import corpus_for

    if source is not None:
        sweep = dataclasses.replace(sweep, workload=dict(sweep.workload) | {"space": "lonlat"})
    with counted_steps(steps_of_sweep(sweep, scale), quiet) as on_step:
        return run_sweep(sweep, scale, on_step, lambda workload: corpus_for(workload, source))
